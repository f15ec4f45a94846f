"""Proximal maps by their optimality conditions, on both sides of every kink and on it.

x = prox_{tau F}(z) exactly if (z - x) / tau lies in the subdifferential of F at x, and
q = prox_{sigma F*}(p) exactly if q lies in the subdifferential of F at (p - q) / sigma.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from primaldepth.variational import Absolute, GroupNorm, Huber, Penalty, Quadratic

TOLERANCE = 1e-9
values = st.floats(-8, 8)
steps = st.floats(0.05, 20)
weights = st.one_of(st.just(0.0), st.floats(0.05, 4))


@dataclass(frozen=True)
class Case:
    """A penalty of one number: its definition h, where its slope jumps or bends, both ends of its slope."""

    F: Penalty
    h: Callable[[float], float]
    kinks: tuple[float, ...]
    lower: Callable[[float], float]
    upper: Callable[[float], float]

    def holds(self, x: float, g: float) -> bool:
        """Whether g is a slope of h at x, up to rounding."""
        return self.lower(x - TOLERANCE) - TOLERANCE <= g <= self.upper(x + TOLERANCE) + TOLERANCE


def huber(w: float, eps: float) -> Case:
    def h(z: float) -> float:
        return z * z / (2 * eps) if eps > 0 and abs(z) <= eps * w else w * abs(z) - eps * w * w / 2

    def lower(x: float) -> float:
        return max(-w, min(w, x / eps)) if eps > 0 else (w if x > 0 else -w)

    def upper(x: float) -> float:
        return max(-w, min(w, x / eps)) if eps > 0 else (w if x >= 0 else -w)

    return Case(Huber(w, eps), h, (-eps * w, 0.0, eps * w), lower, upper)


def quadratic(f: float, lam: float) -> Case:
    F = Quadratic(pixel(f), lam)
    return Case(F, lambda z: lam * (z - f) ** 2 / 2, (f,), *[lambda x: lam * (x - f)] * 2)


def absolute(f: float, lam: float) -> Case:
    F = Absolute(pixel(f), lam)
    return Case(
        F,
        lambda z: lam * abs(z - f),
        (f,),
        lambda x: lam if x > f else -lam,
        lambda x: lam if x >= f else -lam,
    )


def group(w: float) -> Case:
    """One channel only: the absolute value."""
    return Case(GroupNorm(w), *[getattr(huber(w, 0.0), name) for name in ("h", "kinks", "lower", "upper")])


cases = st.one_of(
    st.builds(huber, weights, st.one_of(st.just(0.0), st.floats(0.05, 3))),
    st.builds(quadratic, values, weights),
    st.builds(absolute, values, weights),
    st.builds(group, weights),
)


def pixel(*numbers: float) -> torch.Tensor:
    """(1, n, 1, 1)."""
    return torch.tensor(numbers, dtype=torch.float64).view(1, -1, 1, 1)


@st.composite
def case_and_point(draw):
    """A penalty, a step, and a z whose proximal point may lie exactly on a kink."""
    case, step = draw(cases), draw(steps)
    at = draw(st.sampled_from(case.kinks))
    on_kink = [at + step * case.lower(at), at + step * case.upper(at)]
    return case, step, draw(st.one_of(values, st.sampled_from(on_kink)))


@given(case_and_point())
def test_prox_is_optimal(drawn):
    case, tau, z = drawn
    x = float(case.F.prox(pixel(z), tau))
    assert case.holds(x, (z - x) / tau)


@given(case_and_point())
def test_prox_conjugate_is_optimal(drawn):
    case, step, z = drawn
    sigma, p = 1 / step, z / step
    q = float(case.F.prox_conjugate(pixel(p), sigma))
    assert case.holds((p - q) / sigma, q)


@given(case_and_point())
def test_moreau_identity(drawn):
    case, sigma, p = drawn
    parts = case.F.prox_conjugate(pixel(p), sigma) + sigma * case.F.prox(pixel(p / sigma), 1 / sigma)
    assert float(parts) == pytest.approx(p, abs=1e-12)


@given(cases, values)
def test_value_is_the_definition(case, z):
    assert float(case.F.value(pixel(z))) == pytest.approx(case.h(z), abs=1e-12)


@given(case_and_point(), values)
def test_fenchel_young(drawn, other):
    """F(z) + F*(q) >= z q for every z, with equality at the z that belongs to q."""
    case, sigma, p = drawn
    q = case.F.prox_conjugate(pixel(p), sigma)
    z = (pixel(p) - q) / sigma
    conjugate = case.F.conjugate(q)
    assert float(case.F.value(z) + conjugate) == pytest.approx(float(z * q), abs=1e-9)
    assert float(case.F.value(pixel(other)) + conjugate) >= other * float(q) - 1e-9


vectors = st.lists(values, min_size=2, max_size=3)


@given(vectors, weights, steps)
def test_group_norm_shrinks_the_length_and_keeps_the_direction(z, w, tau):
    x = GroupNorm(w).prox(pixel(*z), tau).flatten()
    g = (pixel(*z).flatten() - x) / tau
    length = float(x.norm())
    if length > 1e-9:
        assert torch.allclose(g, w * x / length, atol=1e-8)
    assert float(g.norm()) <= w + 1e-9


@given(vectors, weights, steps)
def test_group_norm_projects_the_dual_onto_the_ball(p, w, sigma):
    q = GroupNorm(w).prox_conjugate(pixel(*p), sigma)
    shrunk = GroupNorm(w).prox(pixel(*p) / sigma, 1 / sigma)
    assert float(q.norm()) <= w + 1e-12
    assert torch.allclose(q + sigma * shrunk, pixel(*p), atol=1e-12)


def test_group_norm_value_by_hand():
    z = torch.tensor([[3.0, 0.0], [4.0, -2.0]], dtype=torch.float64).view(1, 2, 1, 2)
    assert GroupNorm(torch.tensor([2.0, 10.0]).view(1, 1, 1, 2)).value(z).tolist() == [2 * 5 + 10 * 2]


@pytest.mark.parametrize("eps", [0.0, 0.5])
def test_huber_meets_itself_at_the_threshold(eps):
    """Both formulas agree at |z| = eps w: value eps w^2 / 2."""
    w = 3.0
    assert float(Huber(w, eps).value(pixel(-eps * w))) == pytest.approx(eps * w * w / 2)


def maps(seed: int, count: int) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(seed)
    return tuple(torch.randn((2, 3, 4, 5), generator=random, dtype=torch.float64) for _ in range(count))


def penalties_with_maps() -> list[Penalty]:
    """Weights that vary from pixel to pixel and vanish at some."""
    f, raw = maps(1, 2)
    w = raw.clamp_min(0.0)
    return [Huber(w, 0.3), Huber(w, 0.0), GroupNorm(w[:, :1]), Quadratic(f, w), Absolute(f, w)]


every_penalty = pytest.mark.parametrize("F", penalties_with_maps(), ids=lambda F: type(F).__name__)


@every_penalty
def test_steps_may_be_maps(F):
    """A map of equal steps is the number; one number per pixel acts on its pixel alone."""
    z, step = maps(2, 1)[0], 0.5 + maps(3, 1)[0][:, :1].abs()
    for apply in (F.prox, F.prox_conjugate):
        assert torch.allclose(apply(z, torch.full_like(step, 0.7)), apply(z, 0.7), atol=1e-14)
        mixed = apply(z, step)
        y, x = 2, 3
        assert torch.allclose(mixed[1, :, y, x], apply(z, float(step[1, 0, y, x]))[1, :, y, x], atol=1e-14)


@every_penalty
def test_zero_weights_give_numbers(F):
    z = maps(4, 1)[0]
    z[0] = 0.0
    results = [F.value(z), F.conjugate(F.prox_conjugate(z, 0.7)), F.prox(z, 0.7), F.prox_conjugate(z, 0.7)]
    assert all(bool(torch.isfinite(result).all()) for result in results)


@every_penalty
def test_zero_weight_means_switched_off(F):
    z = maps(5, 1)[0]
    off = (F.lam if isinstance(F, Quadratic | Absolute) else F.w).expand_as(z) == 0
    assert off.any()
    assert (F.prox_conjugate(z, 0.7)[off] == 0).all()
    assert torch.allclose(F.prox(z, 0.7)[off], z[off], atol=1e-14)


@every_penalty
def test_values_are_per_image(F):
    z = maps(6, 1)[0]
    other = z.clone()
    other[1] += 1.0
    assert F.value(z).shape == F.conjugate(z).shape == (2,)
    assert F.value(other)[0] == F.value(z)[0]
    assert F.value(other)[1] != F.value(z)[1]


@every_penalty
def test_arguments_are_untouched(F):
    z, expected = maps(7, 1)[0], maps(7, 1)[0]
    for apply in (F.prox, F.prox_conjugate):
        apply(z, 0.4)
    F.value(z), F.conjugate(z)
    assert z.equal(expected)


@pytest.mark.parametrize("F", [Quadratic(pixel(1e30), 0.0), Absolute(pixel(1e30), 0.0)])
def test_a_sample_that_is_switched_off_has_no_influence_however_large(F):
    z = pixel(0.3)
    assert float(F.prox(z, 0.7)) == 0.3
    assert float(F.prox_conjugate(z, 0.7)) == 0.0
    assert float(F.value(z)) == 0.0


def test_gradient_of_the_projection_is_finite_at_zero():
    """The dual starts at 0, so a network's first step differentiates exactly there."""
    p = torch.zeros(1, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    GroupNorm(1.0).prox_conjugate(p, 0.5).sum().backward()
    assert torch.isfinite(p.grad).all()
    assert not math.isclose(float(p.grad.sum()), 0.0)
