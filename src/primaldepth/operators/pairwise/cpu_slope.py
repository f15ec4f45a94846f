"""The fused CPU update for pairs with slopes, the coupling of non-local TGV; see cpu.py for the scheme.

A pair departs from its plane by u(x) - u(y) + <(v(x) + v(y)) / 2, d>. Its flow goes to u with the signs of
its ends and to v along d / 2. The dual variable is updated where it lies: no row of it is copied.
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.pairwise.cpu import add_halo
from primaldepth.operators.threads import Array, band_of, thread_count

BLOCK_ROWS = 8  # of one pair at a time; with three channels half as many as in cpu.py stay in the cache


@numba.njit(fastmath=True, cache=True)
def departure(z: Array, y: int, left: int, there: int, start: int, a: float, c: float, out: Array) -> None:
    """Write how far the pairs of a row depart from their slope: u - u' + a (v_y + v_y') + c (v_x + v_x').

    u lies at (y, left ..), u' at (there, start ..).
    """
    end, stop = left + out.size, start + out.size
    u, v_y, v_x = z[0, y, left:end], z[1, y, left:end], z[2, y, left:end]
    u_, v_y_, v_x_ = z[0, there, start:stop], z[1, there, start:stop], z[2, there, start:stop]
    for x in range(out.size):
        out[x] = u[x] - u_[x] + a * (v_y[x] + v_y_[x]) + c * (v_x[x] + v_x_[x])


@numba.njit(fastmath=True, error_model="numpy", cache=True)
def _update(p: Array, w: Array, z: Array, step: Array) -> None:
    """Set p = clamp((p + s z) / (1 + s eps), -w, w) with s = step[0] + step[1] w, eps = step[2]."""
    base, slope, eps = step[0], step[1], step[2]
    one = step.dtype.type(1)
    for x in range(p.size):
        bound = w[x]
        s = base + slope * bound
        value = (p[x] + s * z[x]) / (one + s * eps)
        value = value if value < bound else bound
        p[x] = value if value > -bound else -bound


@numba.njit(fastmath=True, cache=True)
def _add(share: float | np.floating[Any], flow: Array, out: Array) -> None:
    """Add share * flow to `out`."""
    for x in range(flow.size):
        out[x] += share * flow[x]


@numba.njit(fastmath=True, cache=True)
def _add_flow(flow: Array, sign: int, a: float, c: float, div: Array, y: int, left: int) -> None:
    """One end of the adjoint of `departure`; array by array, which is what gets vectorised."""
    end = left + flow.size
    _add(flow.dtype.type(sign), flow, div[0, y, left:end])
    _add(a, flow, div[1, y, left:end])
    _add(c, flow, div[2, y, left:end])


@numba.njit(fastmath=True, cache=True)
def _slope_band(
    z: Array, p: Array, w: Array, offsets: Array, halves: Array, steps: Array, div: Array, halo: Array,
    top: int, bottom: int,
) -> None:  # fmt: skip
    """Rows top to bottom of one image; z, div: (3, H, W), p, w: (N, H, W), halo: (3, reach, W)."""
    width, reach, apart = p.shape[2], halo.shape[1], np.empty_like(z[0, 0])
    div[:, top:bottom] = 0
    halo[:] = 0
    for block in range(top, bottom, BLOCK_ROWS):
        for k in range(len(p)):
            dx, a, c = offsets[k, 1], halves[k, 0], halves[k, 1]
            left, right = max(0, -dx), width - max(0, dx)
            for y in range(block, min(block + BLOCK_ROWS, bottom)):
                there = y + offsets[k, 0]
                inside = there >= 0 and left < right
                apart[: left if inside else width] = 0  # pairs that leave the frame have no difference
                apart[right:] = 0
                if inside:
                    departure(z, y, left, there, left + dx, a, c, apart[left:right])
                _update(p[k, y], w[k, y], apart, steps[k])
                if inside:
                    flow = p[k, y, left:right]
                    _add_flow(flow, 1, a, c, div, y, left)
                    owner, row = (div, there) if there >= top else (halo, there - top + reach)
                    _add_flow(flow, -1, a, c, owner, row, left + dx)


# What runs in parallel only hands out the bands: the compiler takes long for every line in here.
@numba.njit(parallel=True, cache=True)
def _slope_bands(
    z: Array, p: Array, w: Array, offsets: Array, halves: Array, steps: Array, div: Array, halo: Array
) -> None:
    """As `_slope_band` with the images in front, and the bands in halo: (B, bands, 3, reach, W)."""
    images, bands, height = len(p), halo.shape[1], p.shape[2]
    for job in numba.prange(images * bands):
        b, band, top, bottom = band_of(job, bands, height)
        _slope_band(z[b], p[b], w[b], offsets, halves, steps, div[b], halo[b, band], top, bottom)


def slope_step(
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    offsets: tuple[tuple[int, int], ...],
    step: tuple[float, float, float],
    rows: tuple[float, ...] | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Do one dual update with `PairwiseSlope`, and its adjoint.

    Args:
        u_bar: (B, 3, H, W): u and the two slopes.
        p: (B, N, H, W) dual variable; not modified unless it is `out`.
        w: (B, N, H, W) bounds.
        offsets: of a half window.
        step: (base, slope, eps).
        rows: the step of pair k is (base + slope * w) / rows[k]; None for 1.
        out: memory for the new p, or None for fresh memory.

    Returns:
        The new p and K' p: (B, 3, H, W).
    """
    images, pairs, height, width = p.shape
    out = torch.empty_like(p, memory_format=torch.contiguous_format) if out is None else out
    if out is not p:
        out.copy_(p)
    reach = max(1, max(-dy for dy, _ in offsets))
    bands = thread_count(images, height, reach)
    div = torch.empty_like(u_bar, memory_format=torch.contiguous_format)
    z, bounds, total = u_bar.contiguous().numpy(), w.contiguous().numpy(), div.numpy()
    halo = np.empty((images, bands, 3, reach, width), dtype=z.dtype)
    base, slope, eps = step
    steps = np.array([(base / row, slope / row, eps) for row in rows or (1.0,) * pairs], dtype=z.dtype)
    halves = (np.array(offsets) / 2).astype(z.dtype)
    _slope_bands(z, out.numpy(), bounds, np.array(offsets), halves, steps, total, halo)
    add_halo(total, halo)
    return out, div
