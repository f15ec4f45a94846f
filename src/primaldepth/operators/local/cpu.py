"""Fused dual update and adjoint of differences between next neighbours on the CPU, compiled by numba.

Rows are split into bands, one per thread. A band walks down its rows: K u_bar, the step, the projection
and the adjoint of one row are computed while it is in the cache, so p, T and u cross the memory bus once.
What flows from a row to the next one is carried along; what leaves a band is added when all are done.
Every number is the same sum in the same order for any number of bands.
"""

import math

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.local.descent import number
from primaldepth.operators.local.rows import down, from_above, from_left, mix, project, right
from primaldepth.operators.threads import Array, array_of, band_of, thread_count


@numba.njit(error_model="numpy", cache=True)
def _edge_band(
    u: Array, p: Array, T: Array, sigma: Array, w: Array, out: Array, div: Array, carry: Array,
    top: int, bottom: int,
) -> None:  # fmt: skip
    """Rows top to bottom of one image.

    u, div: (1 or 3, H, W), p, out: (2, H, W), T: (3, H, W), sigma, w: (H or 1, W), carry: (1, W).
    """
    channels, height, width = u.shape
    g, z, length = np.empty_like(p[:, 0]), np.empty_like(p[:, 0]), np.empty_like(p[0, 0])
    carry[:] = 0
    for y in range(top, bottom):
        down(u[0], y, g[0])
        right(u[0, y], g[1])
        if channels == 3:
            if y + 1 < height:
                g[0] -= u[1, y]
            g[1, : width - 1] -= u[2, y, : width - 1]
        mix(T[0, y], g[0], T[1, y], g[1], z[0])
        mix(T[1, y], g[0], T[2, y], g[1], z[1])
        project(p, y, sigma[y % len(sigma)], w[y % len(w)], z, length, out)
        mix(T[0, y], z[0], T[1, y], z[1], g[0])
        mix(T[1, y], z[0], T[2, y], z[1], g[1])
        if y + 1 == height:
            g[0] = 0
        g[1, width - 1] = 0
        from_left(g[1], div[0, y])
        from_above(g[0], carry[0], div[0, y])
        if channels == 3:
            div[1, y] = -g[0]
            div[2, y] = -g[1]


@numba.njit(error_model="numpy", cache=True)
def _bend_band(
    u: Array, p: Array, sigma: Array, w: Array, first: int, out: Array, div: Array, carry: Array,
    top: int, bottom: int,
) -> None:  # fmt: skip
    """Rows top to bottom of one image.

    u, div: (C, H, W) with the slopes from channel `first` on, p, out: (3, H, W), sigma, w: (H or 1, W),
    carry: (2, W).
    """
    _, height, width = p.shape
    v_y, v_x, div_y, div_x = u[first], u[first + 1], div[first], div[first + 1]
    z, length, half = np.empty_like(p[:, 0]), np.empty_like(p[0, 0]), np.empty_like(p[0, 0])
    half[:] = math.sqrt(0.5)
    carry[:] = 0
    for y in range(top, bottom):
        right(v_y[y], z[0])
        down(v_x, y, z[1])
        mix(half, z[0], half, z[1], z[2])
        down(v_y, y, z[0])
        right(v_x[y], z[1])
        project(p, y, sigma[y % len(sigma)], w[y % len(w)], z, length, out)
        z[2] *= half
        end = z[2, width - 1]
        z[1, width - 1] = z[2, width - 1] = 0
        from_left(z[2], div_y[y])
        from_left(z[1], div_x[y])
        z[2, width - 1] = end
        if y + 1 == height:
            z[0], z[2] = 0, 0
        from_above(z[0], carry[0], div_y[y])
        from_above(z[2], carry[1], div_x[y])


# What runs in parallel only hands out the bands: the compiler takes long for every line in here.
@numba.njit(parallel=True, cache=True)
def _edge_bands(
    u: Array, p: Array, T: Array, sigma: Array, w: Array, out: Array, div: Array, carry: Array
) -> None:
    """As `_edge_band` with the images in front, and the bands in carry: (B, bands, 1, W)."""
    images, bands, height = len(p), carry.shape[1], p.shape[2]
    for job in numba.prange(images * bands):
        b, band, top, bottom = band_of(job, bands, height)
        _edge_band(
            u[b], p[b], T[b % len(T)], sigma[b % len(sigma)], w[b % len(w)], out[b], div[b], carry[b, band],
            top, bottom,
        )  # fmt: skip


@numba.njit(parallel=True, cache=True)
def _bend_bands(
    u: Array, p: Array, sigma: Array, w: Array, first: int, out: Array, div: Array, carry: Array
) -> None:
    """As `_bend_band` with the images in front, and the bands in carry: (B, bands, 2, W)."""
    images, bands, height = len(p), carry.shape[1], p.shape[2]
    for job in numba.prange(images * bands):
        b, band, top, bottom = band_of(job, bands, height)
        _bend_band(
            u[b], p[b], sigma[b % len(sigma)], w[b % len(w)], first, out[b], div[b], carry[b, band],
            top, bottom,
        )  # fmt: skip


def _rows(values: float | Tensor, p: Tensor) -> Array:
    """A number or a map (B or 1, 1, H, W) as (B or 1, 1 or H, W)."""
    if isinstance(values, Tensor) and values.numel() > 1:
        return array_of(values[:, 0])
    return array_of(p.new_full((1, 1, p.shape[3]), number(values)))


def _carry(p: Tensor, channels: int) -> Array:
    """Memory for what leaves each band: (B, bands, channels, W)."""
    bands = thread_count(len(p), p.shape[2], 1)
    return array_of(p.new_empty((len(p), bands, channels, p.shape[3])))


def _settle(div: Array, carry: Array) -> None:
    """Hand what left a band to the first row of the next one; div: (B, channels, H, W)."""
    bands, height = carry.shape[1], div.shape[2]
    for band in range(1, bands):
        div[:, :, height * band // bands] += carry[:, band - 1]


def edge_step(
    u_bar: Tensor, p: Tensor, T: Tensor, sigma: float | Tensor, w: float | Tensor, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Do one dual update of w |T grad u|, or of w |T (grad u - v)| if u_bar has slopes, and its adjoint.

    Args:
        u_bar: (B, 1 or 3, H, W).
        p: (B, 2, H, W) dual variable; not modified unless it is `out`.
        T: (B or 1, 3, H, W) entries (T_yy, T_yx, T_xx).
        sigma: the step, a number or (B or 1, 1, H, W).
        w: radius of the ball, a number or (B or 1, 1, H, W).
        out: memory for the new p, or None for fresh memory.

    Returns:
        The new p and K' p: (B, 1 or 3, H, W).
    """
    out = torch.empty_like(p, memory_format=torch.contiguous_format) if out is None else out
    div = torch.empty_like(u_bar, memory_format=torch.contiguous_format)
    total, carry = div.numpy(), _carry(p, 1)
    given = (array_of(u_bar), array_of(p), array_of(T), _rows(sigma, p), _rows(w, p))
    _edge_bands(*given, out.numpy(), total, carry)
    _settle(total[:, :1], carry)
    return out, div


def bend_step(
    u_bar: Tensor, p: Tensor, first: int, sigma: float | Tensor, w: float | Tensor, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Do one dual update of w |E v|, and its adjoint.

    Args:
        u_bar: (B, C, H, W) with v in the channels `first` and `first + 1`; the adjoint is 0 in the others.
        p: (B, 3, H, W).
        first: channel of u_bar.
        sigma: as of `edge_step`, like w and `out`.
        w: radius of the ball.
        out: memory for the new p, or None.

    Returns:
        The new p and K' p: (B, C, H, W).
    """
    out = torch.empty_like(p, memory_format=torch.contiguous_format) if out is None else out
    div = torch.empty_like(u_bar, memory_format=torch.contiguous_format)
    div[:, :first] = 0
    div[:, first + 2 :] = 0
    total, carry = div.numpy(), _carry(p, 2)
    given = (array_of(u_bar), array_of(p), _rows(sigma, p), _rows(w, p), first)
    _bend_bands(*given, out.numpy(), total, carry)
    _settle(total[:, first : first + 2], carry)
    return out, div
