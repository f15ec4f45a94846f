"""Where the iteration ends: closed forms, optimality conditions, gaps, an independent program."""

import numpy as np
import pytest
import torch
from problems import PARAMETERS, energy_of, first_estimate, step_with_noise, uniform
from scipy.optimize import linprog
from scipy.sparse import bmat, csr_array, identity

from primaldepth.operators import PairwiseDifference, Resample
from primaldepth.variational import MODELS, Energy, OnDepth, StepSizes, Term, preconditioned, solve
from primaldepth.variational.penalties import Absolute, Huber, Quadratic

NARROW = PARAMETERS.model_copy(update={"window": 3})


def minimise(name, energy, f, iterations=2000, ratio=3.0):
    steps = preconditioned(energy, f, ratio)
    return solve(energy, first_estimate(name, f), steps, iterations=iterations, check_every=iterations)


def two_pixels(w, eps, a, b, lam, data):
    f = torch.tensor([a, b], dtype=torch.float64).view(1, 1, 1, 2)
    K = PairwiseDifference((1, 2), [(0, 1)])
    energy = Energy((Term(K, Huber(w, eps)),), OnDepth(data(f, lam)))
    return solve(energy, f, StepSizes(0.5, (0.5,)), iterations=800, check_every=800).u.flatten().tolist()


@pytest.mark.parametrize(
    ("a", "b", "w", "lam"), [(0, 4, 1.0, 1.0), (5, 1, 1.5, 1.0), (0, 4, 9.0, 1.0), (0, 1, 0.5, 1.0)]
)
def test_total_variation_of_two_pixels(a, b, w, lam):
    """Each value moves w / lam towards the other until they meet in the middle."""
    move = min(w / lam, abs(a - b) / 2) * (1 if a < b else -1)
    assert two_pixels(w, 0.0, a, b, lam, Quadratic) == pytest.approx([a + move, b - move], abs=1e-9)


@pytest.mark.parametrize(
    ("b", "w", "eps"), [(4.0, 10.0, 0.5), (4.0, 0.5, 0.5), (1.0, 1.0, 2.0), (2.0, 0.5, 2.0)]
)
def test_huber_of_two_pixels(b, w, eps):
    """With lam = 1 the slope p at the optimum is b / (2 + eps), at most w; both values move by it."""
    p = min(w, b / (2 + eps))
    assert two_pixels(w, eps, 0.0, b, 1.0, Quadratic) == pytest.approx([p, b - p], abs=1e-9)


def test_absolute_data_of_two_pixels_do_not_move_for_little():
    assert two_pixels(0.9, 0.0, 0.0, 4.0, 1.0, Absolute) == pytest.approx([0.0, 4.0], abs=1e-9)
    u = two_pixels(1.1, 0.0, 0.0, 4.0, 1.0, Absolute)
    assert u[0] == pytest.approx(u[1], abs=1e-9)


def test_optimality_of_nlh():
    """0 = K'p + lam (u - f) with p the slope of the penalty at K u."""
    f, lam = step_with_noise(), 0.1 + uniform(1, 1, 12, 12, seed=7)
    energy = energy_of("nlh-l2", f, lam)
    state = minimise("nlh-l2", energy, f).state
    K, F = energy.terms[0].K, energy.terms[0].F
    slope = (K(state.u) / F.eps).clamp(-F.w, F.w)
    assert (K.adjoint(slope) + lam * (state.u - f)).abs().max() < 1e-9
    assert (slope - state.p[0])[F.w > 0].abs().max() < 1e-9


def test_optimality_of_nlh_through_a_sensor():
    """The same with A: 0 = K'p + A' lam (A u - f)."""
    A = Resample((12, 12), (4, 6))
    f, lam = step_with_noise((4, 6)), torch.full((1, 1, 4, 6), 0.7, dtype=torch.float64)
    energy = energy_of("nlh-l2", f, lam, A=A)
    start = torch.zeros(1, 1, 12, 12, dtype=torch.float64)
    u = solve(energy, start, preconditioned(energy, start), iterations=3000, check_every=3000).u
    K, F = energy.terms[0].K, energy.terms[0].F
    slope = (K(u) / F.eps).clamp(-F.w, F.w)
    assert (K.adjoint(slope) + A.adjoint(lam * (A(u) - f))).abs().max() < 1e-6


def gaps(name, iterations, every):
    f = step_with_noise((16, 16))
    energy = energy_of(name, f, size=(16, 16))
    steps = preconditioned(energy, f)
    history = solve(energy, f, steps, iterations=iterations, check_every=every).history
    return np.array([progress.gap / progress.energy for progress in history])


def test_the_gap_of_nlh_closes():
    assert 0 <= gaps("nlh-l2", 600, 600)[-1] < 1e-8


@pytest.mark.parametrize("name", ["atv-l2", "nltv-l2"])
def test_the_gap_of_total_variation_shrinks_and_is_never_negative(name):
    found = gaps(name, 800, 40)
    assert found.min() > -1e-14
    assert found[-1] < 2e-2 * found[0]
    assert (found[10:] < found[0]).all()


def test_the_gap_bounds_the_distance_to_the_minimum():
    f = step_with_noise()
    energy = energy_of("nlh-l2", f)
    lowest = float(energy.value(minimise("nlh-l2", energy, f).u))
    for progress in solve(energy, f, iterations=60, check_every=5).history:
        assert progress.energy - lowest <= progress.gap + 1e-9


@pytest.mark.parametrize("name", ["nlh-l1", "atgv-l2", "nltgv-l2", "nltgv-l1"])
def test_no_gap_where_the_dual_is_not_finite(name):
    f = step_with_noise()
    assert minimise(name, energy_of(name, f), f, 2).history[-1].gap is None


def test_no_gap_with_holes_or_through_a_sensor():
    f = step_with_noise()
    holes = torch.where(uniform(1, 1, 12, 12) > 0.2, 1.0, 0.0).double()
    assert minimise("nlh-l2", energy_of("nlh-l2", f, holes), f, 2).history[-1].gap is None
    energy = energy_of("nlh-l2", step_with_noise((6, 6)), A=Resample((12, 12), (6, 6)))
    assert minimise("nlh-l2", energy, f, 2).history[-1].gap is None


@pytest.mark.parametrize(
    ("name", "tolerance"), [("atv-l2", 1e-4), ("nltv-l2", 1e-8), ("nlh-l2", 1e-9), ("nlh-l1", 1e-8)]
)
def test_all_step_sizes_lead_to_the_same_limit(name, tolerance):
    f = step_with_noise()
    energy = energy_of(name, f)
    start = first_estimate(name, f)
    first = float(energy.value(start))
    choices = [StepSizes.uniform(energy), StepSizes.uniform(energy, 4.0), preconditioned(energy, f)]
    limits = [
        solve(energy, start, steps, iterations=600, check_every=600).history[-1].energy for steps in choices
    ]
    assert max(limits) < 0.9 * first
    assert max(limits) - min(limits) < tolerance * first


def directions(u, f):
    """Noise, a shift, a single pixel, towards the data and towards the mean."""
    noise = [
        torch.randn(u.shape, generator=torch.Generator().manual_seed(i), dtype=u.dtype) for i in range(6)
    ]
    pixel = torch.zeros_like(u)
    pixel[..., 5, 6] = 1.0
    to_data, to_mean = torch.zeros_like(u), torch.zeros_like(u)
    to_data[:, :1], to_mean[:, :1] = f - u[:, :1], u[:, :1].mean() - u[:, :1]
    return [*noise, torch.ones_like(u), pixel, to_data, to_mean]


@pytest.mark.parametrize("name", MODELS)
def test_no_perturbation_improves_the_limit(name):
    f = step_with_noise()
    energy = energy_of(name, f, parameters=NARROW)
    u = minimise(name, energy, f, 1200).u
    lowest = float(energy.value(u))
    assert lowest < 0.9 * float(energy.value(first_estimate(name, f)))
    for direction in directions(u, f):
        for length in (0.3, 0.03, -0.03, -0.3):
            assert float(energy.value(u + length * direction)) > lowest * (1 - 1e-4)


def matrix(K):
    """K as a sparse matrix."""
    n = int(np.prod(K.in_shape))
    columns = K(torch.eye(n, dtype=torch.float64).view(n, *K.in_shape)).flatten(1)
    return csr_array(columns.mT.numpy())


def least_by_linear_programming(energy, f, lam):
    """min sum_i <w_i, |K_i u|> + <lam, |u_0 - f|> with s >= |.| as extra unknowns."""
    terms = [(matrix(term.K), term.F.w.flatten().numpy(), None) for term in energy.terms]
    n, m = terms[0][0].shape[1], f.numel()
    terms.append((csr_array(np.eye(m, n)), lam.flatten().numpy(), f.flatten().numpy()))
    K = bmat([[matrix] for matrix, _, _ in terms]).tocsr()
    offset = np.concatenate([np.zeros(matrix.shape[0]) if b is None else b for matrix, _, b in terms])
    I = identity(K.shape[0])  # noqa: E741
    A, b = bmat([[K, -I], [-K, -I]]), np.concatenate([offset, -offset])
    cost = np.concatenate([np.zeros(n), *[w for _, w, _ in terms]])
    return linprog(cost, A_ub=A, b_ub=b, bounds=(None, None)).fun


@pytest.mark.parametrize("name", ["nltgv-l1", "nlh-l1"])
def test_absolute_models_reach_the_optimum_of_their_linear_program(name):
    f, lam = step_with_noise((6, 6)), 0.3 + uniform(1, 1, 6, 6, seed=8)
    energy = energy_of(name, f, lam, size=(6, 6), parameters=NARROW.model_copy(update={"eps": 0.0}))
    found = minimise(name, energy, f, 1500).history[-1].energy
    least = least_by_linear_programming(energy, f, lam)
    assert least - 1e-7 <= found <= least * (1 + 1e-3)
