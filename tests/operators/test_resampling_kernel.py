"""Resampling by the stretches of its matrices is the product with the whole matrices."""

from unittest.mock import patch

import pytest
import torch
from kernel_cases import poisoned

from primaldepth.operators import Resample, SelectChannels
from primaldepth.operators.pairwise import use_backend
from primaldepth.operators.sampling import resampling_matrix, stretches
from primaldepth.variational.energies import Term
from primaldepth.variational.penalties import Absolute, Quadratic
from term_kernels import fused_dual_step

pytest.importorskip("numba")

SIZES = [((1, 1), (1, 1)), ((9, 1), (4, 1)), ((1, 9), (1, 3)), ((33, 47), (5, 7)), ((5, 7), (33, 20))]


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def problem(high, low, penalty, dtype=torch.float64):
    """Depth in the second of three channels, seen through bicubic resampling."""
    K = Resample(high, low) @ SelectChannels((3, *high), 1, 2)
    lam = random(2, 1, *low, seed=3, dtype=dtype).clamp_min(0.0)
    F = penalty(random(2, 1, *low, seed=2, dtype=dtype), lam)
    return K, F, random(2, 1, *low, seed=1, dtype=dtype), random(2, 3, *high, dtype=dtype)


@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (9, 4), (64, 8), (8, 64), (7, 5)])
@pytest.mark.parametrize("kernel", ["nearest", "bilinear", "bicubic", "area"])
def test_stretches_hold_the_whole_matrix(kernel, n_in, n_out):
    matrix = resampling_matrix(kernel, n_in, n_out)
    for m in (matrix, matrix.T):
        first, weights = stretches(m)
        again = 0 * m
        for row, start, values in zip(again, first, weights, strict=True):
            row[start : start + len(values)] = values
        assert (again == m).all()


def test_stretches_of_a_reduction_are_short():
    assert stretches(resampling_matrix("bicubic", 800, 100))[1].shape == (100, 32)


@pytest.mark.parametrize(("high", "low"), SIZES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", ["nearest", "bilinear", "bicubic", "area"])
def test_both_directions_are_the_definition(high, low, dtype, kernel):
    from primaldepth.operators.sampling.cpu import reduce, spread

    A, most = Resample(high, low, kernel), 1e-13 if dtype == torch.float64 else 1e-5
    u, p = random(2, 3, *high, dtype=dtype), random(2, 1, *low, seed=1, dtype=dtype)
    with patch.object(torch.Tensor, "new_empty", poisoned(torch.Tensor.new_empty)):
        seen, back = reduce(A, u, 1), spread(A, p, 3, 1)
    torch.testing.assert_close(seen, A(u[:, 1:2]), rtol=most, atol=most)
    torch.testing.assert_close(back[:, 1:2], A.adjoint(p), rtol=most, atol=most)
    assert bool((back[:, ::2] == 0).all())


@pytest.mark.parametrize("penalty", [Quadratic, Absolute])
@pytest.mark.parametrize("alone", [False, True])
def test_a_data_term_takes_the_step_of_the_definition(penalty, alone):
    K, F, p, u = problem((12, 17), (5, 6), penalty)
    if alone:
        K, u = K.outer, u[:, 1:2]
    for sigma in (0.3, random(1, 1, 5, 6, seed=4).abs() + 0.1):
        with use_backend("torch"):
            expected = Term(K, F).dual_step(p, u, sigma)
        with use_backend("numba"):
            found = fused_dual_step(K, F, p, u, sigma, None)
        assert found is not None
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("which", ["p", "u", "f", "lam"])
def test_a_data_term_to_be_differentiated_takes_the_definition(which):
    K, F, p, u = problem((12, 17), (5, 6), Quadratic)
    leaf = {"p": p, "u": u, "f": F.f, "lam": F.lam}[which].requires_grad_()
    assert fused_dual_step(K, F, p, u, 0.3, None) is None
    (gradient,) = torch.autograd.grad(Term(K, F).dual_step(p, u, 0.3)[1].square().sum(), leaf)
    assert bool(gradient.abs().max() > 0)
