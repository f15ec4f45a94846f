"""Step sizes for which the primal-dual iteration converges, and the check that refuses others."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.errors import StepSizeError
from primaldepth.operators import LinearOperator
from primaldepth.variational.energies import Energy, Term
from primaldepth.variational.kernels import WeightedStep, as_number
from primaldepth.variational.penalties import Number

TOLERANCE = 1e-5
PAIR_FLOOR = 1e-3  # added to the weights of pairs, which lie in [0, 1], so that no step is 0


@dataclass(frozen=True, slots=True)
class StepSizes:
    """tau for the primal variable, one sigma per term, theta for the extrapolation.

    Numbers, or tensors that give every pixel (and pair) its own step.
    """

    tau: Number
    sigma: tuple[Number | WeightedStep, ...]
    theta: Number = 1.0

    @classmethod
    def uniform(cls, energy: Energy, ratio: float = 1.0) -> "StepSizes":
        """Return steps with tau sigma L^2 = 1, one sigma for all terms.

        Args:
            energy: whose norm bounds give L.
            ratio: sigma / tau.
        """
        L = sum(energy.squared_norms) ** 0.5
        return cls(1.0 / (L * ratio**0.5), (ratio**0.5 / L,) * len(energy.terms))


def _ones(term: Term, like: Tensor) -> Tensor:
    return torch.ones((1, *term.K.in_shape), dtype=like.dtype, device=like.device)


def _pair_step(K: LinearOperator, weight: Tensor, ratio: float) -> WeightedStep | None:
    """Return (w + floor) / |K| 1 of pairs; row sums: 2 for differences, 2 + |dy| + |dx| with slopes."""
    rows = K.row_sums
    if rows is None:
        return None
    if len(set(rows)) == 1:
        return WeightedStep(ratio * PAIR_FLOOR / rows[0], ratio / rows[0], weight)
    return WeightedStep(ratio * PAIR_FLOOR, ratio, weight, rows)


def _row_sums(term: Term, like: Tensor) -> Tensor:
    """Return |K| 1, (1, *out_shape), or its largest channel where the penalty couples them, (1, 1, H, W)."""
    rows = term.K.magnitude()(_ones(term, like))
    if term.F.couples_channels:
        rows = rows.amax(dim=1, keepdim=True)
    return rows.clamp_min(1e-6)


def _floor(weight: Tensor) -> Tensor:
    """Return 1e-3 of the largest weight of each image, so that no image of a batch depends on the others."""
    largest = weight.amax(dim=(1, 2, 3), keepdim=True) if weight.ndim == 4 else weight
    return (1e-3 * largest).clamp_min(1e-12)


def preconditioned(energy: Energy, like: Tensor, ratio: float = 1.0) -> StepSizes:
    """Return diagonal steps: sigma_i = ratio s_i / |K_i| 1,  tau = 1 / (ratio sum_i |K_i|' s_i).

    s_i is the size of the dual variable of term i (its weights), so pixels whose pairs are
    weak take long steps. ||Sigma^1/2 K T^1/2|| <= 1 holds for any s_i > 0, which
    generalises Pock and Chambolle (2011).

    Args:
        energy: its terms K_i with their weights.
        like: (B, C, H, W) a tensor of the size, type and device of u.
        ratio: factor of the dual steps and divisor of the primal ones.

    Returns:
        Steps that `check_step_sizes` accepts.
    """
    sigma: list[Number | WeightedStep] = []
    columns = torch.zeros((), dtype=like.dtype, device=like.device)
    for term in energy.terms:
        weight = torch.as_tensor(term.F.dual_scale, dtype=like.dtype, device=like.device)
        step = _pair_step(term.K, weight, ratio)
        scale = weight + (PAIR_FLOOR if step is not None else _floor(weight))
        scale = scale.expand(-1 if weight.ndim == 4 else 1, *term.K.out_shape)
        if step is not None:
            sigma.append(step)
        else:
            rows = _row_sums(term, like)
            sigma.append(ratio * scale[:, : rows.shape[1]] / rows)
        columns = columns + term.K.magnitude().adjoint(scale.contiguous())
    return StepSizes(1.0 / (ratio * columns.clamp_min(1e-12)), tuple(sigma))


def check_step_sizes(energy: Energy, steps: StepSizes, like: Tensor) -> None:
    """Raise an error for steps for which convergence is not guaranteed.

    Numbers: tau sum_i sigma_i L_i^2 <= 1. Tensors: tau(x) sum_i (|K_i|' (sigma_i |K_i| 1))(x) <= 1
    at every x, which bounds the norm of the preconditioned operator (Schur's test).

    Args:
        energy: its operators K_i with norm bounds L_i.
        steps: numbers, or tensors of one step for each element.
        like: (B, C, H, W) a tensor of the size, type and device of u.

    Raises:
        StepSizeError: if the condition does not hold.
    """
    if len(steps.sigma) != len(energy.terms):
        raise StepSizeError(f"{len(steps.sigma)} dual steps for {len(energy.terms)} terms")
    duals = [as_number(step) for step in steps.sigma]
    positive = [torch.as_tensor(step) for step in (steps.tau, *duals)]
    ranges = [torch.aminmax(step) for step in positive]
    if not all(bool((low > 0) & (high < math.inf)) for low, high in ranges):
        raise StepSizeError("step sizes must be positive and finite")
    if float(steps.theta) != 1.0:  # below 1 the iteration can circle for ever
        raise StepSizeError(f"theta = {steps.theta}, and convergence is only proven for 1")
    if all(step.numel() == 1 and step.ndim < 4 for step in positive):  # maps of one pixel are maps
        pairs = zip(duals, energy.squared_norms, strict=True)
        product = float(steps.tau) * sum(float(sigma) * square for sigma, square in pairs)
    else:
        product = _schur_bound(energy, steps.tau, duals, like)
    if product > 1.0 + TOLERANCE:
        raise StepSizeError(
            f"tau * sigma * L^2 = {product:.4g} > 1",
            "the iteration may diverge",
            f"divide tau or sigma by {product:.4g}",
        )


def _schur_bound(energy: Energy, tau: Number, sigmas: list[Number], like: Tensor) -> float:
    columns = torch.zeros((), dtype=like.dtype, device=like.device)
    for term, sigma in zip(energy.terms, sigmas, strict=True):
        magnitude = term.K.magnitude()
        columns = columns + magnitude.adjoint(sigma * magnitude(_ones(term, like)))
    return float((tau * columns).max())
