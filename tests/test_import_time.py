"""`import primaldepth` is not much slower than `import torch`."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "import_time.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processor time of children")
def test_the_import_adds_little_to_that_of_torch() -> None:
    script = runpy.run_path(str(SCRIPT))
    torch, ours = map(min, script["measured"](sys.executable, 2))  # other programs only ever add to it
    assert ours <= script["MOST"] * torch, f"torch {torch:.2f} s, primaldepth {ours:.2f} s"
