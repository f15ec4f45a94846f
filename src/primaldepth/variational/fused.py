"""The seam between the primal-dual step and fused kernels: same result, one pass over memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.operators.base import Composition, LinearOperator
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, pick_backend
from primaldepth.variational.penalties import Huber, Number, Penalty


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


def _step(F: Penalty, sigma: Number | WeightedStep) -> tuple[float, float, float] | None:
    """(base, slope, eps) as plain numbers, or None if any of them is a map or carries a gradient."""
    if not isinstance(F, Huber) or isinstance(F.eps, Tensor) or isinstance(sigma, Tensor):
        return None
    if isinstance(sigma, WeightedStep):
        return (sigma.base, sigma.slope, F.eps) if sigma.w is F.w else None
    return sigma, 0.0, F.eps


def _plain(K: PairwiseDifference | PairwiseSlope, *tensors: Tensor) -> bool:
    """The kernel's conditions: differences of a half window, float32 or float64, nothing to differentiate."""
    half = all(dy < 0 or (dy == 0 and dx < 0) for dy, dx in K.offsets)
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    kinds = {t.dtype for t in tensors}
    return half and K.sign < 0 and not learning and kinds in ({torch.float32}, {torch.float64})
