"""Every notebook runs from its first cell to its last, and is kept without outputs."""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path):
    """The code of each cell."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["first_frame", "own_camera", "phone_scan"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(path))


@pytest.mark.slow
@pytest.mark.filterwarnings("default::primaldepth.DepthWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    """In a folder of its own, beside the examples, as Jupyter would run it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setenv("PRIMALDEPTH_CACHE", str(tmp_path / "cache"))
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(cells(path)):
        code = compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec")
        exec(code, namespace)  # noqa: S102
    results = {"first_frame": "cloud.glb", "own_camera": "worst-frame.png", "phone_scan": "room.glb"}
    assert (tmp_path / "notebooks" / results[path.stem]).stat().st_size > 1000
