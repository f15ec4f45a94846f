"""Fused dual update and divergence on the CPU, compiled by numba.

One pass over the rows computes the new dual variable of a row while its inputs are in the
cache and adds it to the divergence of the rows it connects, so p and w cross the memory bus
once. Rows are split into bands, one per thread; what a band owes to rows above it is kept
aside in its halo and added at the end, so no two threads write to one row.
"""

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.pairwise.reference import Offset
from primaldepth.operators.threads import Array, band_of, thread_count

BLOCK_ROWS = 16  # of one pair at a time: a stretch of memory long enough to be fetched ahead
Offsets = tuple[Offset, ...]


@numba.njit(fastmath=True, error_model="numpy", cache=True)
def _dual_row(p: Array, w: Array, z: Array, z_there: Array, step: Array, out: Array) -> None:
    """Clamp (p + s (z - z_there)) / (1 + s eps) to [-w, w] with s = step[0] + step[1] w, eps = step[2]."""
    base, slope, eps = step[0], step[1], step[2]
    one = step.dtype.type(1)  # a plain 1 would turn single precision into double
    if slope == 0:  # one step for all pairs: nothing to divide by
        shrink = one / (one + base * eps)
        gain = base * shrink
        for x in range(out.size):
            bound = w[x]
            value = p[x] * shrink + gain * (z[x] - z_there[x])
            value = value if value < bound else bound
            out[x] = value if value > -bound else -bound
        return
    for x in range(out.size):
        bound = w[x]
        s = base + slope * bound
        value = (p[x] + s * (z[x] - z_there[x])) / (one + s * eps)
        value = value if value < bound else bound
        out[x] = value if value > -bound else -bound


@numba.njit(fastmath=True, cache=True)
def add_flow(flow: Array, here: Array, there: Array) -> None:
    """Add the flow from x to y: it leaves x and enters y."""
    for x in range(flow.size):
        here[x] += flow[x]
    for x in range(flow.size):
        there[x] -= flow[x]


@numba.njit(cache=True)
def inner_ends(offset: Array, y: int, width: int) -> tuple[int, int, int]:
    """Return the row of the far ends of row y, and from which to which column both ends lie in the image."""
    there, dx = y + offset[0], offset[1]
    left, right = max(0, -dx), width - max(0, dx)
    return (there, left, right) if there >= 0 and left < right else (there, width, width)


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _dual_bands(
    z: Array, p: Array, w: Array, offsets: Array, step: Array, out: Array, div: Array, halo: Array
) -> None:
    """z: (B, H, W), p, w, out: (B, N, H, W), div: (B, H, W), halo: (B, bands, reach, W)."""
    images, pairs, height, width = p.shape
    bands, reach = halo.shape[1], halo.shape[2]
    for job in numba.prange(images * bands):
        b, band, top, bottom = band_of(job, bands, height)
        div[b, top:bottom] = 0
        halo[b, band] = 0
        new = np.empty_like(z[b, 0])  # a row apart from p, which may be `out`: only so is it vectorised
        for start in range(top, bottom, BLOCK_ROWS):
            for k in range(pairs):
                for y in range(start, min(start + BLOCK_ROWS, bottom)):
                    there, left, right = inner_ends(offsets[k], y, width)
                    old, bound, here = p[b, k, y], w[b, k, y], z[b, y]
                    _dual_row(old[:left], bound[:left], here[:left], here[:left], step, new[:left])
                    _dual_row(old[right:], bound[right:], here[right:], here[right:], step, new[right:])
                    if left < right:
                        a, e = left + offsets[k, 1], right + offsets[k, 1]
                        flow, ahead = new[left:right], z[b, there, a:e]
                        _dual_row(old[left:right], bound[left:right], here[left:right], ahead, step, flow)
                        owner = div[b, there] if there >= top else halo[b, band, there - top + reach]
                        add_flow(flow, div[b, y, left:right], owner[a:e])
                    out[b, k, y] = new


def add_halo(div: Array, halo: Array) -> None:
    """Hand what bands owe to rows above them to those rows.

    Args:
        div: (B, ..., H, W); the rows are added to.
        halo: (B, bands, ..., reach, W).
    """
    height, bands, reach = div.shape[-2], halo.shape[1], halo.shape[-2]
    for band in range(1, bands):
        top = height * band // bands
        skip = max(0, reach - top)
        div[..., top - reach + skip : top, :] += halo[:, band, ..., skip:, :]


def dual_step(
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    offsets: Offsets,
    step: tuple[float, float, float],
    out: Tensor | None = None,
    div: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Do one dual update of non-local Huber, and its divergence.

    Args:
        u_bar: (B, 1, H, W).
        p: (B, N, H, W) dual variable; not modified unless it is `out`.
        w: (B, N, H, W) bounds.
        offsets: of a half window: every pair reaches up, or left in its own row.
        step: (base, slope, eps): the step of a pair is base + slope * w.
        out: memory for the new p, or None for fresh memory.
        div: memory for K' p, or None.

    Returns:
        The new p and K' p: (B, 1, H, W).
    """
    images, _, height, width = p.shape
    out = torch.empty_like(p, memory_format=torch.contiguous_format) if out is None else out
    div = u_bar.new_empty((images, 1, height, width)) if div is None else div
    reach = max(1, max(-dy for dy, _ in offsets))
    bands = thread_count(images, height, reach)
    halo = np.empty((images, bands, reach, width), dtype=div.numpy().dtype)
    steps = np.array(step, dtype=halo.dtype)
    arrays = [t.contiguous().numpy() for t in (u_bar[:, 0], p, w)]
    rows = div[:, 0].numpy()
    _dual_bands(arrays[0], arrays[1], arrays[2], np.array(offsets), steps, out.numpy(), rows, halo)
    add_halo(rows, halo)
    return out, div
