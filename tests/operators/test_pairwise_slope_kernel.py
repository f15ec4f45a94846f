"""The fused update of pairs with slopes is the definition: clamp, then the adjoint."""

import pytest
import torch

from primaldepth.operators.pairwise import PairwiseSlope, half_window, use_backend
from primaldepth.variational.fused import fused_dual_step
from primaldepth.variational.penalties import Huber

pytest.importorskip("numba")


@pytest.mark.parametrize("window", [3, 7])
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (37, 23), (63, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numba_is_the_definition(size, window, dtype):
    random = torch.Generator().manual_seed(window)
    offsets = half_window(window)
    K, sigma, eps = PairwiseSlope(size, offsets), 0.3, 0.1
    u = torch.randn((2, 3, *size), generator=random, dtype=dtype)
    w = torch.rand((2, len(offsets), *size), generator=random, dtype=dtype)
    p = w * (2 * torch.rand(w.shape, generator=random, dtype=dtype) - 1)
    before = p.clone()
    with use_backend("numba"):
        found = fused_dual_step(K, Huber(w, eps), p, u, sigma, None)
    assert found is not None
    expected = torch.clamp((p + sigma * K(u)) / (1 + sigma * eps), -w, w)
    tolerance = {"rtol": 1e-5, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(found[0], expected, **tolerance)
    torch.testing.assert_close(found[1], K.adjoint(expected), **tolerance)
    assert p.equal(before)
    with use_backend("numba"):
        again = fused_dual_step(K, Huber(w, eps), p, u, sigma, p)
    assert again is not None
    assert again[0].data_ptr() == p.data_ptr()
    torch.testing.assert_close(p, expected, **tolerance)
