"""The fused update of pairs with slopes is the definition: clamp, then the adjoint."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from kernel_cases import poisoned

from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, half_window, use_backend
from primaldepth.variational.kernels import WeightedStep, as_number
from primaldepth.variational.penalties import Huber
from term_kernels import fused_dual_step

pytest.importorskip("numba")
TOLERANCES = {torch.float32: {"rtol": 1e-5, "atol": 2e-5}, torch.float64: {"rtol": 1e-12, "atol": 1e-12}}


def problem(size, window, dtype, images=2):
    """K, u, w and p, also at pairs that leave the frame."""
    random = torch.Generator().manual_seed(window)
    offsets = half_window(window)
    u = torch.randn((images, 3, *size), generator=random, dtype=dtype)
    w = torch.rand((images, len(offsets), *size), generator=random, dtype=dtype)
    p = w * (2 * torch.rand(w.shape, generator=random, dtype=dtype) - 1)
    return PairwiseSlope(size, offsets), u, w, p


def per_pair(w):
    return WeightedStep(1e-2, 0.4, w, tuple(2.0 + k for k in range(w.shape[1])))


@contextmanager
def threads(number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("step", [lambda w: 0.3, lambda w: WeightedStep(1e-2, 0.4, w), per_pair])
@pytest.mark.parametrize("window", [3, 7])
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (37, 23), (63, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numba_is_the_definition(size, window, dtype, step):
    (K, u, w, p), eps = problem(size, window, dtype), 0.1
    sigma, before = step(w), p.clone()
    numbers = as_number(sigma)
    with use_backend("numba"), patch.object(torch, "empty_like", poisoned(torch.empty_like)):
        found = fused_dual_step(K, Huber(w, eps), p, u, sigma, None)
    assert found is not None
    expected = torch.clamp((p + numbers * K(u)) / (1 + numbers * eps), -w, w)
    torch.testing.assert_close(found[0], expected, **TOLERANCES[dtype])
    torch.testing.assert_close(found[1], K.adjoint(expected), **TOLERANCES[dtype])
    assert p.equal(before)
    with use_backend("numba"):
        elsewhere = fused_dual_step(K, Huber(w, eps), p, u, sigma, torch.full_like(p, float("nan")))
        in_place = fused_dual_step(K, Huber(w, eps), p, u, sigma, p)
    assert in_place[0].data_ptr() == p.data_ptr()
    for again in (elsewhere, in_place):
        assert all(a.equal(b) for a, b in zip(again, found, strict=True))


def test_bands_meet_without_a_seam():
    cpu = pytest.importorskip("primaldepth.operators.threads")
    if cpu.MAX_THREADS < 2:
        pytest.skip("one core")
    K, u, w, p = problem((63, 9), 7, torch.float64)
    results = []
    for number in (1, 2):
        with threads(number), use_backend("numba"):
            results.append(fused_dual_step(K, Huber(w), p, u, per_pair(w), None))
    assert results[0][0].equal(results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-13, atol=1e-13)


def test_differences_have_no_kernel_for_a_step_per_pair():
    K, u, w, p = problem((5, 6), 3, torch.float64)
    difference = PairwiseDifference(K.size, K.offsets)
    with use_backend("numba"):
        assert fused_dual_step(difference, Huber(w), p, u[:, :1], per_pair(w), None) is None
        assert fused_dual_step(difference, Huber(w), p, u[:, :1], WeightedStep(0.1, 0.4, w), None) is not None
