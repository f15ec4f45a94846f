"""What is written is what is read, for every format and unit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from primaldepth.io import DepthMap, output_unit, read_depth, write_depth

EVERY_UNIT = ("mm", "m", "5000", "256", "4000", "disparity")
INTEGER = [(".png", unit) for unit in EVERY_UNIT if unit != "m"]
FLOAT32 = [(extension, unit) for extension in (".exr", ".pfm") for unit in EVERY_UNIT]
FLOAT64 = [(extension, unit) for extension in (".npy", ".npz", ".tiff", ".mat") for unit in EVERY_UNIT]
SCALE = {"mm": 1000.0, "m": 1.0, "5000": 5000.0, "256": 256.0, "4000": 4000.0, "disparity": 1.0}
TRIES = settings(max_examples=40, deadline=None)


def stored_maps(elements, dtype):
    """Numbers as a file stores them, with some zeros, and at least one valid."""
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12)
    some = st.one_of(st.just(0), elements)
    return hnp.arrays(dtype, shapes, elements=some, fill=st.nothing()).filter(
        lambda array: bool((array > 0).any())
    )


def check(folder, extension, unit, stored):
    """Write, read, write, read: values, mask and bytes stay."""
    path = folder / f"depth{extension}"
    depth = DepthMap.from_array(stored.astype(np.float64) / SCALE[unit], unit=unit)
    write_depth(path, depth)
    first = path.read_bytes()
    back = read_depth(path, unit=unit)
    np.testing.assert_array_equal(back.values, depth.values)
    np.testing.assert_array_equal(back.valid, depth.valid)
    assert (back.unit, back.kind) == (depth.unit, depth.kind)
    write_depth(path, back)
    assert path.read_bytes() == first
    np.testing.assert_array_equal(read_depth(path, unit=unit).values, depth.values)


@pytest.mark.parametrize(("extension", "unit"), INTEGER + FLOAT32 + FLOAT64)
def test_whole_numbers_come_back(tmp_path_factory, extension, unit):
    folder = tmp_path_factory.mktemp("whole")

    @TRIES
    @given(stored_maps(st.integers(1, 65535), np.uint16))
    def run(stored):
        check(folder, extension, unit, stored)

    run()


@pytest.mark.parametrize(("extension", "unit"), FLOAT32 + FLOAT64)
def test_single_precision_comes_back(tmp_path_factory, extension, unit):
    folder = tmp_path_factory.mktemp("single")

    @TRIES
    @given(stored_maps(st.floats(2**-60, 2**60, width=32), np.float32))
    def run(stored):
        check(folder, extension, unit, stored)

    run()


@pytest.mark.parametrize(("extension", "unit"), FLOAT64)
def test_double_precision_comes_back(tmp_path_factory, extension, unit):
    folder = tmp_path_factory.mktemp("double")

    @TRIES
    @given(stored_maps(st.floats(2**-60, 2**60), np.float64))
    def run(stored):
        check(folder, extension, unit, stored)

    run()


def test_every_16_bit_number_survives_every_unit(tmp_path):
    stored = np.arange(65536).reshape(256, 256)
    for unit in ("mm", "5000", "256", "disparity"):
        check(tmp_path, ".png", unit, stored)


def test_large_32_bit_integers_survive_in_exr(tmp_path):
    check(tmp_path, ".exr", "m", np.array([[2**24 + 1, 2**32 - 1, 0]]))
    check(tmp_path, ".exr", "mm", np.array([[2**24 + 1, 2**32 - 1, 0]]))


def test_a_larger_map_with_every_path(tmp_path):
    stored = np.random.default_rng(0).integers(0, 9000, (67, 41))
    for extension in (".png", ".exr", ".pfm", ".npy", ".npz", ".tif", ".tiff", ".mat"):
        check(tmp_path, extension, "mm", stored)


@pytest.mark.parametrize("extension", [".png", ".exr", ".pfm", ".npy", ".npz", ".tiff", ".mat"])
def test_output_unit_makes_the_default_right(tmp_path, extension):
    path = tmp_path / f"depth{extension}"
    depth = DepthMap.from_array([[1.2345, 0.0], [2.0, 3.25]], unit=output_unit(path, "mm"))
    write_depth(path, depth)
    np.testing.assert_allclose(read_depth(path).values, depth.values, atol=5.1e-4)


@pytest.mark.parametrize(
    ("extension", "missing"),
    [(".pfm", np.inf), (".exr", 0.0), (".npy", np.nan), (".tiff", np.nan), (".mat", np.nan)],
)
def test_each_format_marks_invalid_pixels_its_own_way(tmp_path, extension, missing):
    path = tmp_path / f"depth{extension}"
    write_depth(path, DepthMap.from_array([[1.5, 0.0]], unit="m"))
    np.testing.assert_array_equal(read_with_its_own_library(path)[0, 1], np.float32(missing))


def read_with_its_own_library(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".mat":
        import scipy.io

        return scipy.io.loadmat(path)["depth"]
    if path.suffix == ".tiff":
        import tifffile

        return tifffile.imread(path)
    if path.suffix == ".exr":
        import OpenEXR

        return OpenEXR.File(str(path), separate_channels=True).channels()["Z"].pixels
    return np.frombuffer(path.read_bytes()[-8:], "<f4").reshape(1, 2)


def test_npz_keeps_depth_and_mask(tmp_path):
    write_depth(tmp_path / "a.npz", DepthMap.from_array([[1.5, 0.0]]))
    with np.load(tmp_path / "a.npz") as file:
        assert sorted(file.files) == ["depth", "valid"]
        np.testing.assert_array_equal(file["valid"], [[True, False]])


def test_integers_round_to_the_nearest_step(tmp_path):
    write_depth(tmp_path / "a.png", DepthMap.from_array([[1.2344, 1.2346]], unit="mm"))
    np.testing.assert_array_equal(read_depth(tmp_path / "a.png").values, [[1.234, 1.235]])


def test_arguments_stay_as_they_were(tmp_path):
    values, mask = np.array([[1.0, np.nan], [-1.0, 3.0]]), np.array([[True, True], [True, False]])
    before = values.copy(), mask.copy()
    depth = DepthMap.from_array(values, mask)
    write_depth(tmp_path / "a.pfm", depth)
    np.testing.assert_array_equal(values, before[0])
    np.testing.assert_array_equal(mask, before[1])
    np.testing.assert_array_equal(depth.valid, [[True, False], [False, False]])
