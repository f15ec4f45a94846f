"""What every operator promises: exact adjoint, honest norm bound, untouched arguments."""

import pytest
import torch
from operator_cases import LARGE, OPERATORS, SMALL, random_mask, random_tensor
from torch.autograd.functional import vjp

from primaldepth.operators import Composition, EdgeTensor, ForwardDifference, Mask, dot_test

every_operator = pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS.keys())


def randn(shape, seed, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def both_inputs(K, dtype=torch.float64):
    return randn((2, *K.in_shape), 1, dtype), randn((2, *K.out_shape), 2, dtype)


def dense(K):
    """(out, in) matrix of K, column by column."""
    n = K.in_shape[0] * K.in_shape[1] * K.in_shape[2]
    return K.forward(torch.eye(n, dtype=torch.float64).view(n, *K.in_shape)).flatten(1).mT


def power_method(K, iterations=40):
    """A lower bound of ||K|| that comes close to it."""
    u = randn((1, *K.in_shape), 3)
    for _ in range(iterations):
        u = K.adjoint(K.forward(u / u.norm().clamp_min(1e-300)))
    return float(u.norm().sqrt())


def largest(*differences):
    return max(float(difference.abs().max()) for difference in differences)


@every_operator
def test_shapes_are_as_stated(make):
    K = make(torch.float64)
    u, p = both_inputs(K)
    assert K.forward(u).shape == p.shape
    assert K.adjoint(p).shape == u.shape


@every_operator
def test_dot(make):
    assert dot_test(make(torch.float64)) < 1e-12


@pytest.mark.parametrize(
    "operator",
    [
        EdgeTensor(random_tensor((4, 5), torch.float64, batch=2)),
        Mask(random_mask((4, 5), torch.float64, batch=2)),
    ],
)
def test_dot_with_one_map_per_image(operator):
    assert dot_test(operator, batch=2) < 1e-12


def test_dot_notices_a_wrong_adjoint():
    class Wrong(ForwardDifference):
        def adjoint(self, p):
            return super().adjoint(p).roll(1, dims=-1)

    assert dot_test(Wrong((7, 9))) > 1e-3


@every_operator
def test_autograd_of_forward_is_the_adjoint_and_the_other_way_round(make):
    K = make(torch.float64)
    u, p = both_inputs(K)
    through_forward, through_adjoint = vjp(K.forward, u, p)[1], vjp(K.adjoint, p, u)[1]
    assert largest(through_forward - K.adjoint(p), through_adjoint - K.forward(u)) < 1e-12


@every_operator
def test_norm_bound_holds(make):
    K = make(torch.float64)
    assert power_method(K, 10) <= K.norm_bound * (1 + 1e-12)


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE.keys())
def test_norm_bound_is_close(make):
    K = make(torch.float64)
    norm = power_method(K)
    assert norm <= K.norm_bound * (1 + 1e-12)
    assert K.norm_bound <= 3 * norm


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())
def test_magnitude_bounds_every_coefficient(make):
    K = make(torch.float64)
    excess = dense(K.magnitude()) - dense(K).abs()
    assert float(excess.min()) >= -1e-14
    if not isinstance(K, Composition):
        assert float(excess.max()) <= 1e-14


@every_operator
def test_strided_inputs_give_the_same(make):
    K = make(torch.float64)
    u, p = both_inputs(K)
    strided_u, strided_p = (x.permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0) for x in (u, p))
    assert strided_u.equal(u)
    assert largest(K.forward(strided_u) - K.forward(u), K.adjoint(strided_p) - K.adjoint(p)) < 1e-13


@every_operator
def test_inputs_are_not_modified(make):
    K = make(torch.float64)
    u, p = both_inputs(K)
    K.forward(u)
    K.adjoint(p)
    expected_u, expected_p = both_inputs(K)
    assert u.equal(expected_u)
    assert p.equal(expected_p)


@every_operator
def test_single_precision_stays_single(make):
    exact, K = make(torch.float64), make(torch.float32)
    u, p = both_inputs(K, torch.float32)
    Ku, Kp = K.forward(u), K.adjoint(p)
    assert Ku.dtype == Kp.dtype == torch.float32
    scale = 1e-6 * max(1.0, exact.norm_bound)
    assert largest(Ku - exact.forward(u.double())) < 10 * scale
    assert largest(Kp - exact.adjoint(p.double())) < 10 * scale


def test_composition_refuses_shapes_that_do_not_meet():
    with pytest.raises(ValueError, match=r"inner gives \(2, 4, 5\), outer takes \(1, 4, 5\)"):
        ForwardDifference((4, 5)) @ ForwardDifference((4, 5))


def test_composition_applies_the_right_hand_side_first():
    T, gradient = EdgeTensor(random_tensor((4, 5), torch.float64)), ForwardDifference((4, 5))
    u = randn((1, 1, 4, 5), 4)
    assert (T @ gradient)(u).equal(T.forward(gradient.forward(u)))
