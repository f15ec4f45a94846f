"""The fused energy of pairs is the penalty of all their differences."""

import pytest
import torch

from primaldepth.operators import SelectChannels
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, half_window, use_backend
from primaldepth.variational.penalties import GroupNorm, Huber
from term_kernels import fused_value

pytest.importorskip("numba")
OPERATORS = {
    "difference": lambda size, offsets: PairwiseDifference(size, offsets),
    "slope": lambda size, offsets: PairwiseSlope(size, offsets),
    "two channels": lambda size, offsets: (
        PairwiseDifference(size, offsets, channels=2) @ SelectChannels((3, *size), 1, 3)
    ),
}


def problem(kind, size, window, dtype, weights=2):
    random = torch.Generator().manual_seed(window)
    K = OPERATORS[kind](size, half_window(window))
    u = torch.randn((2, *K.in_shape), generator=random, dtype=dtype)
    return K, u, torch.rand((weights, *K.out_shape), generator=random, dtype=dtype)


@pytest.mark.parametrize("eps", [0.0, 0.7])
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (37, 23)])
@pytest.mark.parametrize("kind", OPERATORS)
def test_numba_is_the_definition(kind, size, eps):
    K, u, w = problem(kind, size, 7, torch.float64)
    with use_backend("numba"):
        found = fused_value(K, Huber(w, eps), u)
    assert found is not None
    torch.testing.assert_close(found, Huber(w, eps).value(K(u)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", OPERATORS)
def test_single_precision_is_summed_in_double(kind):
    """One map of weights for both images, too."""
    K, u, w = problem(kind, (63, 40), 7, torch.float32, weights=1)
    with use_backend("numba"):
        found = fused_value(K, Huber(w, 0.1), u)
    assert found is not None
    assert found.dtype == torch.float32
    exact = Huber(w.double(), 0.1).value(K(u.double()))
    torch.testing.assert_close(found.double(), exact, rtol=3e-7, atol=0.0)


def test_any_number_of_threads_gives_the_same_bits():
    K, u, w = problem("slope", (63, 9), 7, torch.float32)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with use_backend("numba"):
                found.append(fused_value(K, Huber(w), u))
    finally:
        torch.set_num_threads(before)
    assert found[0].equal(found[1])


def test_other_cases_are_left_to_the_definition():
    K, u, w = problem("difference", (5, 6), 3, torch.float64)
    with use_backend("numba"):
        assert fused_value(K, Huber(w, torch.tensor(0.1)), u) is None
        assert fused_value(K, GroupNorm(1.0), u) is None
        assert fused_value(K, Huber(w), u.requires_grad_()) is None
        assert fused_value(K.magnitude(), Huber(w), u.detach()) is None
    with use_backend("torch"):
        assert fused_value(K, Huber(w), u.detach()) is None
