"""Non-local Huber primal-dual iterations in one Triton kernel each, forward and backward.

A program owns a tile of pixels. The dual update of the pairs that start in the tile is written
out; that of the pairs that end in it is computed a second time from p, w and u_bar, which the
cache still holds. So an iteration needs no exchange between programs and moves p twice (read,
written) and w once through memory. README.md beside this file has the derivation and the bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import triton_kernels as kernels
from primaldepth.operators.pairwise.reference import Offset
from primaldepth.operators.sampling import SampleTerm
from primaldepth.operators.sampling.triton_term import SampleDual, SampleGradients

TILE_Y, TILE_X, WARPS = 1, 128, 1
BACK_Y, BACK_X, BACK_WARPS = 4, 64, 4
ENTER_Y, ENTER_X = 4, 256
BLOCK = 1024
DTYPES = (torch.float32,)


def _up(value: int, step: int) -> int:
    """The next multiple of `step`."""
    return step * -(-value // step)


@dataclass(frozen=True, slots=True)
class PaddedLayout:
    """Images (B, rows, 1, pitch) and pairwise maps (B, rows, N, pitch) with a margin.

    Whatever a tile reads lies in memory, so no kernel needs a mask, and what it reads of the N maps
    lies close together, which the memory rewards.
    Rows are `pitch` apart; radius + 1 rows lie above whole tiles and radius rows below, and the
    columns to the right of a row are also the margin to the left of the next.
    """

    images: int
    pairs: int
    height: int
    width: int

    @classmethod
    def of(cls, pairwise: Tensor) -> "PaddedLayout":
        """Return the layout for maps (B, N, H, W)."""
        images, pairs, height, width = pairwise.shape
        return cls(images, pairs, height, width)

    @property
    def radius(self) -> int:
        """Radius r of the half window with that many pairs: 2 r (r + 1) = pairs."""
        radius = round((1 + 2 * self.pairs) ** 0.5 - 1) // 2 or 1
        if 2 * radius * (radius + 1) != self.pairs:
            raise ValueError(f"{self.pairs} pairs are not a half window")
        return radius

    def grid(self, tile_y: int, tile_x: int) -> tuple[int, int, int]:
        """Programs: one per tile and image."""
        return triton.cdiv(self.width, tile_x), triton.cdiv(self.height, tile_y), self.images

    @property
    def rows(self) -> int:
        """Rows of a padded plane: whole tiles of either kernel, and the margin."""
        return _up(self.height, max(TILE_Y, BACK_Y)) + 2 * self.radius + 1

    @property
    def pitch(self) -> int:
        """Columns of a padded plane; a multiple of 16, so that rows start at aligned addresses."""
        return _up(_up(self.width, max(TILE_X, BACK_X)) + self.radius, 16)

    @property
    def area(self) -> int:
        """Elements of a padded plane."""
        return self.rows * self.pitch

    def zeros(self, like: Tensor, planes: int = 1) -> Tensor:
        """Padded planes of zeros."""
        return like.new_zeros((self.images, self.rows, planes, self.pitch))

    def enter(self, maps: Tensor, storage: torch.dtype | None = None) -> Tensor:
        """Padded copy of (B, 1, H, W) or (B, N, H, W); pairs that leave the frame become zero."""
        planes = maps.shape[1]
        out = maps.new_empty((self.images, self.rows, planes, self.pitch), dtype=storage or maps.dtype)
        grid = triton.cdiv(self.pitch, ENTER_X), triton.cdiv(self.rows, ENTER_Y), self.images * planes
        kernels.enter_kernel[grid](
            maps, out, self.height, self.width, self.pitch, self.area, *maps.stride(),
            PAIRS=planes, RADIUS=self.radius, PAIRWISE=int(planes > 1), BY=ENTER_Y, BX=ENTER_X,
        )  # fmt: skip
        return out

    def support(self, affinities: Tensor, scales: Tensor, storage: torch.dtype | None = None) -> Tensor:
        """Padded w = exp(-|d_k| / scales[0] - |a| / scales[1]), zero at pairs that leave the frame."""
        size = (self.images, self.rows, self.pairs, self.pitch)
        out = affinities.new_empty(size, dtype=storage or torch.float32)
        lanes = triton.next_power_of_2(self.pairs)
        run = max(16, 4096 // lanes)
        kernels.support_kernel[triton.cdiv(self.pitch, run), self.rows, self.images](
            affinities, out, scales, self.height, self.width, self.pitch, self.area, *affinities.stride(),
            PAIRS=self.pairs, LANES=lanes, RADIUS=self.radius, BX=run,
        )  # fmt: skip
        return out

    def leave(self, padded: Tensor) -> Tensor:
        """The frame's part of padded planes, as a view."""
        top = self.radius + 1
        return padded[:, top : top + self.height, :, : self.width].transpose(1, 2)


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
    kernels.forward_kernel[layout.grid(TILE_Y, TILE_X)](
        u, u_bar, p, *fixed, u if pull is None else pull, row, *out, layout.pitch, layout.area,
        SAMPLES=pull is not None, RADIUS=layout.radius, PAIRS=layout.pairs, BY=TILE_Y, BX=TILE_X,
        num_warps=WARPS,
    )  # fmt: skip


class TritonIterations(torch.autograd.Function):
    """n iterations with gradients for the state, w, f, c, every coefficient and, with samples, d and lam.

    Keeps u, u_bar and p of each iteration, with samples also q, and recomputes everything else.
    """

    @staticmethod
    def forward(ctx: Any, A: LinearOperator | None, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Run and keep the states; tensors as of `run`."""
        u, u_bar, p, w, f, c, coefficients, *measured = tensors
        ctx.A, ctx.layout = A, PaddedLayout.of(p)
        layout = ctx.layout
        state = (layout.enter(u), layout.enter(u_bar), layout.enter(p))
        fixed = (layout.enter(w), layout.enter(f), layout.enter(c))
        sensor = None if A is None else SampleDual(layout.leave, A, *measured)
        kept, sampled = [*state], [] if sensor is None else [sensor.q]
        for row in coefficients:
            pull = None if sensor is None else sensor.step(state[1], row)
            new = (torch.zeros_like(state[0]), torch.zeros_like(state[1]), torch.empty_like(state[2]))
            forward(layout, state, fixed, row, new, pull)
            state = new
            kept += state
            sampled += [] if sensor is None else [sensor.arrived, sensor.q]
        ctx.count = len(kept)
        ctx.save_for_backward(*fixed, coefficients, *measured[1:], *kept, *sampled)
        last = () if sensor is None else (sensor.q,)
        return (*(layout.leave(t).contiguous() for t in state), *last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The iterations in reverse."""
        layout: PaddedLayout = ctx.layout
        w, f, c, coefficients, *rest = ctx.saved_tensors
        undo = None
        if ctx.A is not None:
            d, lam, *rest = rest
            undo = SampleGradients(
                layout.leave, SampleTerm(ctx.A, d, lam), grads[3].contiguous(), rest[ctx.count :]
            )
        kept = rest[: ctx.count]
        grad_u, grad_bar, grad_p = (layout.enter(grad) for grad in grads[:3])
        grad_w, grad_f, grad_c = torch.empty_like(w), torch.zeros_like(f), torch.zeros_like(c)
        rows = torch.zeros_like(coefficients)
        for n in range(len(coefficients) - 1, -1, -1):
            u, u_bar, _, u_next, _, p_next = kept[3 * n : 3 * n + 6]
            grad_div, grad_u, primal = _primal_backward(
                (grad_u, grad_bar), u, u_next, (f, c), coefficients[n], (grad_f, grad_c)
            )
            first = n == len(coefficients) - 1
            grad_p, grad_bar, dual = _dual_backward(
                layout, (grad_p, grad_div), u_bar, p_next, w, coefficients[n], grad_w, first
            )
            steps = [] if undo is None else [undo.step(n, grad_div, grad_bar, coefficients[n])]
            rows[n] = torch.stack([dual[0], primal[0], dual[1], primal[1], primal[2], *steps])
        found = (grad_u, grad_bar, grad_p, grad_w, grad_f, grad_c)
        measured = () if undo is None else (undo.grad_q, undo.grad_d, undo.grad_lam)
        return (None, *(layout.leave(grad).contiguous() for grad in found), rows, *measured)


def _primal_backward(
    grads: tuple[Tensor, Tensor],
    u: Tensor,
    u_next: Tensor,
    data: tuple[Tensor, Tensor],
    row: Tensor,
    data_grads: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    total = u.numel()
    programs = triton.cdiv(total, BLOCK)
    partial = u.new_empty((programs, 3))
    grad_div, grad_u = torch.empty_like(u), torch.empty_like(u)
    kernels.primal_backward_kernel[(programs,)](
        *grads, u, u_next, *data, row, grad_div, grad_u, *data_grads, partial, total, BLOCK=BLOCK
    )
    return grad_div, grad_u, partial.sum(0)


def _dual_backward(
    layout: PaddedLayout,
    grads: tuple[Tensor, Tensor],
    u_bar: Tensor,
    p_next: Tensor,
    w: Tensor,
    row: Tensor,
    grad_w: Tensor,
    first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    grid = layout.grid(BACK_Y, BACK_X)
    partial = w.new_empty((grid[0] * grid[1] * grid[2], 2))
    grad_p, grad_bar = torch.empty_like(p_next), torch.zeros_like(u_bar)
    kernels.dual_backward_kernel[grid](
        *grads, u_bar, p_next, w, row, grad_p, grad_w, grad_bar, partial, layout.pitch, layout.area,
        FIRST=first, RADIUS=layout.radius, PAIRS=layout.pairs, BY=BACK_Y, BX=BACK_X, num_warps=BACK_WARPS,
    )  # fmt: skip
    return grad_p, grad_bar, partial.sum(0)


def run(
    *tensors: Tensor,
    offsets: Sequence[Offset] = (),
    A: LinearOperator | None = None,
    storage: torch.dtype | None = None,
) -> tuple[Tensor, ...]:
    """N iterations as of `cpu_iterations.run`; keeps the states only if a gradient will be asked for.

    Args:
        offsets: those of the half window with as many pairs as p has maps; not read.
        storage: type in which p and w are kept.
    """
    tensors = tuple(t.contiguous() for t in tensors)
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: tuple[Tensor, ...] = TritonIterations.apply(A, *tensors)  # type: ignore[no-untyped-call]
        return result
    u, u_bar, p, w, f, c, coefficients, *measured = tensors
    layout = PaddedLayout.of(p)
    state = (layout.enter(u), layout.enter(u_bar), layout.enter(p, storage))
    fixed = (layout.enter(w, storage), layout.enter(f), layout.enter(c))
    sensor = None if A is None else SampleDual(layout.leave, A, *measured)
    found = tuple(layout.leave(t) for t in iterate(layout, state, fixed, coefficients, sensor))
    return found if sensor is None else (*found, sensor.q)


def run_from_affinities(
    *tensors: Tensor,
    offsets: Sequence[Offset] = (),
    samples: SampleTerm | None = None,
    storage: torch.dtype | None = None,
) -> Tensor:
    """N iterations as of `cpu_iterations.run_from_affinities`; offsets are not read.

    Args:
        storage: type in which p and w are kept.
    """
    f, affinities, c, scales, coefficients = tensors
    layout = PaddedLayout.of(affinities)
    w = layout.support(affinities, scales, storage)
    start = layout.enter(f)
    state = (start, start, layout.zeros(w, layout.pairs))
    sensor = None
    if samples is not None:
        sensor = SampleDual(layout.leave, samples.A, torch.zeros_like(samples.d), samples.d, samples.lam)
    fixed = (w, start, layout.enter(c))
    return layout.leave(iterate(layout, state, fixed, coefficients, sensor)[0])


def iterate(
    layout: PaddedLayout,
    state: tuple[Tensor, Tensor, Tensor],
    fixed: tuple[Tensor, Tensor, Tensor],
    coefficients: Tensor,
    sensor: SampleDual | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the iterations between two sets of buffers; no argument but `sensor` is modified."""
    buffers = []
    for _ in range(min(2, len(coefficients))):
        images = layout.zeros(state[0]), layout.zeros(state[0])
        buffers.append((*images, torch.empty_like(state[2])))
    for n, row in enumerate(coefficients):
        pull = None if sensor is None else sensor.step(state[1], row)
        forward(layout, state, fixed, row, buffers[n % 2], pull)
        state = buffers[n % 2]
    return state
