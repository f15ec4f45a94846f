"""Normals of surfaces whose normals are known, and of edges and holes between them."""

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.geometry.intrinsics import Intrinsics
from primaldepth.geometry.normals import surface_normals

CAMERA = Intrinsics(40.0, 50.0, 16.0, 12.0, 32, 24)


def plane(normal, distance):
    """Depth of the plane n P = -distance, seen by the camera."""
    return -distance / (CAMERA.rays() @ np.asarray(normal))


@pytest.mark.parametrize(
    "normal", [(0.0, 0.0, -1.0), (0.6, 0.0, -0.8), (0.0, -0.6, -0.8), (0.48, 0.36, -0.8)]
)
def test_a_plane_has_its_normal_everywhere(normal):
    depth = plane(normal, 2.0)
    found = surface_normals(depth, np.ones(depth.shape, bool), CAMERA)
    np.testing.assert_allclose(found, np.broadcast_to(normal, found.shape), atol=2e-4)


def test_a_sphere_has_normals_along_its_radius():
    rays, centre, radius = CAMERA.rays(), np.array([0.1, -0.05, 4.0]), 1.5
    a, b = (rays**2).sum(-1), rays @ centre
    root = b**2 - a * (centre @ centre - radius**2)
    valid = root > 0.2
    depth = np.where(valid, (b - np.sqrt(np.maximum(root, 0.0))) / a, 1.0)
    found = surface_normals(depth, valid, CAMERA)
    expected = (rays * depth[..., None] - centre) / radius
    cosine = (found * expected).sum(-1)[valid & np.isfinite(found).all(-1)]
    assert cosine.min() > 0.99


def test_no_normal_bridges_an_edge():
    depth = np.where(np.arange(32) < 16, 1.0, 3.0) * np.ones((24, 1))
    found = surface_normals(depth, np.ones(depth.shape, bool), CAMERA)
    np.testing.assert_allclose(found[..., 2], -1.0, atol=1e-4)


def test_holes_have_no_normal_and_do_not_spoil_their_neighbours():
    valid = np.ones((24, 32), bool)
    valid[10, 10] = False
    depth = np.where(valid, 2.0, np.nan)
    found = surface_normals(depth, valid, CAMERA)
    assert np.isnan(found[10, 10]).all()
    assert np.isfinite(found[valid]).all()


def test_another_size_than_the_camera_s_is_refused():
    with pytest.raises(InputError):
        surface_normals(np.ones((5, 5)), np.ones((5, 5), bool), CAMERA)
