"""The primal-dual step (Chambolle and Pock 2011), once, for solvers and networks alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.variational.energies import Energy, SimpleTerm, Unconstrained
from primaldepth.variational.fused import fused_descent
from primaldepth.variational.step_sizes import StepSizes


@dataclass(frozen=True, slots=True)
class State:
    """u, its extrapolation u_bar, and one dual variable per term."""

    u: Tensor
    u_bar: Tensor
    p: tuple[Tensor, ...]

    @classmethod
    def start(cls, energy: Energy, u: Tensor) -> "State":
        """From a first estimate u: (B, C, H, W), with p = 0."""
        p = tuple(u.new_zeros((u.shape[0], *term.K.out_shape)) for term in energy.terms)
        return cls(u, u, p)


def primal_dual_step(energy: Energy, state: State, steps: StepSizes, *, reuse: State | None = None) -> State:
    """One iteration; pure, differentiable in everything.

    p_i+  = prox_{sigma_i F_i*}(p_i + sigma_i K_i u_bar)
    u+    = prox_{tau G}(u - tau sum_i K_i' p_i+)
    u_bar = u+ + theta (u+ - u)

    Args:
        reuse: a state that nobody needs any more; its dual variables may be overwritten; may be `state`.

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
    spare = reuse.p if reuse is not None else (None,) * len(energy.terms)
    duals, pulls = [], []
    for term, p, sigma, memory in zip(energy.terms, state.p, steps.sigma, spare, strict=True):
        p_next, divergence = term.dual_step(p, state.u_bar, sigma, memory)
        duals.append(p_next)
        pulls.append(divergence)
    u_next, u_bar = _descend(energy.G, state.u, pulls, steps)
    return State(u_next, u_bar, tuple(duals))


def _descend(G: SimpleTerm, u: Tensor, pulls: list[Tensor], steps: StepSizes) -> tuple[Tensor, Tensor]:
    """u+ and u_bar."""
    fused = fused_descent(u, pulls, steps.tau, steps.theta) if isinstance(G, Unconstrained) else None
    if fused is not None:
        return fused
    pull = sum(pulls, torch.zeros((), dtype=u.dtype, device=u.device))
    u_next = G.prox(u - steps.tau * pull, steps.tau)
    return u_next, u_next + steps.theta * (u_next - u)
