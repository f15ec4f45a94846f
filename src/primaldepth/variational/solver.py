"""Minimise an energy by repeating the primal-dual step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from primaldepth.variational.energies import Energy
from primaldepth.variational.primal_dual import SolverWorkspace, State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes, check_step_sizes


@dataclass(frozen=True, slots=True)
class SolverProgress:
    """Progress of the solver after `iteration` steps; of the worst image of the batch."""

    iteration: int
    energy: float
    gap: float | None
    change: float


@dataclass(frozen=True, slots=True)
class Solution:
    """The last state, the path to it, and why it ended there."""

    state: State
    history: tuple[SolverProgress, ...]
    stopped: Literal["gap", "change", "iterations"]

    @property
    def u(self) -> Tensor:
        """The minimiser, (B, C, H, W)."""
        return self.state.u

    @property
    def iterations(self) -> int:
        """Steps taken in this call."""
        return self.history[-1].iteration


def _measure(energy: Energy, before: Tensor, after: State, iteration: int) -> SolverProgress:
    value = energy.value(after.u)
    gap = energy.gap(after.u, after.p)
    scale = after.u[:, :1].flatten(1).std(dim=1, correction=0).clamp_min(1e-12)
    change = (after.u - before)[:, :1].flatten(1).pow(2).mean(dim=1).sqrt() / scale
    return SolverProgress(
        iteration, float(value.max()), None if gap is None else float(gap.max()), float(change.max())
    )


def _reason(
    progress: SolverProgress, gap_tolerance: float, change_tolerance: float
) -> Literal["gap", "change"] | None:
    if progress.gap is not None and progress.gap <= gap_tolerance * abs(progress.energy):
        return "gap"
    return "change" if change_tolerance > 0.0 and progress.change <= change_tolerance else None


def solve(
    energy: Energy,
    start: Tensor | State,
    steps: StepSizes | None = None,
    *,
    iterations: int = 200,
    gap_tolerance: float = 0.0,
    change_tolerance: float = 0.0,
    check_every: int = 20,
    callback: Callable[[SolverProgress], None] | None = None,
) -> Solution:
    """Run up to `iterations` primal-dual steps from `start`.

    Stops early when the duality gap (where it exists) falls to `gap_tolerance` of the energy,
    or when one step changes the depth by less than `change_tolerance` of its spread (RMS).
    Handing the returned state back as `start` goes on exactly where it ended (warm start).

    Args:
        energy: to be minimised.
        start: (B, C, H, W) first estimate, or the state of an earlier call.
        steps: checked for convergence; uniform steps when None.
        iterations: at most so many steps.
        gap_tolerance: stop when the duality gap is this part of the energy; 0: never.
        change_tolerance: stop when a step changes the depth by less than this part of its spread; 0: never.
        check_every: steps between two checks, and between two calls of `callback`.
        callback: called with the progress.

    Returns:
        The last state, and how far it got.

    Raises:
        StepSizeError: if convergence is not guaranteed for `steps`.

    Example:
        >>> import torch
        >>> from primaldepth.variational import DataTerm, ModelParameters, build_energy, solve
        >>> guide, f = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8)
        >>> energy = build_energy("atv-l2", guide, DataTerm(f, torch.ones_like(f)), ModelParameters())
        >>> solution = solve(energy, f, iterations=50)
        >>> bool(energy.value(solution.u) < energy.value(f))
        True
    """
    if iterations < 1 or check_every < 1:
        raise ValueError(f"iterations = {iterations}, check_every = {check_every}: both must be at least 1")
    state = start if isinstance(start, State) else State.start(energy, start)
    steps = steps if steps is not None else StepSizes.uniform(energy)
    check_step_sizes(energy, steps, state.u)
    history: list[SolverProgress] = []
    workspace = SolverWorkspace()
    for iteration in range(1, iterations + 1):
        before, state = state.u, primal_dual_step(energy, state, steps, workspace)
        if iteration % check_every and iteration < iterations:
            continue
        with torch.no_grad():
            history.append(_measure(energy, before, state, iteration))
        if callback is not None:
            callback(history[-1])
        reason = _reason(history[-1], gap_tolerance, change_tolerance)
        if reason is not None:
            return Solution(state, tuple(history), reason)
    return Solution(state, tuple(history), "iterations")
