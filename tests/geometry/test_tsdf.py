"""Fusion of depth maps: a sphere keeps its radius, its colours and its sides."""

import numpy as np
import pytest

from posed_scans import RADIUS, look_at, sphere_view, sphere_views
from primaldepth.core.errors import InputError
from primaldepth.geometry import tsdf
from primaldepth.geometry.tsdf import Volume
from primaldepth.geometry.views import PosedView


def fused(views, voxel=0.02):
    volume = Volume(voxel)
    for view in views:
        volume.add(view)
    return volume.mesh()


def radii(mesh):
    return np.linalg.norm(mesh.points.points, axis=1)


def enclosed(mesh):
    """Volume, positive where normals point outwards."""
    a, b, c = np.moveaxis(mesh.points.points[mesh.triangles].astype(np.float64), 1, 0)
    return float((a * np.cross(b - a, c - a)).sum() / 6)


@pytest.fixture(scope="module")
def sphere():
    return fused(sphere_views())


def test_a_sphere_has_its_radius_to_one_percent(sphere):
    assert abs(radii(sphere).mean() / RADIUS - 1) < 0.01
    assert np.abs(radii(sphere) / RADIUS - 1).max() < 0.02
    assert abs((enclosed(sphere) * 3 / (4 * np.pi)) ** (1 / 3) / RADIUS - 1) < 0.01


def test_a_sphere_is_closed(sphere):
    edges = np.sort(sphere.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    assert (counts == 2).all()


def test_colours_are_those_of_the_views(sphere):
    x = sphere.points.points[:, 0]
    assert (sphere.points.colors[x > 0.1] == [200, 20, 20]).all()
    assert (sphere.points.colors[x < -0.1] == [20, 20, 200]).all()


def test_noise_averages_out():
    rng = np.random.default_rng(0)
    noisy = [
        PosedView(v.depth + 0.01 * rng.standard_normal(v.depth.shape), v.valid, v.camera, v.pose, v.colors)
        for v in sphere_views()
    ]
    assert radii(fused(noisy)).std() < 0.003


def test_what_may_be_far_off_counts_less():
    pose = look_at(0.0, 0.0)
    right, wrong = sphere_view(pose, sigma=0.001), sphere_view(pose, off=0.04, sigma=0.06)
    blind = sphere_view(pose, off=0.04)
    weighted = np.median(radii(fused([right, wrong])))
    even = np.median(radii(fused([sphere_view(pose), blind])))
    assert abs(weighted - RADIUS) < 0.4 * abs(even - RADIUS)


def test_what_may_be_off_by_more_than_the_truncation_is_left_out():
    assert len(fused([sphere_view(look_at(0.0, 0.0), sigma=0.1)]).triangles) == 0


def test_no_wall_stands_between_an_edge_and_what_lies_behind():
    """A sphere before a wall, seen once: nothing may be built in the gap."""
    view = sphere_view(look_at(0.0, 0.0))
    depth = np.where(view.valid, view.depth, 3.0)
    mesh = fused([PosedView(depth, np.ones_like(view.valid), view.camera, view.pose, view.colors)])
    z = mesh.points.points[:, 2] + 2.0  # from the camera
    gap = (radii(mesh) > 1.05 * RADIUS) & (z < 2.95)
    assert gap.sum() == 0


def test_views_in_any_order_make_the_same_mesh():
    views = sphere_views()[:6]
    one, other = fused(views), fused(views[::-1])
    assert len(one.triangles) == len(other.triangles)
    order = [np.lexsort(mesh.points.points.T.round(4)) for mesh in (one, other)]
    assert np.allclose(one.points.points[order[0]], other.points.points[order[1]], atol=2e-4)


def test_nothing_becomes_an_empty_mesh():
    assert len(Volume(0.1).mesh().triangles) == 0


def test_too_fine_a_grid_is_refused(monkeypatch):
    monkeypatch.setattr(tsdf, "MOST_BLOCKS", 10)
    with pytest.raises(InputError, match="give a larger one"):
        fused([sphere_view(look_at(0.0, 0.0))])


@pytest.mark.parametrize("size", [0.0, -1.0, np.nan, np.inf])
def test_impossible_voxels_are_refused(size):
    with pytest.raises(InputError, match="voxel"):
        Volume(size)
