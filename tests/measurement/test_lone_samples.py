"""Samples that stand alone: which masks have them, their cells, and the noise estimated from them."""

import pytest
import torch

from primaldepth.measurement.lone_samples import lone_samples
from primaldepth.measurement.noise_estimate import estimate_sigma


def scattered(height, width, spacing, seed=0):
    """One sample in every spacing x spacing square, not in its middle."""
    generator = torch.Generator().manual_seed(seed)
    valid = torch.zeros(1, 1, height, width, dtype=torch.bool)
    rows, columns = (torch.arange(0, n - spacing + 1, spacing) for n in (height, width))
    shape = (len(rows), len(columns))
    down, right = (torch.randint(1, spacing - 1, shape, generator=generator) for _ in range(2))
    valid[0, 0, rows[:, None] + down, columns + right] = True
    return valid


@pytest.mark.parametrize("spacing", [3, 5, 8])
def test_cells_have_about_one_sample_each(spacing):
    valid = scattered(120, 160, spacing)
    cells = lone_samples(valid)
    assert cells.grid == (120 // spacing, 160 // spacing)
    assert float(cells.sums(valid.float()).mean()) == pytest.approx(1.0, abs=0.1)


def test_a_dense_map_with_large_holes_has_none():
    valid = torch.ones(1, 1, 90, 120, dtype=torch.bool)
    valid[..., 10:80, 20:110] = False
    assert lone_samples(valid) is None
    assert lone_samples(torch.zeros_like(valid)) is None


def test_means_leave_out_what_lies_at_holes_and_come_back_to_the_pixels():
    valid = scattered(60, 80, 5)
    depth = torch.where(valid, 2.0, torch.nan)
    cells = lone_samples(valid)
    mean, some = cells.means(depth, valid)
    assert mean.shape == (1, 1, *cells.grid)
    assert (mean[some] == 2.0).all()
    assert (cells.at_pixels(mean)[valid] == 2.0).all()


@pytest.mark.parametrize("sigma", [0.004, 0.02, 0.08])
def test_their_noise_is_found(sigma):
    valid = scattered(300, 400, 5)
    y, x = torch.meshgrid(torch.arange(300.0), torch.arange(400.0), indexing="ij")
    surface = 2.0 + 5e-4 * x + 3e-4 * y + 0.5 * (x > 200)
    noise = sigma * torch.randn(surface.shape, generator=torch.Generator().manual_seed(1))
    found = estimate_sigma(torch.where(valid, surface + noise, 0.0), valid)
    assert found.shape == valid.shape
    assert float(found[valid].median()) == pytest.approx(sigma, rel=0.08)
