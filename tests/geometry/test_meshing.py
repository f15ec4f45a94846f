"""Meshes of a wall with a box before it: metric, coloured, cut at the box."""

from dataclasses import replace

import numpy as np
import pytest
from two_cameras import GUIDE, WALL, view

from primaldepth.core.errors import InputError
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.intrinsics import Intrinsics
from primaldepth.geometry.meshing import depth_mesh

BARREL = Distortion("plumb_bob", (-0.28, 0.09, 0.0011, -0.0007, -0.012))
CAMERA = replace(GUIDE.scaled_to(81, 61), distortion=BARREL)
PLAIN = Intrinsics(10.0, 10.0, 1.5, 1.0, 3, 2)


def wall_and_box():
    hit, _ = view(CAMERA)
    return hit.distance, hit.box


def test_vertices_are_metric_and_no_triangle_crosses_the_jump():
    z, box = wall_and_box()
    colors = np.where(box[..., None], [200, 10, 10], [10, 10, 200]).astype(np.uint8)
    mesh = depth_mesh(z, np.ones(z.shape, bool), CAMERA, colors=colors, max_jump=0.05)
    points, red = mesh.points.points.astype(np.float64), mesh.points.colors[:, 0] == 200
    corners = red[mesh.triangles]
    assert (corners.all(1) | (~corners).all(1)).all()
    normal, offset = WALL
    np.testing.assert_allclose(points[~red] @ normal, offset, atol=1e-5)
    np.testing.assert_allclose(points[red][:, 2].min(), 0.9, atol=1e-5)
    ring = 2 * (z.shape[0] - 1) * (z.shape[1] - 1) - len(mesh.triangles)
    assert 0 < ring < 400  # all cells but those around the box
    assert len(np.unique(mesh.triangles)) == len(points)


def test_without_a_limit_the_sheet_is_closed_and_faces_the_camera():
    z, _ = wall_and_box()
    mesh = depth_mesh(z, np.ones(z.shape, bool), CAMERA, max_jump=10.0)
    assert len(mesh.triangles) == 2 * 60 * 80
    a, b, c = (mesh.points.points[mesh.triangles[:, k]].astype(np.float64) for k in range(3))
    screen = [p[:, :2] / p[:, 2:] for p in (a, b, c)]
    first, second = screen[1] - screen[0], screen[2] - screen[0]
    turn = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    assert (turn < 0).all()  # y points down, so counter-clockwise is negative
    assert (mesh.points.colors == 128).all()


def test_an_invalid_corner_leaves_the_other_triangle():
    z = np.ones((2, 2))
    camera = Intrinsics(10.0, 10.0, 1.0, 1.0, 2, 2)
    for hole in range(4):
        valid = np.ones(4, bool)
        valid[hole] = False
        mesh = depth_mesh(np.where(valid, z.ravel(), np.nan).reshape(2, 2), valid.reshape(2, 2), camera)
        assert mesh.triangles.shape == (1, 3)
        assert sorted(mesh.triangles[0].tolist()) == [0, 1, 2]


def test_the_threshold_is_relative_to_the_nearer_pixel():
    z = np.array([[1.0, 1.0, 1.05], [1.0, 1.0, 1.05]])
    everywhere = np.ones(z.shape, bool)
    assert len(depth_mesh(z, everywhere, PLAIN, max_jump=0.049).triangles) == 2
    assert len(depth_mesh(z, everywhere, PLAIN, max_jump=0.051).triangles) == 4
    assert len(depth_mesh(1000 * z, everywhere, PLAIN, max_jump=0.051).triangles) == 4


@pytest.mark.parametrize("jump", [0.0, -1.0, np.nan, np.inf])
def test_wrong_thresholds_are_named(jump):
    with pytest.raises(InputError, match="mesh jump"):
        depth_mesh(np.ones((2, 3)), np.ones((2, 3), bool), PLAIN, max_jump=jump)


def test_wrong_sizes_are_named():
    with pytest.raises(InputError, match="scaled_to"):
        depth_mesh(np.ones((3, 3)), np.ones((3, 3), bool), PLAIN)
    with pytest.raises(InputError, match="colours"):
        depth_mesh(np.ones((2, 3)), np.ones((2, 3), bool), PLAIN, colors=np.zeros((2, 3), np.uint8))
