"""The primal-dual step (Chambolle and Pock 2011), once, for solvers and networks alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.variational.energies import Energy, SimpleTerm
from primaldepth.variational.kernels import table
from primaldepth.variational.step_sizes import StepSizes


@dataclass(frozen=True, slots=True)
class State:
    """u, its extrapolation u_bar, and one dual variable per term."""

    u: Tensor
    u_bar: Tensor
    p: tuple[Tensor, ...]

    @classmethod
    def start(cls, energy: Energy, u: Tensor) -> "State":
        """Return the state with p = 0 and u_bar = u.

        Args:
            energy: whose terms have the dual variables.
            u: (B, C, H, W) first estimate.
        """
        p = tuple(u.new_zeros((u.shape[0], *term.K.out_shape)) for term in energy.terms)
        return cls(u, u, p)


class SolverWorkspace:
    """Memory that the steps of one run share: the dual variables of the last step, for the next to write to.

    So a state that a step made with a workspace is overwritten by the next step with it. Memory that did not
    come from such a step is never written to.
    """

    def __init__(self) -> None:
        self.p: tuple[Tensor, ...] = ()


def primal_dual_step(
    energy: Energy, state: State, steps: StepSizes, workspace: SolverWorkspace | None = None
) -> State:
    """Return the state after one iteration; pure, and differentiable in everything.

    p_i+  = prox_{sigma_i F_i*}(p_i + sigma_i K_i u_bar)
    u+    = prox_{tau G}(u - tau sum_i K_i' p_i+)
    u_bar = u+ + theta (u+ - u)

    Args:
        energy: E(u) = sum_i F_i(K_i u) + G(u).
        state: not modified, unless its dual variables are those that the workspace holds.
        steps: tau, sigma_i and theta.
        workspace: of a run that needs none of its earlier states; None for fresh memory.

    Returns:
        The next state.

    Example:
        >>> import torch
        >>> from primaldepth.operators import ForwardDifference
        >>> from primaldepth.variational import (
        ...     Energy, Huber, OnDepth, Quadratic, State, StepSizes, Term, primal_dual_step,
        ... )
        >>> f = torch.tensor([[[[0.0, 1.0]]]])
        >>> terms = (Term(ForwardDifference((1, 2)), Huber(w=10.0)),)
        >>> energy = Energy(terms, OnDepth(Quadratic(f, 1.0)))
        >>> state, steps = State.start(energy, f), StepSizes.uniform(energy)
        >>> for _ in range(200):
        ...     state = primal_dual_step(energy, state, steps)
        >>> state.u.flatten()  # a strong penalty of differences leaves the mean
        tensor([0.5000, 0.5000])
    """
    workspace = SolverWorkspace() if workspace is None else workspace
    memory = workspace.p or (None,) * len(energy.terms)
    duals, pulls = [], []
    for term, p, sigma, out in zip(energy.terms, state.p, steps.sigma, memory, strict=True):
        p_next, divergence = term.dual_step(p, state.u_bar, sigma, out)
        duals.append(p_next)
        pulls.append(divergence)
    workspace.p = tuple(duals)
    return State(*_descend(energy.G, state.u, pulls, steps), workspace.p)


def _descend(G: SimpleTerm, u: Tensor, pulls: list[Tensor], steps: StepSizes) -> tuple[Tensor, Tensor]:
    """Return u+ and u_bar."""
    kernel = table("DESCENTS", u).get(type(G))
    if kernel is not None and kernel.fits(u, pulls, steps.tau, steps.theta):
        fused: tuple[Tensor, Tensor] = kernel.run(u, pulls, steps.tau, steps.theta)
        return fused
    pull = sum(pulls, torch.zeros((), dtype=u.dtype, device=u.device))
    u_next = G.prox(u - steps.tau * pull, steps.tau)
    return u_next, u_next + steps.theta * (u_next - u)
