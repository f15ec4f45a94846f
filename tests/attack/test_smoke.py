"""Some hundred mutated inputs of every reader, in one process: no fault, and images without library noise."""

import pytest

pytest.importorskip("h5py", reason="the extra 'mat' is not installed")
pytest.importorskip("rosbags", reason="the extra 'bags' is not installed")
pytest.importorskip("av", reason="the extra 'video' is not installed")
pytest.importorskip("fastapi", reason="the extra 'app' is not installed")

from benchmarks.attack.readers import READERS
from benchmarks.attack.run import Assignment, Supervised

IMAGES = ("png", "png-guide", "jpeg", "tiff", "tiff-guide", "exr", "exr-guide", "pfm", "npy", "npz", "mat5")
IMAGES += ("confidence",)
SLOW = {reader.name for reader in READERS if reader.apart}
TEXTS = tuple(reader.name for reader in READERS if reader.name not in {*IMAGES, *SLOW})


def run(place, names):
    """Faults of these inputs, and what was written to standard error."""
    worker = Supervised(Assignment(7, tuple(names)), place)
    worker.start()
    found = [(name, kind, detail) for name, outcome, _ in worker.hear() for kind, detail in outcome.faults]
    return found, (place / "noise.txt").read_text(errors="replace")


def test_images(tmp_path):
    faults, noise = run(tmp_path, [f"{name}:{index}" for name in IMAGES for index in range(100)])
    assert faults == []
    assert noise == ""


def test_everything_else(tmp_path):
    names = [f"{name}:{index}" for name in TEXTS for index in range(25)]
    faults, _ = run(tmp_path, [*names, *(f"{name}:{index}" for name in sorted(SLOW) for index in range(2))])
    assert faults == []
