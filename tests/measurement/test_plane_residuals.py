"""Residuals of small planes, and the places in which they are larger."""

import pytest
import torch

from primaldepth.measurement.noise_estimate import estimate_sigma
from primaldepth.measurement.plane_residuals import noisier_places, plane_variance


def noise(size, seed=0):
    return torch.randn((1, 1, *size), generator=torch.Generator().manual_seed(seed))


def test_planes_have_no_residuals_and_noise_has_its_variance():
    y, x = torch.meshgrid(torch.arange(3.0), torch.arange(3.0), indexing="ij")
    plane = (2.0 + 0.3 * x - 0.1 * y).flatten().double()
    assert float(plane_variance(plane)) < 1e-12
    noisy = 0.2 * torch.randn((20000, 9), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(plane_variance(noisy).mean()) == pytest.approx(0.04, rel=0.02)


def test_equal_noise_is_nowhere_larger():
    depth = 2.0 + 0.05 * noise((60, 80))
    factor = noisier_places(torch.full_like(depth, 0.05), depth, depth > 0)
    assert float(factor.mean()) < 1.01
    assert float(factor.max()) < 1.4


def test_a_noisy_corner_is_found_and_a_step_is_not():
    depth = 2.0 + 0.05 * noise((60, 80))
    depth[..., :20, 60:] = 2.0 + 0.15 * noise((20, 20), seed=1)
    depth[..., :, :20] += 1.0
    factor = noisier_places(torch.full_like(depth, 0.05), depth, depth > 0)
    assert float(factor[..., 4:16, 64:76].median()) == pytest.approx(3.0 / 1.2, rel=0.15)
    assert float(factor[..., 30:, :].quantile(0.99)) < 1.3


def test_holes_say_nothing():
    depth = 2.0 + 0.05 * noise((30, 30))
    valid = torch.zeros_like(depth, dtype=torch.bool)
    assert noisier_places(torch.full_like(depth, 0.05), depth, valid).equal(torch.ones_like(depth))
    valid[..., :15] = True
    garbage = torch.where(valid, depth, 1e6)
    assert float(noisier_places(torch.full_like(depth, 0.05), garbage, valid).max()) < 1.4


def test_samples_that_stand_alone_get_their_places_noise():
    sigma = torch.full((1, 1, 200, 240), 0.03)
    sigma[..., :80, 160:] = 0.09
    depth = 2.0 + sigma * noise((200, 240))
    valid = torch.zeros_like(depth, dtype=torch.bool)
    valid[..., 2::5, 2::5] = True
    found = estimate_sigma(depth, valid)
    assert float(found[..., 100:, :].median()) == pytest.approx(0.03, rel=0.15)
    assert 0.06 < float(found[..., 20:60, 180:220].median()) < 0.1
