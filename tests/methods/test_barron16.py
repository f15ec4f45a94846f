import pytest
import torch
from step_scene import noisy_step, rmse

from primaldepth.methods.barron16 import Barron16, Barron16Settings, Smoother, spread


def maps(size=(12, 16), seed=0):
    random = torch.Generator().manual_seed(seed)
    guide = torch.rand((3, *size), generator=random, dtype=torch.float64)
    target = torch.randn((1, 1, *size), generator=random, dtype=torch.float64)
    trust = 0.1 + torch.rand((1, 1, *size), generator=random, dtype=torch.float64)
    return guide, target, trust


COARSE = Barron16Settings(position=4.0, luma=0.3, chroma=0.3, tolerance=1e-10, iterations=500)


def test_it_solves_the_system_of_the_paper():
    """(mu (M - N B N) + diag(splat c)) y = splat(c t), by a dense solve."""
    guide, target, trust = maps()
    smoother = Smoother.of(guide, COARSE, 0.0)
    grid, n, m, mu = smoother.grid, smoother.n, smoother.m, 3.0
    blur = torch.stack([grid.blur(unit) for unit in torch.eye(grid.vertices, dtype=torch.float64)])
    matrix = mu * (m.diag() - n.diag() @ blur @ n.diag()) + grid.splat(trust).diag()
    expected = grid.slice(torch.linalg.solve(matrix, grid.splat(trust * target)))
    found = smoother.solve(target, trust, torch.zeros_like(target), mu, COARSE)
    assert (found - expected).abs().max() < 1e-7


def test_without_smoothness_every_cell_has_the_mean_of_its_pixels():
    guide, target, trust = maps()
    smoother = Smoother.of(guide, COARSE, 0.0)
    found = smoother.solve(target, trust, torch.zeros_like(target), 1e-12, COARSE)
    grid = smoother.grid
    assert (found - grid.slice(grid.splat(trust * target) / grid.splat(trust))).abs().max() < 1e-7


def test_the_result_stays_between_the_targets():
    guide, target, trust = maps()
    found = Smoother.of(guide, COARSE, 0.0).solve(target, trust, target, 5.0, COARSE)
    assert target.min() <= found.min()
    assert found.max() <= target.max()


def test_trust_is_spread_with_the_values():
    values, lam = torch.tensor([1.0, 5.0]).view(1, 1, 1, 2), torch.tensor([3.0, 1.0]).view(1, 1, 1, 2)
    mean, trust = spread(values, lam, torch.zeros(1, 1, 1, 4))
    assert mean.flatten().tolist() == pytest.approx(
        [1.0, (2.25 * 1 + 0.25 * 5) / 2.5, (0.75 + 0.75 * 5) / 1.5, 5.0]
    )
    assert trust.flatten().tolist() == pytest.approx([1.5, 1.25, 0.75, 0.5])


def test_pixels_that_no_sample_reaches_take_what_is_offered():
    values, lam = (
        torch.tensor([1.0, torch.nan, torch.nan]).view(1, 1, 1, 3),
        torch.tensor([1.0, 0.0, 0.0]).view(1, 1, 1, 3),
    )
    mean, trust = spread(values, lam, torch.full((1, 1, 1, 6), 7.0))
    assert mean.flatten().tolist() == pytest.approx([1.0, 1.0, 1.0, 7.0, 7.0, 7.0])
    assert trust.flatten()[3:].abs().max() == 0


def test_shifted_grids_hide_the_cells():
    """A ramp without guide edges: one grid makes stairs."""
    ramp = torch.linspace(0.0, 4.0, 64).expand(1, 1, 64, 64)
    frame, _ = noisy_step(1, (64, 64))
    exact = torch.full_like(frame.depth, 1e-5)
    frame = type(frame)(ramp.contiguous(), frame.valid, torch.zeros_like(frame.guide), sigma=exact)
    one, four = (Barron16(Barron16Settings(shifts=n, rounds=1))(frame).depth for n in (1, 4))
    assert rmse(four, ramp) < 0.5 * rmse(one, ramp)


def test_a_second_round_brings_the_result_closer_to_the_samples():
    frame, truth = noisy_step(8, (64, 64), sigma=0.02)
    one, two = (Barron16(Barron16Settings(rounds=n))(frame).depth for n in (1, 2))
    assert rmse(two, truth) < rmse(one, truth)
