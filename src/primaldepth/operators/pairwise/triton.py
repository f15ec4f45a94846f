"""Non-local Huber primal-dual iterations in one Triton kernel each, forward and backward.

A program owns a tile of pixels. The dual update of the pairs that start in the tile is written
out; that of the pairs that end in it is computed a second time from p, w and u_bar, which the
cache still holds. So an iteration needs no exchange between programs and moves p twice (read,
written) and w once through memory. README.md beside this file has the derivation and the bytes.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from primaldepth.operators.pairwise import triton_kernels as kernels

TILE_Y, TILE_X, WARPS = 2, 128, 4


def _tiles(height: int, width: int, images: int) -> tuple[int, int, int]:
    return triton.cdiv(width, TILE_X), triton.cdiv(height, TILE_Y), images


def _radius(pairs: int) -> int:
    """Of the half window with that many pairs: 2 r (r + 1) = pairs."""
    radius = round((1 + 2 * pairs) ** 0.5 - 1) // 2 or 1
    if 2 * radius * (radius + 1) != pairs:
        raise ValueError(f"{pairs} pairs are not a half window")
    return radius


def forward(
    u: Tensor, u_bar: Tensor, p: Tensor, w: Tensor, f: Tensor, c: Tensor, coefficients: Tensor,
    out: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    """One iteration into `out` = (u+, u_bar+, p+); images (B, 1, H, W), pairs (B, N, H, W), row (5,)."""
    images, pairs, height, width = p.shape
    grid = _tiles(height, width, images)
    kernels.forward_kernel[grid](
        u, u_bar, p, w, f, c, coefficients, *out, height, width, p.stride(0), w.stride(0),
        RADIUS=_radius(pairs), PAIRS=pairs, BY=TILE_Y, BX=TILE_X, num_warps=WARPS,
    )  # fmt: skip


class Iterations(torch.autograd.Function):
    """n iterations with a gradient for u, u_bar, p, w, f, c and every coefficient.

    Keeps u, u_bar and p of each iteration and recomputes everything else.
    """

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, u_bar: Tensor, p: Tensor, w: Tensor, f: Tensor, c: Tensor, coefficients: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run and keep the states."""
        states = [(u, u_bar, p)]
        for row in coefficients:
            new = (torch.empty_like(u), torch.empty_like(u), torch.empty_like(p))
            forward(*states[-1], w, f, c, row, new)
            states.append(new)
        ctx.save_for_backward(w, f, c, coefficients, *(tensor for state in states for tensor in state))
        return states[-1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        """The iterations in reverse."""
        w, f, c, coefficients, *kept = ctx.saved_tensors
        states = [tuple(kept[i : i + 3]) for i in range(0, len(kept), 3)]
        grad_u, grad_bar, grad_p = (grad.contiguous() for grad in grads)
        grad_w = torch.empty_like(w)
        grad_f, grad_c = torch.zeros_like(f), torch.zeros_like(c)
        rows = torch.zeros_like(coefficients)
        for n in range(len(coefficients) - 1, -1, -1):
            state, following = states[n], states[n + 1]
            grad_div, grad_u, primal = _primal_backward(
                (grad_u, grad_bar), state[0], following[0], (f, c), coefficients[n], (grad_f, grad_c)
            )
            first = n == len(coefficients) - 1
            grad_p, grad_bar, dual = _dual_backward(
                (grad_p, grad_div), state[1], following[2], w, coefficients[n], grad_w, first
            )
            rows[n] = torch.stack([dual[0], primal[0], dual[1], primal[1], primal[2]])
        return grad_u, grad_bar, grad_p, grad_w, grad_f, grad_c, rows


def _primal_backward(
    grads: tuple[Tensor, Tensor],
    u: Tensor,
    u_next: Tensor,
    data: tuple[Tensor, Tensor],
    row: Tensor,
    data_grads: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    total, block = u.numel(), 1024
    programs = triton.cdiv(total, block)
    partial = u.new_empty((programs, 3))
    grad_div, grad_u = torch.empty_like(u), torch.empty_like(u)
    kernels.primal_backward_kernel[(programs,)](
        *grads, u, u_next, *data, row, grad_div, grad_u, *data_grads, partial, total, BLOCK=block
    )
    return grad_div, grad_u, partial.sum(0)


def _dual_backward(
    grads: tuple[Tensor, Tensor],
    u_bar: Tensor,
    p_next: Tensor,
    w: Tensor,
    row: Tensor,
    grad_w: Tensor,
    first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    images, pairs, height, width = p_next.shape
    grid = _tiles(height, width, images)
    partial = w.new_empty((grid[0] * grid[1] * grid[2], 2))
    grad_p, grad_bar = torch.empty_like(p_next), torch.empty_like(u_bar)
    kernels.dual_backward_kernel[grid](
        *grads, u_bar, p_next, w, row, grad_p, grad_w, grad_bar, partial, height, width, w.stride(0),
        FIRST=first, RADIUS=_radius(pairs), PAIRS=pairs, BY=TILE_Y, BX=TILE_X, num_warps=WARPS,
    )  # fmt: skip
    return grad_p, grad_bar, partial.sum(0)


def run(
    u: Tensor,
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    f: Tensor,
    c: Tensor,
    coefficients: Tensor,
    *,
    storage: torch.dtype | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """N iterations; keeps the states only if a gradient will be asked for."""
    tensors = (u, u_bar, p, w, f, c, coefficients)
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: tuple[Tensor, Tensor, Tensor] = Iterations.apply(*tensors)  # type: ignore[no-untyped-call]
        return result
    p, w = (t if storage is None else t.to(storage) for t in (p, w))
    state = (u, u_bar, p)
    buffers = [tuple(torch.empty_like(t) for t in state) for _ in range(min(2, len(coefficients)))]
    for n, row in enumerate(coefficients):
        out = buffers[n % 2]
        forward(*state, w, f, c, row, (out[0], out[1], out[2]))
        state = (out[0], out[1], out[2])
    return state
