"""A time-of-flight camera beside the guide: parallax brings background before the foreground."""

import pytest
import torch
from seeds import seeded

from primaldepth.core.errors import InputError
from primaldepth.sensors import sensor

QUIET = {"read": 0.0, "shot": 0.0, "spread": 0.0, "scale": 4}


def step(near=0.8, far=1.6, size=64, batch=16):
    """A near half beside a far one."""
    depth = torch.full((batch, 1, size, size), far)
    depth[..., size // 2 :] = near
    return depth


def test_a_wall_is_a_wall():
    found = sensor("tof-beside-v1", **QUIET)(torch.full((8, 1, 64, 64), 1.3), generator=seeded())
    assert (found.depth[found.valid] - 1.3).abs().max() < 1e-4
    assert 0.6 < float(found.valid.float().mean()) < 1.0
    assert (found.depth[~found.valid] == 0).all()


def share_of_background(**options):
    """Of the valid cells that lie well inside the near half."""
    found = sensor("tof-beside-v1", **{**QUIET, "coarser": 0.0, **options})(step(), generator=seeded(1))
    inner = (..., slice(2, 14), slice(9, 14))
    return float((found.depth[inner][found.valid[inner]] > 1.0).float().mean())


def test_background_shines_through_beside_an_edge():
    assert share_of_background(parallax=0.0) == 0.0
    assert share_of_background(parallax=60.0) > 0.01


def test_parallax_leaves_cells_empty():
    shares = [
        float(sensor("tof-beside-v1", **QUIET, parallax=p)(step(), generator=seeded(2)).valid.float().mean())
        for p in (0.0, 40.0)
    ]
    assert shares[1] < shares[0] - 0.02


def test_what_is_unknown_is_not_measured():
    depth, valid = step(1.0, 1.0), torch.ones(16, 1, 64, 64, dtype=torch.bool)
    valid[..., :32] = False
    found = sensor("tof-beside-v1", **QUIET, coarser=0.0, parallax=10.0)(depth, valid, generator=seeded(3))
    assert not found.valid[..., :7].any()
    assert found.valid[..., 9:15].float().mean() > 0.8


def test_sigma_is_that_of_the_noise():
    camera = sensor("tof-beside-v1", scale=4, parallax=0.0)
    found = camera(torch.full((64, 1, 64, 64), 1.5), generator=seeded(4), gain=torch.full((64, 1, 1, 1), 1.5))
    ratio = ((found.depth - 1.5) / found.sigma)[found.valid]
    assert abs(float(ratio.std()) - 1.0) < 0.1
    assert abs(float(ratio.mean())) < 0.1


def test_surfaces_keep_their_light_in_the_other_view():
    """The near half returns a tenth of the light: it is noisier there, wherever parallax puts it."""
    depth = step(1.0, 2.0)
    albedo = torch.where(depth < 1.5, 0.1, 1.0)
    camera = sensor("tof-beside-v1", scale=4, coarser=0.0, parallax=20.0, min_amplitude=0.0)
    lit = camera(depth, generator=seeded(5), amplitude=albedo / depth.square())
    white = camera(depth, generator=seeded(5))
    ratio = (lit.sigma / white.sigma)[..., 2:14, :]
    assert 3.0 < float(ratio[..., 10:14].median()) < 10.0
    assert abs(float(ratio[..., 2:6].median()) - 1.0) < 0.01


def test_white_surfaces_are_those_without_amplitude():
    depth, camera = step(), sensor("tof-beside-v1", scale=4)
    lit = camera(depth, generator=seeded(6), amplitude=1.0 / depth.square())
    white = camera(depth, generator=seeded(6))
    assert torch.equal(lit.valid, white.valid)
    assert torch.allclose(lit.depth, white.depth, atol=1e-4)


def test_an_amplitude_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"amplitude: shape \(1, 1, 8, 8\), but the depth has"):
        sensor("tof-beside-v1", scale=4)(step(), generator=seeded(), amplitude=torch.ones(1, 1, 8, 8))
