"""The seam between the primal-dual step and fused kernels: same result, one pass over memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.operators.base import Composition, LinearOperator
from primaldepth.operators.channels import SelectChannels
from primaldepth.operators.differences import ForwardDifference, GradientMinusField, SymmetrizedGradient
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, pick_backend
from primaldepth.operators.pointwise import EdgeTensor
from primaldepth.variational.penalties import GroupNorm, Huber, Number, Penalty


@dataclass(frozen=True, slots=True)
class WeightedStep:
    """A dual step base + slope * w for every pair, without a tensor of its own."""

    base: float
    slope: float
    w: Tensor

    @property
    def tensor(self) -> Tensor:
        """The same as a tensor."""
        return self.base + self.slope * self.w


def fused_dual_step(
    K: LinearOperator,
    F: Penalty,
    p: Tensor,
    u_bar: Tensor,
    sigma: Number | WeightedStep,
    reuse: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """p+ and K' p+ by a fused kernel, or None where there is none for this case."""
    if isinstance(F, GroupNorm):
        return None if isinstance(sigma, WeightedStep) else _local_step(K, F.w, p, u_bar, sigma, reuse)
    step = _step(F, sigma)
    if step is None or not isinstance(F, Huber) or not isinstance(F.w, Tensor):
        return None
    if isinstance(K, Composition) and isinstance(K.outer, PairwiseDifference):
        inner = fused_dual_step(K.outer, F, p, K.inner(u_bar), sigma, reuse)
        return None if inner is None else (inner[0], K.inner.adjoint(inner[1]))
    if not isinstance(K, PairwiseDifference | PairwiseSlope):
        return None
    if not _plain(K, p, u_bar, F.w) or pick_backend(p) != "numba":
        return None
    if isinstance(K, PairwiseSlope):
        from primaldepth.operators.pairwise.cpu_slope import slope_step

        return slope_step(u_bar, p, F.w.expand(p.shape), K.offsets, step, reuse)
    from primaldepth.operators.pairwise.cpu import dual_step

    images, channels = u_bar.shape[0], K.in_shape[0]
    folded = (images * channels, len(K.offsets), *K.size)  # every channel is an image of its own
    out = reuse.view(folded) if reuse is not None else None
    w = F.w.expand(p.shape).reshape(folded)
    p_next, divergence = dual_step(u_bar.reshape(-1, 1, *K.size), p.reshape(folded), w, K.offsets, step, out)
    return p_next.view(p.shape), divergence.view(images, channels, *K.size)


def fused_descent(u: Tensor, pulls: list[Tensor], tau: Number, theta: Number) -> tuple[Tensor, Tensor] | None:
    """u+ = u - tau sum(pulls) and u+ + theta (u+ - u) by a fused kernel, or None where there is none."""
    given = [t for t in (tau, theta) if isinstance(t, Tensor)]
    if isinstance(theta, Tensor) and theta.numel() > 1:
        return None
    if isinstance(tau, Tensor) and tau.numel() > 1 and tau.shape not in (u.shape, (1, *u.shape[1:])):
        return None
    if not pulls or any(pull.shape != u.shape for pull in pulls):
        return None
    if not _readable(u, *pulls, *given) or pick_backend(u) != "numba":
        return None
    from primaldepth.operators.local.descent import descend

    return descend(u, pulls, tau, theta)


def _step(F: Penalty, sigma: Number | WeightedStep) -> tuple[float, float, float] | None:
    """(base, slope, eps) as plain numbers, or None if any of them is a map or carries a gradient."""
    if not isinstance(F, Huber) or isinstance(F.eps, Tensor) or isinstance(sigma, Tensor):
        return None
    if isinstance(sigma, WeightedStep):
        return (sigma.base, sigma.slope, F.eps) if sigma.w is F.w else None
    return sigma, 0.0, F.eps


def _plain(K: PairwiseDifference | PairwiseSlope, *tensors: Tensor) -> bool:
    """The kernel's conditions: differences of a half window of numbers it can read."""
    half = all(dy < 0 or (dy == 0 and dx < 0) for dy, dx in K.offsets)
    return half and K.sign < 0 and _readable(*tensors)


def _readable(*tensors: Tensor) -> bool:
    """All float32 or all float64, and nothing to differentiate."""
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return not learning and {t.dtype for t in tensors} in ({torch.float32}, {torch.float64})


def _local_step(
    K: LinearOperator, w: Number, p: Tensor, u_bar: Tensor, sigma: Number, reuse: Tensor | None
) -> tuple[Tensor, Tensor] | None:
    """p+ and K' p+ for differences of next neighbours: T grad u, T (grad u - v) and E v."""
    if not isinstance(K, Composition) or not _differences(K):
        return None
    T = K.outer.tensor if isinstance(K.outer, EdgeTensor) else None
    maps = [t for t in (T, sigma, w) if isinstance(t, Tensor)]
    if u_bar.shape[1:] != K.in_shape or p.shape != (u_bar.shape[0], *K.out_shape):
        return None
    if not all(t is T or _per_pixel(t, p) for t in maps) or (T is not None and len(T) not in (1, len(p))):
        return None
    if not _readable(p, u_bar, *maps) or pick_backend(p) != "numba":
        return None
    from primaldepth.operators.local.cpu import bend_step, edge_step

    if isinstance(K.inner, SelectChannels):
        return bend_step(u_bar, p, K.inner.first, sigma, w, reuse)
    return None if T is None else edge_step(u_bar, p, T, sigma, w, reuse)


def _differences(K: Composition) -> bool:
    """One of the three; not their magnitudes, which have sums in place of differences."""
    outer, inner = K.outer, K.inner
    if isinstance(outer, SymmetrizedGradient):
        return isinstance(inner, SelectChannels) and outer.sign == -1
    if not isinstance(outer, EdgeTensor):
        return False
    if isinstance(inner, GradientMinusField):
        return inner.gradient.sign == inner.field_sign == -1
    return isinstance(inner, ForwardDifference) and inner.sign == -1


def _per_pixel(values: Tensor, p: Tensor) -> bool:
    """One number, or a map of one channel."""
    whole = values.ndim == 4 and values.shape[0] in (1, p.shape[0])
    return values.numel() == 1 or (whole and values.shape[1:] == (1, *p.shape[2:]))
