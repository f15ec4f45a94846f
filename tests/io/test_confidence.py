"""Confidence maps come as (H, W) in [0, 1]."""

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io import read_confidence

SHAPE = (2, 3)


def image(path, values, dtype):
    Image.fromarray(np.array(values, dtype).reshape(SHAPE)).save(path)


def test_levels_of_phones(tmp_path):
    image(tmp_path / "a.png", [0, 1, 2, 2, 1, 0], np.uint8)
    np.testing.assert_array_equal(read_confidence(tmp_path / "a.png", SHAPE), [[0, 0.5, 1], [1, 0.5, 0]])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_full_scale(tmp_path, dtype):
    top = np.iinfo(dtype).max
    image(tmp_path / "a.png", [0, 1, 2, 3, top // 5, top], dtype)
    found = read_confidence(tmp_path / "a.png", SHAPE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.ravel(), np.array([0, 1, 2, 3, top // 5, top]) / top, rtol=1e-6)


def test_16_bits_have_no_levels(tmp_path):
    image(tmp_path / "a.png", [0, 1, 2, 2, 1, 0], np.uint16)
    assert read_confidence(tmp_path / "a.png", SHAPE).max() < 1e-4


@pytest.mark.parametrize("array", [np.linspace(0, 1, 6).reshape(SHAPE), np.eye(2, 3, dtype=bool)])
def test_floats_and_masks_are_taken_as_they_are(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(read_confidence(tmp_path / "a.npy", SHAPE), array.astype(np.float32))
    np.savez(tmp_path / "a.npz", confidence=array, depth=np.ones(3))
    np.testing.assert_array_equal(read_confidence(tmp_path / "a.npz", SHAPE), array.astype(np.float32))


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_outside_the_range(tmp_path, value):
    np.save(tmp_path / "a.npy", np.full(SHAPE, value))
    with pytest.raises(FileFormatError, match=r"a\.npy.*scale the confidence"):
        read_confidence(tmp_path / "a.npy", SHAPE)


def test_wrong_size(tmp_path):
    image(tmp_path / "a.png", range(6), np.uint8)
    with pytest.raises(InputError, match=r"a\.png: 3x2 pixels, but the depth has 2x3; give"):
        read_confidence(tmp_path / "a.png", (3, 2))


@pytest.mark.parametrize("array", [np.ones(SHAPE, np.int32), np.ones((*SHAPE, 3), np.uint8)])
def test_no_confidence(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(FileFormatError, match=r"a\.npy.*confidence|a\.npy.*save it as"):
        read_confidence(tmp_path / "a.npy", SHAPE)
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    with pytest.raises(FileFormatError, match="a confidence map has one grey channel"):
        read_confidence(tmp_path / "a.png", SHAPE)
