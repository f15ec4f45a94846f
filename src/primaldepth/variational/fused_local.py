"""The fused steps of local models: differences of next neighbours, and data seen through a sensor."""

import torch
from torch import Tensor

from primaldepth.operators.base import Composition, LinearOperator
from primaldepth.operators.channel_selection import SelectChannels
from primaldepth.operators.differences import ForwardDifference, GradientMinusField, SymmetrizedGradient
from primaldepth.operators.pairwise import pick_backend
from primaldepth.operators.pointwise import EdgeTensor
from primaldepth.operators.sampling import Resample
from primaldepth.variational.penalties import Number, Penalty


def readable(*tensors: Tensor) -> bool:
    """All float32 or all float64, and nothing to differentiate."""
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return not learning and {t.dtype for t in tensors} in ({torch.float32}, {torch.float64})


def local_step(
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
    if not readable(p, u_bar, *maps) or pick_backend(p) != "numba":
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


def sensor_step(
    K: LinearOperator, F: Penalty, p: Tensor, u_bar: Tensor, sigma: Number
) -> tuple[Tensor, Tensor] | None:
    """p+ and K' p+ for a data term that sees one channel of u through resampling."""
    A, channel = K, 0
    if isinstance(K, Composition) and isinstance(K.inner, SelectChannels):
        A, channel = K.outer, K.inner.first
    if not isinstance(A, Resample) or A.in_shape[0] != 1:
        return None
    if u_bar.shape[1:] != K.in_shape or p.shape != (u_bar.shape[0], *K.out_shape):
        return None
    steps = [sigma] if isinstance(sigma, Tensor) else []
    if not readable(p, u_bar, *steps) or pick_backend(p) != "numba":
        return None
    from primaldepth.operators.sampling.cpu import reduce, spread

    p = F.prox_conjugate(p + sigma * reduce(A, u_bar, channel), sigma)
    if not readable(p) or p.shape[0] != u_bar.shape[0]:  # weights or data may carry a gradient
        return None
    return p, spread(A, p, K.in_shape[0], channel)
