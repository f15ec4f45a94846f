"""Rays of a camera that a scanner beside it has seen: free, through a surface, or behind one."""

import math

import numpy as np
import pytest
import torch

from primaldepth.geometry.scanner_view import ScannerView

PLACE = (0.2, 0.0, 0.0)  # the scanner is 20 cm to the right of the camera
CARD, WALL = 1.0, 3.0


def view(step=0.02, finest=1e-3):
    """Beams every `step` radians to a card 30 cm wide, right before the scanner, and the wall behind it."""
    azimuth, elevation = torch.meshgrid(
        torch.arange(-0.9, 0.9, step), torch.arange(-0.5, 0.5, step), indexing="ij"
    )
    x, y = azimuth.tan().flatten(), (elevation.tan() / azimuth.cos()).flatten()
    z = torch.where((x.abs() < 0.15) & (y.abs() < 0.15), CARD, WALL)
    return ScannerView.of((x * z + PLACE[0], y * z, z), PLACE, finest)


def follow(*x, far=10.0):
    rays = torch.tensor(x)
    return view().follow((rays, torch.zeros_like(rays)), torch.full_like(rays, far))


def test_ranges_are_those_of_the_nearest_beams():
    found = view()
    elevation, azimuth = torch.zeros(3), torch.tensor([0.0, 0.5, -2.0])
    ranges = found.range_along(elevation, azimuth)
    assert float(ranges[0]) == pytest.approx(CARD, rel=1e-3)
    assert float(ranges[1]) == pytest.approx(WALL / math.cos(0.5), rel=0.02)
    assert math.isinf(ranges[2])
    assert torch.isfinite(found.ranges).all()


def test_cells_are_no_finer_than_asked_for():
    assert view(finest=0.05).step == 0.05


def test_a_ray_ends_on_the_wall():
    """It does not come near the card, and is free until it goes through the wall."""
    found = follow(0.6)
    assert bool(found.crossed.all())
    assert float(found.entry) == pytest.approx(WALL, rel=0.2)
    assert math.isinf(found.background)


def test_a_ray_to_before_the_wall_is_free():
    found = follow(0.6, -0.3, far=2.8)
    assert not bool(found.crossed.any() | found.behind.any())
    assert bool(torch.isinf(found.entry).all())


def test_a_ray_through_the_card():
    found = follow(0.2, far=2.8)
    assert bool(found.crossed.all())
    assert float(found.entry) == pytest.approx(CARD, rel=0.06)


def test_a_ray_into_the_shadow_has_the_wall_as_background():
    """The camera, to the left, sees past the card what the scanner does not."""
    found = follow(0.02, far=2.8)
    assert bool(found.behind.all())
    assert not bool(found.crossed.any())
    assert CARD < float(found.entry) < 2.0
    assert float(found.background) == pytest.approx(WALL, rel=0.03)


def test_many_rays_are_as_each_alone(monkeypatch):
    rays = np.linspace(-0.3, 0.6, 20).tolist()
    together = follow(*rays)
    monkeypatch.setattr("primaldepth.geometry.scanner_view.AT_ONCE", 1)
    alone = follow(*rays)
    for name in ("crossed", "behind", "entry", "background"):
        assert torch.equal(getattr(together, name), getattr(alone, name))
