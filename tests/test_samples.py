import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from primaldepth.geometry.backproject import backproject
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io.cameras import read_cameras
from primaldepth.samples import sample_files

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture
def make_sample(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("make_sample")


def load(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_files_are_what_they_say():
    sample = sample_files()
    described = json.loads((sample.guide.parent / "sample.json").read_text())
    for name, dtype in (("guide", np.uint8), ("truth", np.uint16), ("depth", np.uint16)):
        array = load(getattr(sample, name))
        assert array.dtype == dtype
        assert array.shape[:2] == (described[name]["height"], described[name]["width"])
        assert getattr(sample, name).name == described[name]["file"]
    assert load(sample.guide).shape == (480, 640, 3)
    assert read_cameras(sample.cameras).guide == Intrinsics(600.0, 600.0, 320.0, 240.0, 640, 480)
    folder = sample.guide.parent
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) < 1_200_000


def test_script_makes_the_shipped_depth_maps_again(make_sample):
    sample = sample_files()
    truth = make_sample.true_depth()
    np.testing.assert_array_equal(truth, load(sample.truth))
    np.testing.assert_array_equal(make_sample.small_depth(truth), load(sample.depth))


def test_script_makes_the_shipped_picture_again(make_sample):
    guide = load(sample_files().guide)
    for top in range(8, 480, 96):  # strips through every object; the whole takes some twenty seconds
        rows = range(top, top + 8)
        np.testing.assert_array_equal(make_sample.guide_rows(rows), guide[rows.start : rows.stop])


def test_script_describes_what_is_shipped(make_sample):
    described = json.loads((sample_files().guide.parent / "sample.json").read_text())
    assert described == make_sample.description()


def test_small_depth_is_the_truth_with_the_stated_noise_and_a_hole():
    sample = sample_files()
    truth, depth = load(sample.truth).astype(float), load(sample.depth).astype(float)
    mean = truth.reshape(60, 8, 80, 8).mean(axis=(1, 3))
    valid = depth > 0
    assert 20 < np.count_nonzero(~valid) < 100
    relative = (depth / mean - 1)[valid]
    assert abs(relative.mean()) < 3 * 0.01 / np.sqrt(relative.size)
    assert relative.std() == pytest.approx(0.01, rel=0.05)


def test_walls_and_floor_of_the_truth_are_planes():
    sample = sample_files()
    truth = load(sample.truth) / 1000.0
    points = backproject(truth, np.ones(truth.shape, bool), read_cameras(sample.cameras).guide)
    points = points.reshape(480, 640, 3).astype(np.float64)
    for rows, columns in ((slice(10, 60), slice(420, 460)), (slice(450, 480), slice(200, 300))):
        patch = points[rows, columns].reshape(-1, 3)
        residual = np.linalg.svd(patch - patch.mean(axis=0), compute_uv=False)[-1] / np.sqrt(len(patch))
        assert residual < 0.0005  # millimetre rounding
    assert truth.min() > 1.0
    assert truth.max() < 4.0
