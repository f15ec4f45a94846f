"""Processes that are started import nothing from the current folder, which may be a stranger's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from primaldepth.compute.safe_imports import safe_imports

PLANTED = ("multiprocessing", "primaldepth", "numpy", "mitsuba")
POOL = """
from primaldepth.compute.process_pool import run_jobs
import os
if __name__ == "__main__":
    print(len(set(run_jobs([os.getpid] * 4, 2))) > 0)
"""
TRIAL = """
from primaldepth.scenes import mitsuba_variants
print(mitsuba_variants.tried("scalar").variant)
"""


@pytest.fixture
def hostile(tmp_path):
    """A folder with modules that leave a trace when they are imported."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(
            f"open('RAN-{name}', 'w').close()\nraise ImportError('planted')\n"
        )
    return tmp_path


@pytest.mark.parametrize("program", [POOL, TRIAL], ids=["pool", "trial"])
def test_children_run_no_code_of_the_current_folder(hostile, tmp_path_factory, program):
    script = tmp_path_factory.mktemp("elsewhere") / "script.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=hostile, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(Path(hostile).glob("RAN-*"))


def test_the_environment_is_as_before(monkeypatch):
    for before in ("", "1"):
        monkeypatch.setenv("PYTHONSAFEPATH", before)
        with safe_imports():
            assert os.environ["PYTHONSAFEPATH"] == "1"
        assert os.environ["PYTHONSAFEPATH"] == before
    monkeypatch.delenv("PYTHONSAFEPATH")
    with safe_imports():
        pass
    assert "PYTHONSAFEPATH" not in os.environ
