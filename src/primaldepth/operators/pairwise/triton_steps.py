"""One iteration in one kernel, and the two kernels that undo it; everything lies in the padded layout."""

from typing import NamedTuple

from torch import Tensor

from primaldepth.operators.pairwise import triton_kernels as kernels
from primaldepth.operators.pairwise.padded_layout import PaddedLayout


def forward(
    layout: PaddedLayout,
    state: tuple[Tensor, Tensor, Tensor],
    fixed: tuple[Tensor, Tensor, Tensor],
    row: Tensor,
    out: tuple[Tensor, Tensor, Tensor],
    pull: Tensor | None = None,
) -> None:
    """Do one iteration of (u, u_bar, p); every tensor but `row` is padded.

    Args:
        layout: of all of them.
        state: u, u_bar and p before it.
        fixed: w, f and c.
        row: (5,) or more coefficients of the iteration.
        out: memory for u, u_bar and p after it.
        pull: A' q+ of the sample term, or None without one.
    """
    u, u_bar, p = state
    tile = layout.FORWARD
    kernels.forward_kernel[layout.grid(tile)](
        u, u_bar, p, *fixed, u if pull is None else pull, row, *out, layout.pitch, layout.area,
        SAMPLES=pull is not None, **layout.constants(tile),
    )  # fmt: skip


class ImageGradients(NamedTuple):
    """Gradients of images while iterations are undone, padded with zeros; all are overwritten.

    Args:
        u: of u before the last step that was undone.
        div: of the divergence of the iteration whose u step was undone last.
        f: so far.
        c: so far.
    """

    u: Tensor
    div: Tensor
    f: Tensor
    c: Tensor


def undo_image(
    layout: PaddedLayout,
    grads: ImageGradients,
    images: tuple[Tensor, Tensor, Tensor, Tensor],
    row: Tensor,
    partial: Tensor,
    given: Tensor | None,
    pairs: tuple[Tensor, Tensor] | None,
) -> None:
    """Gather the gradient of u_bar and undo the u step that made it, into `grads`.

    Args:
        layout: of all padded tensors.
        grads: of the images; overwritten.
        images: u before and after the step, f and c.
        row: coefficients of the step.
        partial: (programs, 3) for what adds up to the gradients of tau, lam and theta.
        given: padded gradient of u_bar, or a part of it; None without one.
        pairs: what `undo_pairs` left of grad p, and the row of its iteration; None at the start.
    """
    through, after = (grads.u, row) if pairs is None else pairs
    tile = layout.IMAGES
    kernels.image_backward_kernel[layout.grid(tile)](
        through, grads.u if given is None else given, after, grads.u, grads.u, *images, row,
        grads.div, grads.f, grads.c, partial, layout.pitch, layout.area,
        START=pairs is None, SAMPLES=given is not None, END=False, **layout.constants(tile),
    )  # fmt: skip


def gather(layout: PaddedLayout, pairs: tuple[Tensor, Tensor], given: Tensor | None, out: Tensor) -> None:
    """Write the padded gradient of u_bar before the first iteration.

    Args:
        layout: of all padded tensors.
        pairs: as of `undo_image`.
        given: as of `undo_image`.
        out: memory for the gradient.
    """
    tile = layout.IMAGES
    unused = (out,) * 10
    kernels.image_backward_kernel[layout.grid(tile)](
        pairs[0], out if given is None else given, pairs[1], out, *unused, layout.pitch, layout.area,
        START=False, SAMPLES=given is not None, END=True, **layout.constants(tile),
    )  # fmt: skip


def undo_pairs(
    layout: PaddedLayout,
    grads: tuple[Tensor, Tensor, Tensor],
    u_bar: Tensor,
    p_next: Tensor,
    w: Tensor,
    row: Tensor,
    partial: Tensor,
) -> None:
    """Undo the step of p: overwrite its gradient and add to that of w.

    Args:
        layout: of all padded tensors.
        grads: of p+, which becomes that of p, of the divergence, and of w so far.
        u_bar: padded, before the step.
        p_next: padded, after the step.
        w: padded bounds.
        row: coefficients of the step.
        partial: (programs, 2) for what adds up to the gradients of sigma and eps.
    """
    tile = layout.BACKWARD
    grad_p, grad_div, grad_w = grads
    kernels.pairs_backward_kernel[layout.grid(tile)](
        grad_p, grad_div, u_bar, p_next, w, row, grad_w, partial, layout.pitch, layout.area,
        **layout.constants(tile),
    )  # fmt: skip
