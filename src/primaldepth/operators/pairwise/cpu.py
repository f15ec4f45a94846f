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
from primaldepth.operators.sampling.cpu import sample_step
from primaldepth.operators.sampling.samples import SampleTerm
from primaldepth.operators.threads import MAX_THREADS, Array, thread_count

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
    """What flows from x to y leaves x and enters y."""
    for x in range(flow.size):
        here[x] += flow[x]
    for x in range(flow.size):
        there[x] -= flow[x]


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _dual_bands(
    z: Array, p: Array, w: Array, offsets: Array, step: Array, out: Array, div: Array, halo: Array
) -> None:
    """z: (B, H, W), p, w, out: (B, N, H, W), div: (B, H, W), halo: (B, bands, reach, W)."""
    images, pairs, height, width = p.shape
    bands, reach = halo.shape[1], halo.shape[2]
    for job in numba.prange(images * bands):
        b, band = job // bands, job % bands
        top, bottom = height * band // bands, height * (band + 1) // bands
        div[b, top:bottom] = 0
        halo[b, band] = 0
        new = np.empty_like(z[b, 0])  # a row apart from p, which may be `out`: only so is it vectorised
        for start in range(top, bottom, BLOCK_ROWS):
            for k in range(pairs):
                for y in range(start, min(start + BLOCK_ROWS, bottom)):
                    dx, there = offsets[k, 1], y + offsets[k, 0]
                    left, right = max(0, -dx), width - max(0, dx)
                    if there < 0 or left >= right:
                        left, right = width, width
                    old, bound, here = p[b, k, y], w[b, k, y], z[b, y]
                    _dual_row(old[:left], bound[:left], here[:left], here[:left], step, new[:left])
                    _dual_row(old[right:], bound[right:], here[right:], here[right:], step, new[right:])
                    if left < right:
                        a, e = left + dx, right + dx
                        flow, ahead = new[left:right], z[b, there, a:e]
                        _dual_row(old[left:right], bound[left:right], here[left:right], ahead, step, flow)
                        owner = div[b, there] if there >= top else halo[b, band, there - top + reach]
                        add_flow(flow, div[b, y, left:right], owner[a:e])
                    out[b, k, y] = new


@numba.njit(cache=True)
def add_halo(div: Array, halo: Array) -> None:
    """Add to each row what the band below owes to it."""
    images, height, _ = div.shape
    bands, reach = halo.shape[1], halo.shape[2]
    for b in range(images):
        for band in range(1, bands):
            top = height * band // bands
            for row in range(max(0, reach - top), reach):
                div[b, top - reach + row] += halo[b, band, row]


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _primal_rows(
    u: Array, div: Array, f: Array, c: Array, step: Array, u_out: Array, u_bar_out: Array
) -> None:
    """u+ = (u - tau div + tau lam c f) / (1 + tau lam c), u_bar+ = u+ + theta (u+ - u); all (rows, W)."""
    tau, lam, theta = step[0], step[1], step[2]
    one = step.dtype.type(1)
    for y in numba.prange(u.shape[0]):
        for x in range(u.shape[1]):
            pull = tau * lam * c[y, x]
            value = (u[y, x] - tau * div[y, x] + pull * f[y, x]) / (one + pull)
            u_out[y, x] = value
            u_bar_out[y, x] = value + theta * (value - u[y, x])


@numba.njit(parallel=True, fastmath=True, cache=True)
def _exponents(affinities: Array, near: Array, rate: Array, out: Array) -> None:
    """-near[k] - rate[0] |a|, map by map; `affinities` may lie in memory in any order."""
    images, pairs, height, width = out.shape
    slope = rate[0]
    for job in numba.prange(images * height):
        b, y = job // height, job % height
        for k in range(pairs):
            base = near[k]
            for x in range(width):
                out[b, k, y, x] = -base - slope * abs(affinities[b, k, y, x])


def weights_of(affinities: Tensor, near: Tensor, rate: Tensor) -> Tensor:
    """exp(-near_k - rate |a|) as (B, N, H, W), contiguous; `near` has N numbers."""
    out = torch.empty(affinities.shape, dtype=affinities.dtype)
    numba.set_num_threads(min(torch.get_num_threads(), MAX_THREADS))
    _exponents(affinities.numpy(), near.numpy(), rate.view(1).numpy(), out.numpy())
    for image in out:
        for one in image:  # while it is in the cache
            one.exp_()
    return out


def run_from_affinities(
    f: Tensor,
    affinities: Tensor,
    c: Tensor,
    scales: Tensor,
    coefficients: Tensor,
    offsets: Offsets,
    samples: SampleTerm | None = None,
) -> Tensor:
    """Result of the iterations from u = f, p = q = 0 with w = exp(-|d_k| / scales[0] - |a| / scales[1])."""
    near = torch.tensor([(dy * dy + dx * dx) ** 0.5 for dy, dx in offsets], dtype=f.dtype) / scales[0]
    w = weights_of(affinities, near, 1.0 / scales[1])
    p = torch.zeros(w.shape, dtype=w.dtype)
    q = None if samples is None else torch.zeros_like(samples.d)
    return iterations(f, f, p, w, (f, c), coefficients, offsets, samples, q, out=p)[0]


def iterations(
    u: Tensor,
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    data: tuple[Tensor, Tensor],
    coefficients: Tensor,
    offsets: Offsets,
    samples: SampleTerm | None = None,
    q: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """N iterations of non-local Huber with quadratic data terms; no argument but `out` is modified.

    Args:
        u: (B, 1, H, W), like u_bar.
        p: (B, N, H, W), like w.
        data: f and c, (B, 1, H, W).
        coefficients: (n, 5) of sigma, tau, eps, lam, theta; with samples (n, 6), the step of q behind them.
        offsets: of a half window.
        samples: of the sample term, or None for none.
        q: (B, 1, h, w) dual variable of the sample term.
        out: memory for the new p, which may be p itself, or None for fresh memory.

    Returns:
        The new u, u_bar, p and, with samples, q.
    """
    width = u.shape[-1]
    f, c = (t.contiguous().view(-1, width).numpy() for t in data)
    p, w = p.contiguous(), w.contiguous()
    u, u_bar = (t.clone(memory_format=torch.contiguous_format) for t in (u, u_bar))
    out, div = torch.empty_like(p) if out is None else out, torch.empty_like(u)
    spare = (torch.empty_like(u), torch.empty_like(u_bar))
    for sigma, tau, eps, lam, theta, *steps in coefficients.tolist():
        p, _ = dual_step(u_bar, p, w, offsets, (sigma, 0.0, eps), out=out, div=div)
        if samples is not None and q is not None:
            q, pull = sample_step(samples, u_bar, q, steps[0])
            div += pull
        step = np.array((tau, lam, theta), dtype=f.dtype)
        rows = [t.view(-1, width).numpy() for t in (u, div, *spare)]
        _primal_rows(rows[0], rows[1], f, c, step, rows[2], rows[3])
        (u, u_bar), spare = spare, (u, u_bar)
    return (u, u_bar, p) if q is None else (u, u_bar, p, q)


def dual_step(
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    offsets: Offsets,
    step: tuple[float, float, float],
    out: Tensor | None = None,
    div: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One dual update of non-local Huber and its divergence.

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
