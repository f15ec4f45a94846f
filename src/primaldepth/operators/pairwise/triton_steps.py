"""One iteration in one kernel, and the two kernels that undo it; everything lies in the padded layout."""

import torch
import triton
from torch import Tensor

from primaldepth.operators.pairwise import triton_kernels as kernels
from primaldepth.operators.pairwise.padded_layout import PaddedLayout

BLOCK = 1024


def forward(
    layout: PaddedLayout,
    state: tuple[Tensor, Tensor, Tensor],
    fixed: tuple[Tensor, Tensor, Tensor],
    row: Tensor,
    out: tuple[Tensor, Tensor, Tensor],
    pull: Tensor | None = None,
) -> None:
    """One iteration of (u, u_bar, p) into `out`; `fixed` is w, f, c; all padded; row: (5,) or more.

    Args:
        pull: A' q+ of the sample term, padded, or None without one.
    """
    u, u_bar, p = state
    tile = layout.FORWARD
    kernels.forward_kernel[layout.grid(tile)](
        u, u_bar, p, *fixed, u if pull is None else pull, row, *out, layout.pitch, layout.area,
        SAMPLES=pull is not None, RADIUS=layout.radius, PAIRS=layout.pairs, BY=tile.y, BX=tile.x,
        num_warps=tile.warps,
    )  # fmt: skip


def primal_programs(layout: PaddedLayout) -> int:
    """Number of programs of `primal_backward`, each of which gives partial sums of its own."""
    return int(triton.cdiv(layout.images * layout.area, BLOCK))


def primal_backward(
    grads: tuple[Tensor, Tensor],
    u: Tensor,
    u_next: Tensor,
    data: tuple[Tensor, Tensor],
    row: Tensor,
    data_grads: tuple[Tensor, Tensor],
    partial: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the divergence and of u; add those of f and c.

    Args:
        grads: of u+ and u_bar+.
        data: f and c.
        data_grads: theirs so far.
        partial: (programs, 3) for what adds up to the gradients of tau, lam and theta.
    """
    grad_div, grad_u = torch.empty_like(u), torch.empty_like(u)
    kernels.primal_backward_kernel[(len(partial),)](
        *grads, u, u_next, *data, row, grad_div, grad_u, *data_grads, partial, u.numel(), BLOCK=BLOCK
    )
    return grad_div, grad_u


def dual_programs(layout: PaddedLayout) -> int:
    """Number of programs of `dual_backward`, each of which gives partial sums of its own."""
    across, down, images = layout.grid(layout.BACKWARD)
    return across * down * images


def dual_backward(
    layout: PaddedLayout,
    grads: tuple[Tensor, Tensor],
    u_bar: Tensor,
    p_next: Tensor,
    w: Tensor,
    row: Tensor,
    grad_w: Tensor,
    partial: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of p and u_bar; add that of w.

    Args:
        grads: of p+ and of the divergence.
        grad_w: of w so far.
        partial: (programs, 2) for what adds up to the gradients of sigma and eps.
    """
    tile = layout.BACKWARD
    grad_p, grad_bar = torch.empty_like(p_next), torch.zeros_like(u_bar)
    kernels.dual_backward_kernel[layout.grid(tile)](
        *grads, u_bar, p_next, w, row, grad_p, grad_w, grad_bar, partial, layout.pitch, layout.area,
        RADIUS=layout.radius, PAIRS=layout.pairs, BY=tile.y, BX=tile.x, num_warps=tile.warps,
    )  # fmt: skip
    return grad_p, grad_bar
