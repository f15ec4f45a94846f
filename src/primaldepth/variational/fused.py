"""The seam between the primal-dual step and fused kernels: same result, one pass over memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.operators.base import Composition, LinearOperator
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, pick_backend
from primaldepth.variational.fused_local import local_step, readable, sensor_step
from primaldepth.variational.penalties import GroupNorm, Huber, Number, Penalty


@dataclass(frozen=True, slots=True)
class WeightedStep:
    """A dual step (base + slope w) / rows[k] for pair k, without a tensor of its own; no rows: all 1."""

    base: float
    slope: float
    w: Tensor
    rows: tuple[float, ...] | None = None

    @property
    def tensor(self) -> Tensor:
        """The same as a tensor."""
        step = self.base + self.slope * self.w
        return step if self.rows is None else step / step.new_tensor(self.rows).view(-1, 1, 1)


def fused_dual_step(
    K: LinearOperator,
    F: Penalty,
    p: Tensor,
    u_bar: Tensor,
    sigma: Number | WeightedStep,
    reuse: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """p+ and K' p+ by a fused kernel, or None where there is none for this case."""
    if torch.compiler.is_compiling():  # an exporter follows the definition, for sizes it does not know
        return None
    if isinstance(F, Huber):
        return _pairwise_step(K, F, p, u_bar, sigma, reuse)
    if isinstance(sigma, WeightedStep):
        return None
    if isinstance(F, GroupNorm):
        return local_step(K, F.w, p, u_bar, sigma, reuse)
    return sensor_step(K, F, p, u_bar, sigma)


def _pairwise_step(
    K: LinearOperator,
    F: Huber,
    p: Tensor,
    u_bar: Tensor,
    sigma: Number | WeightedStep,
    reuse: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """p+ and K' p+ for differences over the pairs of a window."""
    step = _step(F, sigma)
    if step is None or not isinstance(F.w, Tensor):
        return None
    if isinstance(K, Composition) and isinstance(K.outer, PairwiseDifference):
        inner = _pairwise_step(K.outer, F, p, K.inner(u_bar), sigma, reuse)
        return None if inner is None else (inner[0], K.inner.adjoint(inner[1]))
    if not isinstance(K, PairwiseDifference | PairwiseSlope):
        return None
    if not _plain(K, p, u_bar, F.w) or pick_backend(p) != "numba":
        return None
    rows = sigma.rows if isinstance(sigma, WeightedStep) else None
    if isinstance(K, PairwiseSlope):
        from primaldepth.operators.pairwise.cpu_slope import slope_step

        return slope_step(u_bar, p, F.w.expand(p.shape), K.offsets, step, rows, reuse)
    if rows is not None:
        return None
    from primaldepth.operators.pairwise.cpu import dual_step

    images, channels = u_bar.shape[0], K.in_shape[0]
    folded = (images * channels, len(K.offsets), *K.size)  # every channel is an image of its own
    out = reuse.view(folded) if reuse is not None else None
    w = F.w.expand(p.shape).reshape(folded)
    p_next, divergence = dual_step(u_bar.reshape(-1, 1, *K.size), p.reshape(folded), w, K.offsets, step, out)
    return p_next.view(p.shape), divergence.view(images, channels, *K.size)


def fused_value(K: LinearOperator, F: Penalty, u: Tensor) -> Tensor | None:
    """F(K u), shape (B,), by a fused kernel, or None where there is none for this case."""
    if isinstance(K, Composition) and isinstance(K.outer, PairwiseDifference):
        return fused_value(K.outer, F, K.inner(u))
    if not isinstance(K, PairwiseDifference | PairwiseSlope) or not isinstance(F, Huber):
        return None
    if isinstance(F.eps, Tensor) or not isinstance(F.w, Tensor):
        return None
    if not _plain(K, u, F.w) or pick_backend(u) != "numba":
        return None
    from primaldepth.operators.pairwise.cpu_value import pair_value

    images = u.shape[0]
    w = F.w.expand(images, *K.out_shape)
    if isinstance(K, PairwiseSlope):
        return pair_value(u, w, K.offsets, F.eps)
    folded = u.reshape(-1, 1, *K.size)  # every channel is an image of its own
    values = pair_value(folded, w.reshape(-1, len(K.offsets), *K.size), K.offsets, F.eps)
    return values.view(images, -1).sum(dim=1)


def fused_descent(u: Tensor, pulls: list[Tensor], tau: Number, theta: Number) -> tuple[Tensor, Tensor] | None:
    """u+ = u - tau sum(pulls) and u+ + theta (u+ - u) by a fused kernel, or None where there is none."""
    given = [t for t in (tau, theta) if isinstance(t, Tensor)]
    if torch.compiler.is_compiling() or (isinstance(theta, Tensor) and theta.numel() > 1):
        return None
    if isinstance(tau, Tensor) and tau.numel() > 1 and tau.shape not in (u.shape, (1, *u.shape[1:])):
        return None
    if not pulls or any(pull.shape != u.shape for pull in pulls):
        return None
    if not readable(u, *pulls, *given) or pick_backend(u) != "numba":
        return None
    from primaldepth.operators.local.descent import descend

    return descend(u, pulls, tau, theta)


def _step(F: Huber, sigma: Number | WeightedStep) -> tuple[float, float, float] | None:
    """(base, slope, eps) as plain numbers, or None if any of them is a map or carries a gradient."""
    if isinstance(F.eps, Tensor) or isinstance(sigma, Tensor):
        return None
    if isinstance(sigma, WeightedStep):
        return (sigma.base, sigma.slope, F.eps) if sigma.w is F.w else None
    return sigma, 0.0, F.eps


def _plain(K: PairwiseDifference | PairwiseSlope, *tensors: Tensor) -> bool:
    """The kernel's conditions: differences of a half window of numbers it can read."""
    half = all(dy < 0 or (dy == 0 and dx < 0) for dy, dx in K.offsets)
    return half and K.sign < 0 and readable(*tensors)
