"""Whole solves of the local models: the fused kernels against the definition."""

import pytest
import torch
from problems import energy_of, first_estimate, step_with_noise, uniform

from primaldepth.operators import Resample
from primaldepth.operators.pairwise import use_backend
from primaldepth.variational import StepSizes, preconditioned, solve
from primaldepth.variational.primal_dual import State
from term_kernels import fused_dual_step

pytest.importorskip("numba")

SIZE, LOW = (29, 34), (10, 12)


def problem(name, dtype, *, resampled):
    """The model on a pair of images, and where to start."""
    f = step_with_noise(LOW if resampled else SIZE).repeat(2, 1, 1, 1).to(dtype)
    guide = uniform(2, 3, *SIZE, seed=2).to(dtype)
    A = Resample(SIZE, LOW) if resampled else None
    energy = energy_of(name, f, torch.full_like(f, 0.5), A=A, size=SIZE, guide=guide)
    return energy, first_estimate(name, step_with_noise(SIZE).repeat(2, 1, 1, 1).to(dtype))


@pytest.mark.parametrize("name", ["atv-l2", "atgv-l2"])
@pytest.mark.parametrize("resampled", [False, True])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("steps", [preconditioned, StepSizes.uniform])
def test_a_whole_solve_is_the_same(name, resampled, dtype, most, steps):
    energy, start = problem(name, dtype, resampled=resampled)
    chosen = steps(energy, start) if steps is preconditioned else steps(energy)
    found = {}
    for backend in ("torch", "numba"):
        with use_backend(backend):
            found[backend] = solve(energy, start, chosen, iterations=60)
    torch.testing.assert_close(found["numba"].u, found["torch"].u, rtol=0, atol=most * 8)  # depth spans 8
    last = [solution.history[-1] for solution in found.values()]
    assert last[0].energy == pytest.approx(last[1].energy, rel=most)


@pytest.mark.parametrize("name", ["atv-l2", "atgv-l2"])
def test_every_term_has_a_kernel_for_the_solvers_own_steps(name):
    energy, start = problem(name, torch.float32, resampled=True)
    state, steps = State.start(energy, start), preconditioned(energy, start)
    with use_backend("numba"):
        for term, p, sigma in zip(energy.terms, state.p, steps.sigma, strict=True):
            assert fused_dual_step(term.K, term.F, p, start, sigma, None) is not None
