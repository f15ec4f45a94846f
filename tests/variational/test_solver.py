"""The loop around the step: resume, early stops, reports."""

import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from problems import energy_of, first_estimate, step_with_noise

from primaldepth.core.errors import StepSizeError
from primaldepth.variational import MODELS, StepSizes, preconditioned, solve


def same(a, b):
    return (
        a.u.equal(b.u) and a.u_bar.equal(b.u_bar) and all(x.equal(y) for x, y in zip(a.p, b.p, strict=True))
    )


@pytest.mark.parametrize("name", MODELS)
def test_resume_is_run_through(name):
    f = step_with_noise()
    energy, start = energy_of(name, f), first_estimate(name, f)
    steps = preconditioned(energy, f)
    whole = solve(energy, start, steps, iterations=30)
    part = solve(energy, start, steps, iterations=10)
    assert not same(part.state, whole.state)
    assert same(solve(energy, part.state, steps, iterations=20).state, whole.state)


def test_history_holds_every_check_and_the_last_iteration():
    f = step_with_noise()
    energy = energy_of("nlh-l2", f)
    solution = solve(energy, f, iterations=25, check_every=10)
    assert [progress.iteration for progress in solution.history] == [10, 20, 25]
    assert solution.iterations == 25
    assert solution.stopped == "iterations"
    assert solution.history[-1].energy == float(energy.value(solution.u))
    assert solution.history[-1].gap == float(energy.gap(solution.u, solution.state.p))


def test_callback_sees_the_history():
    f, seen = step_with_noise(), []
    solution = solve(energy_of("atv-l2", f), f, iterations=25, check_every=10, callback=seen.append)
    assert tuple(seen) == solution.history


def test_a_small_gap_stops():
    f = step_with_noise()
    energy = energy_of("nlh-l2", f)
    solution = solve(energy, f, preconditioned(energy, f), iterations=500, gap_tolerance=1e-3, check_every=5)
    *before, last = (progress.gap / progress.energy for progress in solution.history)
    assert solution.stopped == "gap"
    assert last <= 1e-3 < min(before)
    assert solution.iterations < 500


def test_a_small_change_stops():
    f = step_with_noise()
    energy = energy_of("nlh-l1", f)
    steps = preconditioned(energy, f)
    solution = solve(energy, f, steps, iterations=500, change_tolerance=1e-4, check_every=5)
    *before, last = (progress.change for progress in solution.history)
    assert solution.stopped == "change"
    assert last <= 1e-4 < min(before)
    assert solution.iterations < 500


def test_change_is_relative_to_the_spread_of_the_depth():
    f = step_with_noise()
    solution = solve(energy_of("nlh-l2", f), f, iterations=1)
    expected = (solution.u - f).square().mean().sqrt() / solution.u.std()
    assert solution.history[-1].change == pytest.approx(float(expected), rel=1e-2)


def test_the_worst_image_of_a_batch_is_reported():
    f = step_with_noise()
    guide = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    both = torch.cat([f, 3 * f])
    batch = solve(energy_of("nlh-l2", both, guide=guide.repeat(2, 1, 1, 1)), both, iterations=5).history[-1]
    single = solve(energy_of("nlh-l2", 3 * f, guide=guide), 3 * f, iterations=5).history[-1]
    assert batch.energy == pytest.approx(single.energy)
    assert batch.gap == pytest.approx(single.gap)


def test_the_start_is_untouched():
    f = step_with_noise()
    start = f.clone()
    solve(energy_of("nlh-l2", f), start, iterations=3)
    assert start.equal(f)


@pytest.mark.parametrize("name", MODELS)
def test_a_state_to_go_on_from_is_untouched(name):
    f = step_with_noise()
    energy = energy_of(name, f)
    state = solve(energy, first_estimate(name, f), iterations=2).state
    before = deepcopy(state)
    assert not same(solve(energy, state, iterations=3).state, state)
    assert same(state, before)


def test_one_pixel_is_a_problem_too():
    f = torch.full((1, 1, 1, 1), 3.0, dtype=torch.float64)
    energy = energy_of("nlh-l2", f, size=(1, 1))
    solution = solve(energy, f + 1, preconditioned(energy, f), iterations=5)
    assert float(solution.u) == pytest.approx(3.0)
    assert solution.history[-1].change >= 0


@pytest.mark.parametrize(("iterations", "check_every"), [(0, 1), (-3, 1), (10, 0)])
def test_counts_must_be_positive(iterations, check_every):
    f = step_with_noise()
    with pytest.raises(ValueError, match="at least 1"):
        solve(energy_of("nlh-l2", f), f, iterations=iterations, check_every=check_every)


def test_step_sizes_are_checked_before_the_first_step():
    f, seen = step_with_noise(), []
    energy = energy_of("nlh-l2", f)
    with pytest.raises(StepSizeError, match="may diverge"):
        solve(energy, f, StepSizes(1.0, (1.0,)), iterations=3, check_every=1, callback=seen.append)
    assert not seen


THREADS = """
import torch
torch.set_num_threads(1)
from primaldepth.core.frame import Frame
from primaldepth.methods import create
depth = torch.ones(1, 1, 8, 8)
create("nlh-l2", {"iterations": 2})(Frame(depth, depth > 0, torch.ones(1, 1, 8, 8)))
print(torch.get_num_threads())
"""


def test_the_callers_number_of_threads_is_respected():
    """In a process of its own, since compiled code starts its threads once."""
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1"
