"""The step: by hand on two pixels, differentiable in everything, without side effects."""

from dataclasses import replace

import pytest
import torch
from problems import dual_steps, energy_of, first_estimate, step_with_noise, uniform
from torch.autograd import gradcheck

from primaldepth.operators import PairwiseDifference, half_window
from primaldepth.operators.pairwise import available_backends, use_backend
from primaldepth.variational import (
    MODELS,
    Absolute,
    Energy,
    Huber,
    OnDepth,
    Quadratic,
    SolverWorkspace,
    State,
    StepSizes,
    Term,
    preconditioned,
    primal_dual_step,
)


def pixels(*numbers):
    return torch.tensor(numbers, dtype=torch.float64).view(1, 1, 1, -1)


def two_pixels(w=2.0, eps=0.5, f=(0.0, 4.0), lam=1.0, data=Quadratic):
    """E(u) = h_eps,w(u_0 - u_1) + lam / 2 |u - f|^2."""
    return Energy(
        (Term(PairwiseDifference((1, 2), [(0, 1)]), Huber(w, eps)),), OnDepth(data(pixels(*f), lam))
    )


def test_three_steps_by_hand():
    """K u = u_0 - u_1 at the first pixel and 0 at the second; tau = 1/4, sigma = 1/2, theta = 1.

    1  p: (1 + 0.5 (0 - 4)) / 1.25 = -0.8
       u: ((0 + 0.2) / 1.25, (4 - 0.2 + 1) / 1.25) = (0.16, 3.84);  u_bar = (0.32, 3.68)
    2  p: (-0.8 + 0.5 (0.32 - 3.68)) / 1.25 = -1.984
       u: ((0.16 + 0.496) / 1.25, (3.84 - 0.496 + 1) / 1.25) = (0.5248, 3.4752);  u_bar = (0.8896, 3.1104)
    3  p: (-1.984 + 0.5 (0.8896 - 3.1104)) / 1.25 = -2.47552, clamped to -2
       u: ((0.5248 + 0.5) / 1.25, (3.4752 - 0.5 + 1) / 1.25) = (0.81984, 3.18016)
    """
    u = pixels(0.0, 4.0)
    state = State(u, u, (pixels(1.0, 0.0),))
    expected = [
        ((-0.8, 0.0), (0.16, 3.84), (0.32, 3.68)),
        ((-1.984, 0.0), (0.5248, 3.4752), (0.8896, 3.1104)),
        ((-2.0, 0.0), (0.81984, 3.18016), (1.11488, 2.88512)),
    ]
    for p, u, u_bar in expected:
        state = primal_dual_step(two_pixels(), state, StepSizes(0.25, (0.5,)))
        assert state.p[0].flatten().tolist() == pytest.approx(p, abs=1e-14)
        assert state.u.flatten().tolist() == pytest.approx(u, abs=1e-14)
        assert state.u_bar.flatten().tolist() == pytest.approx(u_bar, abs=1e-14)


def test_theta_scales_the_extrapolation():
    u = pixels(0.0, 4.0)
    state = primal_dual_step(two_pixels(), State(u, u, (pixels(1.0, 0.0),)), StepSizes(0.25, (0.5,), 0.5))
    assert state.u_bar.flatten().tolist() == pytest.approx([0.24, 3.76])


def test_a_new_state_has_no_dual():
    f = step_with_noise()
    state = State.start(energy_of("atgv-l2"), first_estimate("atgv-l2", f))
    assert [tuple(p.shape) for p in state.p] == [(1, 2, 12, 12), (1, 3, 12, 12)]
    assert all(bool((p == 0).all()) for p in state.p)
    assert state.u_bar is state.u


SIZE, OFFSETS = (3, 4), half_window(3)


@pytest.mark.parametrize("data", [Quadratic, Absolute])
def test_gradients_of_everything(data):
    K = PairwiseDifference(SIZE, OFFSETS)

    def step(u, p, w, f, lam, eps, tau, sigma):
        energy = Energy((Term(K, Huber(w, eps)),), OnDepth(data(f, lam)))
        after = primal_dual_step(energy, State(u, u, (p,)), StepSizes(tau, (sigma,)))
        return after.u, after.u_bar, after.p[0]

    N = len(OFFSETS)
    shapes = [(1, *SIZE), (N, *SIZE), (N, *SIZE), (1, *SIZE), (1, *SIZE), (N, 1, 1), (1, *SIZE), (N, *SIZE)]
    inputs = [uniform(1, *shape, seed=i) + (0.1 if i > 1 else 0.0) for i, shape in enumerate(shapes)]
    assert gradcheck(step, [tensor.requires_grad_() for tensor in inputs])


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_state_and_steps_for_every_model(name):
    f = step_with_noise((4, 4))
    energy = energy_of(name, f, size=(4, 4))
    u = first_estimate(name, f) + uniform(1, MODELS[name].channels, 4, 4, seed=3)
    p = tuple(0.2 * uniform(1, *term.K.out_shape, seed=4) for term in energy.terms)
    tau = torch.tensor(0.05, dtype=torch.float64)
    sigma = torch.tensor(0.04, dtype=torch.float64)

    def step(u, tau, sigma, *p):
        after = primal_dual_step(energy, State(u, u, p), StepSizes(tau, (sigma,) * len(p)))
        return after.u, *after.p

    assert gradcheck(step, [tensor.requires_grad_() for tensor in (u, tau, sigma, *p)], fast_mode=True)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_finite_where_everything_is_flat(name):
    """The first step of a network starts with p = 0 and often with constant depth."""
    f = torch.ones(1, 1, 4, 4, dtype=torch.float64)
    energy = energy_of(name, f, size=(4, 4))
    u = first_estimate(name, f).requires_grad_()
    after = primal_dual_step(energy, State.start(energy, u), preconditioned(energy, f))
    sum(tensor.sum() for tensor in (after.u, *after.p)).backward()
    assert torch.isfinite(u.grad).all()


def snapshot(state, steps):
    tensors = [state.u, state.u_bar, *state.p, steps.tau, *dual_steps(steps)]
    return [tensor.clone() for tensor in tensors]


@pytest.mark.parametrize("name", MODELS)
def test_the_step_changes_nothing_it_is_given(name):
    f = step_with_noise()
    energy = energy_of(name, f)
    steps = preconditioned(energy, f)
    state = primal_dual_step(energy, State.start(energy, first_estimate(name, f)), steps)
    before, value = snapshot(state, steps), energy.value(state.u)
    after = primal_dual_step(energy, state, steps)
    assert not after.u.equal(state.u)
    assert all(a.equal(b) for a, b in zip(before, snapshot(state, steps), strict=True))
    assert energy.value(state.u).equal(value)


@pytest.mark.parametrize("backend", [name for name in available_backends() if name != "triton"])
@pytest.mark.parametrize("name", MODELS)
def test_every_backend_takes_the_step_of_the_definition(name, backend):
    f = step_with_noise((9, 13))
    energy = energy_of(name, f, size=(9, 13))
    for steps in (preconditioned(energy, f), StepSizes.uniform(energy)):
        state = fast = State.start(energy, first_estimate(name, f))
        for _ in range(5):
            with use_backend("torch"):
                state = primal_dual_step(energy, state, steps)
            with use_backend(backend):
                fast = primal_dual_step(energy, fast, steps)
        pairs = zip((state.u, *state.p), (fast.u, *fast.p), strict=True)
        assert max(float((a - b).abs().max()) for a, b in pairs) < 1e-12


def test_states_are_frozen():
    state = State.start(two_pixels(), pixels(0.0, 4.0))
    with pytest.raises(AttributeError):
        state.u = pixels(1.0, 1.0)
    assert replace(state, u=pixels(1.0, 1.0)).u_bar is state.u_bar


@pytest.mark.parametrize("backend", [name for name in available_backends() if name != "triton"])
@pytest.mark.parametrize("name", ["nlh-l2", "nltgv-l2", "atgv-l2"])
def test_a_workspace_changes_neither_results_nor_the_start(name, backend):
    f = step_with_noise()
    energy = energy_of(name, f)
    start = State.start(energy, first_estimate(name, f))
    before, steps, workspace = [p.clone() for p in start.p], preconditioned(energy, f), SolverWorkspace()
    fresh = shared = start
    with torch.no_grad(), use_backend(backend):
        for _ in range(3):
            fresh = primal_dual_step(energy, fresh, steps)
            shared = primal_dual_step(energy, shared, steps, workspace)
            assert shared.u.equal(fresh.u)
            assert all(a.equal(b) for a, b in zip(shared.p, fresh.p, strict=True))
    assert all(a.equal(b) for a, b in zip(start.p, before, strict=True))
