import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.geometry.backproject import backproject, point_cloud
from primaldepth.geometry.cameras import Intrinsics

CAMERA = Intrinsics(40.0, 50.0, 3.1, 2.2, 7, 5)


def random_depth(seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 3, (5, 7)).astype(np.float32), rng.random((5, 7)) > 0.3


def test_points_project_back_onto_their_pixels_in_row_major_order():
    depth, valid = random_depth()
    points = backproject(depth, valid, CAMERA).astype(np.float64)
    assert points.shape == (valid.sum(), 3)
    rows, columns = np.nonzero(valid)
    np.testing.assert_allclose(points[:, 0] / points[:, 2] * CAMERA.fx + CAMERA.cx, columns + 0.5, rtol=1e-5)
    np.testing.assert_allclose(points[:, 1] / points[:, 2] * CAMERA.fy + CAMERA.cy, rows + 0.5, rtol=1e-5)
    np.testing.assert_allclose(points[:, 2], depth[valid], rtol=1e-6)


def test_a_slanted_plane_stays_a_plane():
    normal, offset = np.array([0.3, -0.2, 0.93]), 2.0
    depth = offset / (CAMERA.rays() @ normal)
    points = backproject(depth, np.ones(depth.shape, bool), CAMERA)
    assert points.dtype == np.float32
    np.testing.assert_allclose(points @ normal, offset, rtol=1e-6)


def test_values_at_invalid_pixels_are_never_read():
    depth, valid = random_depth()
    expected = backproject(depth, valid, CAMERA)
    depth[~valid] = np.nan
    np.testing.assert_array_equal(backproject(depth, valid, CAMERA), expected)
    depth[valid] = np.inf
    with pytest.raises(InputError, match="NaN or infinite"):
        backproject(depth, valid, CAMERA)


def test_cloud_carries_colours_and_mask_of_the_same_pixels():
    depth, valid = random_depth()
    colors = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    measured = random_depth(4)[1]
    cloud = point_cloud(depth, valid, CAMERA, colors=colors, measured=measured)
    np.testing.assert_array_equal(cloud.colors, colors[valid])
    np.testing.assert_array_equal(cloud.measured, measured[valid])
    plain = point_cloud(depth, valid, CAMERA)
    assert (plain.colors == 128).all()
    assert plain.measured is None


def test_wrong_sizes_are_named():
    depth, valid = random_depth()
    with pytest.raises(InputError, match=r"scaled_to\(7, 5\)"):
        backproject(depth, valid, CAMERA.scaled_to(14, 10))
    with pytest.raises(InputError, match="colours"):
        point_cloud(depth, valid, CAMERA, colors=np.zeros((5, 7), np.uint8))
    with pytest.raises(InputError, match="measured"):
        point_cloud(depth, valid, CAMERA, measured=valid[:4])
