"""The sample term on a GPU: A and its adjoint as banded products, fused with the dual step.

Images that the pairwise kernels own lie in padded planes. These functions read and write them as views
(B, 1, H, W) whose rows are contiguous, so nothing is copied. Operators without bands run as torch operations.
"""

import torch
import triton
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.sampling import triton_kernels as kernels
from primaldepth.operators.sampling.grids import Resample
from primaldepth.operators.sampling.mixed import MixedResample
from primaldepth.operators.sampling.samples import SampleTerm

BLOCK_X = 128
BLOCK = 1024
Banded = Resample | MixedResample


def dual_step(samples: SampleTerm, u_bar: Tensor, q: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """Return arrived = q + s (A u_bar - d) and q+ = lam arrived / (lam + s), both (B, 1, h, w).

    Args:
        samples: d and lam contiguous.
        u_bar: (B, 1, H, W), rows contiguous.
        q: (B, 1, h, w), contiguous.
        step: s, a tensor with one number on the device, so that the host need not wait for it.
    """
    A, d, lam = samples.A, samples.d, samples.lam
    if not isinstance(A, Banded):
        arrived = q + step * (A(u_bar) - d)
        return arrived, lam * arrived / (lam + step)
    half = _rows(A, u_bar)
    used, band = A.bands(u_bar, transposed=False)
    images, _, h, w = q.shape
    arrived, q_next = torch.empty_like(q), torch.empty_like(q)
    kernels.dual_columns_kernel[triton.cdiv(w, BLOCK_X), images * h](
        half, *band, *band.sizes, used.kept, used.per_image, w, h, half.shape[3],
        q, d, lam, step, arrived, q_next, BX=BLOCK_X,
    )  # fmt: skip
    return arrived, q_next


def dual_backward(
    grad_q: Tensor,
    grad_pull: Tensor,
    q: Tensor,
    arrived: Tensor,
    samples: SampleTerm,
    step: Tensor,
    totals: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, of A u_bar and of the step; add those of d and lam to `totals`.

    Args:
        grad_q: (B, 1, h, w) gradient of q+ from later iterations.
        grad_pull: (B, 1, H, W) gradient of A' q+, rows contiguous.
        q: (B, 1, h, w) before the step, as is everything below.
        arrived: as from `dual_step`.
        samples: of the term.
        step: s, as of `dual_step`.
        totals: gradients of d and lam so far; they are added to.
    """
    through = reduce(samples.A, grad_pull)
    count = q.numel()
    programs = triton.cdiv(count, BLOCK)
    partial = q.new_empty(programs)
    grad_q_out, grad_seen = torch.empty_like(q), torch.empty_like(q)
    kernels.dual_backward_kernel[(programs,)](
        grad_q, through, q, arrived, samples.lam, step, grad_q_out, grad_seen, *totals, partial, count,
        BLOCK=BLOCK,
    )  # fmt: skip
    return grad_q_out, grad_seen, partial.sum()


def reduce(A: LinearOperator, u: Tensor) -> Tensor:
    """Return A u as contiguous (B, 1, h, w).

    Args:
        A: how samples come from the image.
        u: (B, 1, H, W), rows contiguous.
    """
    if not isinstance(A, Banded):
        return A(u).contiguous()
    return _columns(A, _rows(A, u), transposed=False)


def spread(A: LinearOperator, q: Tensor, out: Tensor) -> None:
    """Write A' q into `out`.

    Args:
        A: how samples come from the image.
        q: (B, 1, h, w), contiguous.
        out: (B, 1, H, W), rows contiguous.
    """
    if not isinstance(A, Banded):
        out.copy_(A.adjoint(q))
        return
    _rows(A, _columns(A, q, transposed=True), out)


def _rows(A: Banded, u: Tensor, out: Tensor | None = None) -> Tensor:
    """The product along columns of pixels: A_y u into fresh memory, or A_y' u into `out`."""
    band = A.bands(u, transposed=out is not None)[0]
    images, _, _, width = u.shape
    if out is None:
        out = u.new_empty((images, 1, band.rows, width))
    kernels.rows_kernel[triton.cdiv(width, BLOCK_X), band.rows, images](
        u, out, *band, *band.sizes, width,
        u.stride(0), u.stride(2), out.stride(0), out.stride(2), BX=BLOCK_X,
    )  # fmt: skip
    return out


def _columns(A: Banded, u: Tensor, *, transposed: bool) -> Tensor:
    """The product along rows of pixels, u A_x' or u A_x, of contiguous u, whose rows are those of samples."""
    band, used = A.bands(u, transposed=transposed)[1], A.bands(u, transposed=False)[0]
    images, _, height, width = u.shape
    out = u.new_empty((images, 1, height, band.rows))
    kernels.columns_kernel[triton.cdiv(band.rows, BLOCK_X), images * height](
        u, out, *band, *band.sizes, used.kept, used.per_image, band.rows, height, width, BX=BLOCK_X
    )
    return out
