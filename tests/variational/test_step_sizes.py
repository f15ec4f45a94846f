"""Steps that converge are accepted, all others refused."""

from dataclasses import replace

import pytest
import torch
from problems import dual_steps, energy_of, first_estimate, step_with_noise, uniform

from primaldepth.core.errors import StepSizeError
from primaldepth.operators import Resample
from primaldepth.operators.pairwise import use_backend
from primaldepth.variational import MODELS, State, StepSizes, check_step_sizes, preconditioned
from primaldepth.variational.step_sizes import PAIR_FLOOR
from term_kernels import fused_dual_step

every_model = pytest.mark.parametrize("name", MODELS)
SENSOR = Resample((12, 12), (5, 4))


def problem(name, through_sensor=False):
    """The energy and a first estimate."""
    f = step_with_noise((5, 4)) if through_sensor else step_with_noise()
    energy = energy_of(name, f, A=SENSOR if through_sensor else None)
    return energy, first_estimate(name, step_with_noise())


def scaled(steps, factor):
    return replace(steps, tau=steps.tau * factor)


def preconditioned_norm(energy, steps, u):
    """||Sigma^1/2 K T^1/2|| by the power method, all terms together."""
    tau = torch.as_tensor(steps.tau).sqrt()
    x = torch.randn(u.shape, generator=torch.Generator().manual_seed(0), dtype=u.dtype)
    for _ in range(100):
        x = x / x.norm()
        parts = [sigma * term.K(tau * x) for term, sigma in zip(energy.terms, dual_steps(steps), strict=True)]
        x = tau * energy.adjoint(tuple(parts))
    return float(x.norm().sqrt())


@every_model
@pytest.mark.parametrize("through_sensor", [False, True])
@pytest.mark.parametrize("ratio", [0.01, 1.0, 30.0])
def test_made_steps_are_accepted(name, through_sensor, ratio):
    energy, u = problem(name, through_sensor)
    for steps in (StepSizes.uniform(energy, ratio), preconditioned(energy, u, ratio)):
        check_step_sizes(energy, steps, u)


@every_model
@pytest.mark.parametrize("through_sensor", [False, True])
def test_made_steps_keep_the_norm_at_most_one(name, through_sensor):
    energy, u = problem(name, through_sensor)
    for steps in (StepSizes.uniform(energy), preconditioned(energy, u)):
        norm = preconditioned_norm(energy, steps, u)
        assert 0.2 < norm <= 1 + 1e-9


@every_model
def test_made_steps_are_accepted_in_single_precision(name):
    f = step_with_noise().float()
    energy = energy_of(name, f, guide=uniform(1, 3, 12, 12).float())
    u = first_estimate(name, f)
    check_step_sizes(energy, preconditioned(energy, u), u)


@every_model
def test_longer_uniform_steps_are_refused(name):
    energy, u = problem(name)
    with pytest.raises(StepSizeError, match=r"= 1\.1 > 1.*divide tau or sigma by 1\.1"):
        check_step_sizes(energy, scaled(StepSizes.uniform(energy), 1.1), u)


@pytest.mark.parametrize("name", ["nltv-l2", "nlh-l2", "nlh-l1", "nltgv-l2", "nltgv-l1"])
def test_longer_steps_per_pixel_are_refused(name):
    energy, u = problem(name)
    with pytest.raises(StepSizeError, match="may diverge"):
        check_step_sizes(energy, scaled(preconditioned(energy, u), 1.1), u)


@pytest.mark.parametrize("name", ["atv-l2", "atgv-l2"])
def test_twice_too_long_steps_per_pixel_are_refused(name):
    energy, u = problem(name)
    with pytest.raises(StepSizeError, match="may diverge"):
        check_step_sizes(energy, scaled(preconditioned(energy, u), 2.0), u)


def test_one_pixel_with_too_long_a_step_is_enough():
    energy, u = problem("nlh-l2")
    steps = preconditioned(energy, u)
    tau = steps.tau.clone()
    tau[..., 6, 6] *= 1.2
    with pytest.raises(StepSizeError, match="may diverge"):
        check_step_sizes(energy, replace(steps, tau=tau), u)


def test_numbers_and_maps_may_be_mixed():
    energy, u = problem("nlh-l2")
    steps = preconditioned(energy, u)
    check_step_sizes(energy, replace(steps, tau=float(steps.tau.min())), u)
    with pytest.raises(StepSizeError, match="may diverge"):
        check_step_sizes(energy, replace(steps, tau=2 * float(steps.tau.max())), u)


@pytest.mark.parametrize("bad", [0.0, -0.1, float("nan"), float("inf"), torch.tensor([0.1, -0.1])])
def test_steps_must_be_positive_and_finite(bad):
    energy, u = problem("nlh-l2")
    for steps in (StepSizes(bad, (0.1,)), StepSizes(0.1, (bad,))):
        with pytest.raises(StepSizeError, match="positive and finite"):
            check_step_sizes(energy, steps, u)


def test_there_is_one_dual_step_per_term():
    energy, u = problem("atgv-l2")
    with pytest.raises(StepSizeError, match="1 dual steps for 2 terms"):
        check_step_sizes(energy, StepSizes(0.1, (0.1,)), u)


@pytest.mark.parametrize("theta", [-0.1, 0.0, 1.5, float("nan")])
def test_theta_lies_between_zero_and_one(theta):
    """Without extrapolation (theta = 0) the iteration circles around the solution for ever."""
    energy, u = problem("nlh-l2")
    with pytest.raises(StepSizeError, match="theta"):
        check_step_sizes(energy, StepSizes(0.01, (0.01,), theta), u)


def test_uniform_steps_use_the_whole_bound():
    energy, _ = problem("atgv-l2")
    steps = StepSizes.uniform(energy, ratio=4.0)
    product = steps.tau * sum(sigma * L2 for sigma, L2 in zip(steps.sigma, energy.squared_norms, strict=True))
    assert product == pytest.approx(1.0)
    assert steps.sigma[0] / steps.tau == pytest.approx(4.0)


def test_steps_of_an_image_do_not_depend_on_its_batch():
    lam = torch.cat([torch.full((1, 1, 5, 4), 1e-6), torch.full((1, 1, 5, 4), 1.0)]).double()
    lam[:, :, 2, 1] = 0.0
    f, guide, u = uniform(2, 1, 5, 4), uniform(2, 3, 12, 12), uniform(2, 1, 12, 12)
    both = preconditioned(energy_of("nlh-l2", f, lam, A=SENSOR, guide=guide), u)
    alone = preconditioned(energy_of("nlh-l2", f[:1], lam[:1], A=SENSOR, guide=guide[:1]), u[:1])
    assert torch.allclose(both.tau[:1], alone.tau, rtol=1e-12)
    assert all(
        torch.allclose(a[:1], b, rtol=1e-12) for a, b in zip(dual_steps(both), dual_steps(alone), strict=True)
    )


@pytest.mark.parametrize("name", ["nlh-l2", "nltgv-l2", "nltgv-l1"])
def test_steps_of_pairs_are_their_weights_over_their_row_sums(name):
    energy, u = problem(name)
    for term, sigma in zip(energy.terms, dual_steps(preconditioned(energy, u, 3.0)), strict=True):
        rows = term.K.magnitude()(torch.ones((1, *term.K.in_shape), dtype=u.dtype))
        expected = 3.0 * (term.F.w + PAIR_FLOOR) / rows
        assert torch.allclose(sigma[rows > 0], expected[rows > 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["nltv-l2", "nlh-l2", "nltgv-l2", "nltgv-l1"])
def test_the_kernels_take_the_made_steps(name):
    """Steps as maps would send every iteration through tensors of all differences."""
    pytest.importorskip("numba")
    energy, u = problem(name)
    steps, p = preconditioned(energy, u), State.start(energy, u).p
    with use_backend("numba"):
        for term, p_i, sigma in zip(energy.terms, p, steps.sigma, strict=True):
            assert fused_dual_step(term.K, term.F, p_i, u, sigma, None) is not None


@pytest.mark.parametrize("name", ["atv-l2", "atgv-l2"])
def test_maps_of_one_pixel_are_checked_as_maps(name):
    """No difference exists there, so any step will do, while the bound of ||K|| knows nothing of the size."""
    f = step_with_noise((1, 1))
    energy = energy_of(name, f, size=(1, 1))
    check_step_sizes(energy, preconditioned(energy, f), f)
