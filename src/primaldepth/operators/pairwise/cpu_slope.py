"""The fused CPU update for pairs with slopes, the coupling of non-local TGV; see cpu.py for the scheme.

u(x) - u(y) + <(v(x) + v(y)) / 2, d> is a difference too: of u + <v, d> / 2 at x and u - <v, d> / 2 at y. So
a pair needs two rows more than in cpu.py, and its flow goes to u with the signs of its ends and to v along
d / 2.
"""

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.pairwise.cpu import Array, _add_flow, _dual_row, thread_count


@numba.njit(fastmath=True, cache=True)
def _tilted(z: Array, row: int, start: int, a: float, b: float, out: Array) -> None:
    """Row of u + a v_y + b v_x, from column `start` on."""
    u, v_y, v_x = z[0, row, start:], z[1, row, start:], z[2, row, start:]
    for x in range(out.size):
        out[x] = u[x] + a * v_y[x] + b * v_x[x]


@numba.njit(fastmath=True, cache=True)
def _add_share(flow: Array, share: float, here: Array, there: Array) -> None:
    """The same share of the flow to both ends."""
    for x in range(flow.size):
        here[x] += share * flow[x]
    for x in range(flow.size):
        there[x] += share * flow[x]


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _slope_bands(
    z: Array, p: Array, w: Array, offsets: Array, step: Array, out: Array, div: Array, halo: Array
) -> None:
    """z, div: (B, 3, H, W), p, w, out: (B, N, H, W), halo: (B, bands, 3, reach, W)."""
    images, pairs, height, width = p.shape
    bands, reach = halo.shape[1], halo.shape[3]
    for job in numba.prange(images * bands):
        b, band = job // bands, job % bands
        top, bottom = height * band // bands, height * (band + 1) // bands
        div[b, :, top:bottom] = 0
        halo[b, band] = 0
        new, near, far = np.empty_like(z[b, 0, 0]), np.empty_like(z[b, 0, 0]), np.empty_like(z[b, 0, 0])
        half = step[0] * 0 + 0.5
        for y in range(top, bottom):
            for k in range(pairs):
                dy, dx = offsets[k, 0], offsets[k, 1]
                there = y + dy
                left, right = max(0, -dx), width - max(0, dx)
                if there < 0 or left >= right:
                    left, right = width, width
                old, bound, zero = p[b, k, y], w[b, k, y], z[b, 0, y]
                _dual_row(old[:left], bound[:left], zero[:left], zero[:left], step, new[:left])
                _dual_row(old[right:], bound[right:], zero[right:], zero[right:], step, new[right:])
                if left < right:
                    a, c = half * dy, half * dx
                    start, end, count = left + dx, right + dx, right - left
                    _tilted(z[b], y, left, a, c, near[:count])
                    _tilted(z[b], there, start, -a, -c, far[:count])
                    flow = new[left:right]
                    _dual_row(old[left:right], bound[left:right], near[:count], far[:count], step, flow)
                    owner = div[b, :, there] if there >= top else halo[b, band, :, there - top + reach]
                    _add_flow(flow, div[b, 0, y, left:right], owner[0, start:end])
                    _add_share(flow, a, div[b, 1, y, left:right], owner[1, start:end])
                    _add_share(flow, c, div[b, 2, y, left:right], owner[2, start:end])
                out[b, k, y] = new


def slope_step(
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    offsets: tuple[tuple[int, int], ...],
    step: tuple[float, float, float],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One dual update with `PairwiseSlope` and its adjoint; arguments as of `cpu.dual_step`.

    Args:
        u_bar: (B, 3, H, W): u and the two slopes.

    Returns:
        The new p and K' p: (B, 3, H, W).
    """
    images, _, height, width = p.shape
    out = torch.empty_like(p, memory_format=torch.contiguous_format) if out is None else out
    reach = max(1, max(-dy for dy, _ in offsets))
    bands = thread_count(images, height, reach)
    div = torch.empty_like(u_bar, memory_format=torch.contiguous_format)
    halo = np.empty((images, bands, 3, reach, width), dtype=div.numpy().dtype)
    arrays = [t.contiguous().numpy() for t in (u_bar, p, w)]
    _slope_bands(
        arrays[0], arrays[1], arrays[2], np.array(offsets), np.array(step, dtype=halo.dtype), out.numpy(),
        div.numpy(), halo,
    )  # fmt: skip
    total = div.numpy()
    for band in range(1, bands):
        top = height * band // bands
        rows = slice(max(0, reach - top), reach)
        total[:, :, top - reach + rows.start : top] += halo[:, band, :, rows]
    return out, div
