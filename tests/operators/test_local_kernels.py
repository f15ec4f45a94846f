"""The fused updates of differences of next neighbours are the definition, for any number of threads."""

from unittest.mock import patch

import pytest
import torch
from kernel_cases import poisoned

from primaldepth.operators import (
    EdgeTensor,
    ForwardDifference,
    GradientMinusField,
    SelectChannels,
    SymmetrizedGradient,
)
from primaldepth.operators.pairwise import use_backend
from primaldepth.variational.energies import Term
from primaldepth.variational.penalties import GroupNorm
from term_kernels import fused_descent, fused_dual_step

pytest.importorskip("numba")

SIZES = [(1, 1), (1, 9), (9, 1), (2, 2), (37, 23), (24, 130)]
TOLERANCE = {
    torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    torch.float64: {"rtol": 1e-13, "atol": 1e-13},
}


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def operator(kind, size, images=2, dtype=torch.float64):
    """T grad, T (grad - v), or E v in the last two of three channels."""
    T = EdgeTensor(random(images, 3, *size, seed=5, dtype=dtype))
    if kind == "bend":
        return SymmetrizedGradient(size) @ SelectChannels((3, *size), 1, 3)
    return T @ (ForwardDifference(size) if kind == "gradient" else GradientMinusField(size))


def arguments(kind, size, images=2, dtype=torch.float64, tensors=None):
    K = operator(kind, size, tensors or images, dtype)
    p = random(images, *K.out_shape, seed=1, dtype=dtype)
    return K, p, random(images, *K.in_shape, seed=2, dtype=dtype)


def amount(kind, size, dtype, seed):
    """A number, a tensor of one, a map for all images, or one for each."""
    if kind == "number":
        return 0.7
    if kind == "tensor":
        return torch.tensor(0.7, dtype=dtype)
    images = 2 if kind == "maps" else 1
    return random(images, 1, *size, seed=seed, dtype=dtype).abs() + 0.1


def definition(K, F, p, u, sigma):
    with use_backend("torch"):
        return Term(K, F).dual_step(p, u, sigma)


def fused(K, F, p, u, sigma, reuse=None):
    with use_backend("numba"):
        found = fused_dual_step(K, F, p, u, sigma, reuse)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["gradient", "coupling", "bend"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("step", "weight"), [("number", "number"), ("map", "tensor"), ("maps", "maps")])
def test_numba_is_the_definition(kind, size, dtype, step, weight):
    K, p, u = arguments(kind, size, dtype=dtype, tensors=1 if step == "map" else 2)
    sigma, F = amount(step, size, dtype, 3), GroupNorm(amount(weight, size, dtype, 4))
    expected, before = definition(K, F, p, u, sigma), (p.clone(), u.clone())
    with (
        patch.object(torch, "empty_like", poisoned(torch.empty_like)),
        patch.object(torch.Tensor, "new_empty", poisoned(torch.Tensor.new_empty)),
    ):
        found = fused(K, F, p, u, sigma)
    torch.testing.assert_close(found, expected, **TOLERANCE[dtype])
    assert p.equal(before[0])
    assert u.equal(before[1])


@pytest.mark.parametrize("kind", ["gradient", "coupling", "bend"])
def test_the_new_dual_may_replace_the_old(kind):
    K, p, u = arguments(kind, (37, 23))
    expected = definition(K, GroupNorm(1.0), p, u, 0.3)
    found = fused(K, GroupNorm(1.0), p, u, 0.3, reuse=p)
    assert found[0].data_ptr() == p.data_ptr()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["gradient", "coupling", "bend"])
def test_bands_do_not_change_a_bit(kind):
    K, p, u = arguments(kind, (37, 23), dtype=torch.float32)
    whole, *split = [], [], []
    for bands, found in zip((1, 2, 37), (whole, *split), strict=True):
        with patch("primaldepth.operators.local.cpu.thread_count", return_value=bands):
            found.extend(fused(K, GroupNorm(1.0), p, u, 0.3))
    assert all(a.equal(b) for other in split for a, b in zip(whole, other, strict=True))


@pytest.mark.parametrize("kind", ["gradient", "coupling", "bend"])
def test_memory_in_another_order(kind):
    K, p, u = arguments(kind, (7, 5))
    expected = definition(K, GroupNorm(1.0), p, u, 0.3)
    p, u = (t.to(memory_format=torch.channels_last) for t in (p, u))
    torch.testing.assert_close(fused(K, GroupNorm(1.0), p, u, 0.3), expected)


def test_a_radius_of_zero_switches_a_pixel_off():
    K, p, u = arguments("coupling", (5, 5))
    w = torch.ones(1, 1, 5, 5, dtype=p.dtype)
    w[..., 2, 2] = 0
    found = fused(K, GroupNorm(w), p, u, 0.3)
    assert bool((found[0][:, :, 2, 2] == 0).all())
    torch.testing.assert_close(found, definition(K, GroupNorm(w), p, u, 0.3))


@pytest.mark.parametrize("which", ["p", "u", "sigma", "w", "T"])
def test_what_is_to_be_differentiated_takes_the_definition(which):
    K, p, u = arguments("coupling", (6, 5))
    given = {"p": p, "u": u, "sigma": torch.tensor(0.3).double(), "w": torch.tensor(1.0).double()}
    leaf = (given | {"T": K.outer.tensor})[which].requires_grad_()
    rest = (GroupNorm(given["w"]), p, u, given["sigma"])
    assert fused_dual_step(K, *rest, None) is None
    found = Term(K, rest[0]).dual_step(*rest[1:])
    (gradient,) = torch.autograd.grad(found[1].square().sum(), leaf)
    assert bool(gradient.abs().max() > 0)
    with torch.no_grad():
        torch.testing.assert_close(fused(K, *rest), definition(K, *rest))


def test_other_cases_take_the_definition():
    K, p, u = arguments("coupling", (6, 5))
    F = GroupNorm(1.0)
    assert (
        fused_dual_step(K, F, p, u, torch.full_like(p, 0.3), None) is None
    )  # a step that varies over channels
    assert fused_dual_step(K.magnitude(), F, p, u, 0.3, None) is None
    assert fused_dual_step(K.outer, F, p, p, 0.3, None) is None
    assert fused_dual_step(K, F, p.half(), u.half(), 0.3, None) is None
    assert fused_dual_step(K, F, p, u[:1], 0.3, None) is None
    with use_backend("torch"):
        assert fused_dual_step(K, F, p, u, 0.3, None) is None
        assert fused_descent(u, [u], 0.3, 1.0) is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("pulls", [1, 2, 3])
def test_descent_is_the_definition(size, dtype, pulls):
    u = random(2, 3, *size, dtype=dtype)
    terms = [random(2, 3, *size, seed=k + 1, dtype=dtype) for k in range(pulls)]
    for tau in (0.3, torch.tensor(0.3, dtype=dtype), random(1, 3, *size, seed=8, dtype=dtype), u.abs()):
        after = u - tau * sum(terms)
        with use_backend("numba"):
            found = fused_descent(u, terms, tau, 0.9)
        torch.testing.assert_close(found, (after, after + 0.9 * (after - u)), **TOLERANCE[dtype])


def test_a_descent_to_be_differentiated_takes_the_definition():
    u = random(1, 1, 4, 4)
    assert fused_descent(u, [u.clone().requires_grad_()], 0.3, 1.0) is None
    assert fused_descent(u, [u], torch.tensor(0.3).double().requires_grad_(), 1.0) is None
    assert fused_descent(u, [u], torch.full((4, 4), 0.3).double(), 1.0) is None
    assert fused_descent(u, [], 0.3, 1.0) is None
