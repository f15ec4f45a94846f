import pytest
import torch

from primaldepth.operators import PairwiseDifference, Resample, half_window
from primaldepth.variational.quadratic import PairedQuadratic

SIZES = {
    "x2": ((3, 4), (6, 8)),
    "x2.3 by x1.8": ((3, 5), (7, 9)),
    "one row": ((1, 3), (1, 8)),
    "x1": ((4, 5), (4, 5)),
}
every_size = pytest.mark.parametrize(("low", "high"), SIZES.values(), ids=SIZES.keys())


def problem(low, high, window=5, batch=2, seed=0):
    random = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.rand(shape, generator=random, dtype=torch.float64)

    offsets = half_window(window)
    lam = rand(batch, 1, *low) * (rand(batch, 1, *low) > 0.3)
    lam[:, :, 0, 0] = 1.0
    w = 1e-3 + rand(batch, len(offsets), *high)
    return PairedQuadratic(rand(batch, 1, *low), lam, w, offsets, Resample(high, low))


def value(energy, u):
    """The energy by its definition, with the operators the adjoint tests know."""
    K = PairwiseDifference((u.shape[2], u.shape[3]), energy.offsets)
    data = energy.lam * (energy.A(u) - energy.f) ** 2
    return 0.5 * data.sum() + 0.5 * (energy.w * K(u) ** 2).sum()


@every_size
def test_normal_equations_are_the_gradient(low, high):
    energy = problem(low, high)
    u = torch.randn((2, 1, *high), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    u.requires_grad_()
    (gradient,) = torch.autograd.grad(value(energy, u), u)
    found = energy.normal(u.detach()) - energy.right_side()
    assert (found - gradient).abs().max() < 1e-12


@every_size
def test_diagonal(low, high):
    energy = problem(low, high, batch=1)
    n = high[0] * high[1]
    columns = [energy.normal(unit.view(1, 1, *high)).flatten() for unit in torch.eye(n, dtype=torch.float64)]
    assert (energy.diagonal().flatten() - torch.stack(columns).diagonal()).abs().max() < 1e-12


@every_size
def test_the_minimiser_is_that_of_a_dense_solve(low, high):
    energy = problem(low, high, batch=1)
    n = high[0] * high[1]
    columns = [energy.normal(unit.view(1, 1, *high)).flatten() for unit in torch.eye(n, dtype=torch.float64)]
    expected = torch.linalg.solve(torch.stack(columns), energy.right_side().flatten())
    start = torch.zeros((1, 1, *high), dtype=torch.float64)
    found = energy.minimise(start, iterations=500, tolerance=1e-12)
    assert (found.u.flatten() - expected).abs().max() < 1e-8


def test_no_pixel_nearby_is_better():
    energy = problem((3, 4), (6, 8))
    u = energy.minimise(torch.zeros((2, 1, 6, 8), dtype=torch.float64), iterations=500, tolerance=1e-12).u
    least, random = value(energy, u), torch.Generator().manual_seed(2)
    for _ in range(5):
        step = 1e-2 * torch.randn(u.shape, generator=random, dtype=torch.float64)
        assert value(energy, u + step) > least


def test_samples_without_weight_are_not_read():
    energy = problem((3, 4), (6, 8))
    f = torch.where(energy.lam > 0, energy.f, torch.nan)
    other = PairedQuadratic(f, energy.lam, energy.w, energy.offsets, energy.A)
    assert other.right_side().equal(energy.right_side())
