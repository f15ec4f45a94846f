import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.conversions import (
    disparity_from_z,
    radial_from_z,
    z_from_disparity,
    z_from_radial,
)

CAMERA = Intrinsics(3.0, 4.0, 2.5, 1.0, 5, 3)


def maps(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.5, 4.0, (3, 5)).astype(dtype)
    valid = rng.random((3, 5)) > 0.3
    z[~valid] = np.nan
    return z, valid


def test_radial_distance_by_hand():
    camera = Intrinsics(1.0, 1.0, 0.5 - 3.0, 0.5 - 4.0, 1, 1)  # the ray is (3, 4, 1)
    z = np.array([[2.0]])
    np.testing.assert_allclose(radial_from_z(z, np.array([[True]]), camera), [[2 * np.sqrt(26)]])


def test_a_sphere_around_the_camera_has_constant_radial_distance():
    z = z_from_radial(np.full((3, 5), 2.0), np.ones((3, 5), bool), CAMERA)
    points = CAMERA.rays() * z[..., None]
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 2.0)


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_conversions_invert_each_other_and_respect_masks(seed, dtype):
    z, valid = maps(seed, dtype)
    before = z.copy()
    for there, back in (
        (radial_from_z(z, valid, CAMERA), lambda r: z_from_radial(r, valid, CAMERA)),
        (disparity_from_z(z, valid, 70.0), lambda d: z_from_disparity(d, valid, 70.0)),
    ):
        again = back(there)
        assert there.dtype == again.dtype == dtype
        np.testing.assert_allclose(again[valid], z[valid], rtol=1e-6)
        assert (there[~valid] == 0).all()
        assert (again[~valid] == 0).all()
    np.testing.assert_array_equal(z, before)


def test_disparity_by_hand():
    z = z_from_disparity(np.array([[10.0, 0.0]]), np.array([[True, False]]), 50.0)
    np.testing.assert_array_equal(z, [[5.0, 0.0]])


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_valid_disparities_must_be_positive(value):
    with pytest.raises(InputError, match="1 valid pixels are not > 0"):
        z_from_disparity(np.array([[value, 3.0]]), np.ones((1, 2), bool), 50.0)


@pytest.mark.parametrize("product", [0.0, -2.0, np.inf, np.nan])
def test_baseline_times_focal_must_be_positive(product):
    with pytest.raises(InputError, match="baseline"):
        disparity_from_z(np.ones((1, 1)), np.ones((1, 1), bool), product)


def test_wrong_arrays_are_named():
    ones = np.ones((3, 5))
    with pytest.raises(InputError, match=r"scaled_to\(4, 3\)"):
        radial_from_z(np.ones((3, 4)), np.ones((3, 4), bool), CAMERA)
    with pytest.raises(InputError, match="valid: shape"):
        radial_from_z(ones, np.ones((5, 3), bool), CAMERA)
    with pytest.raises(InputError, match=r"valid: .*dtype float64"):
        z_from_radial(ones, ones, CAMERA)
    with pytest.raises(InputError, match="dtype int"):
        z_from_radial(ones.astype(int), ones > 0, CAMERA)
