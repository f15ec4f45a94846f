"""Resampling on the CPU without the zeros of its matrices, compiled by numba.

An output pixel reads a few neighbouring input pixels, so most of a matrix is 0. The products take the
stretches of weights that `Resample.stretches` found.
"""

import numba
import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.operators.sampling.grids import Resample
from primaldepth.operators.sampling.samples import SampleTerm
from primaldepth.operators.threads import Array, array_of, thread_count


@numba.njit(error_model="numpy", cache=True)
def _row_sum(x: Array, first: int, weights: Array, out: Array) -> None:
    """Sum of weighted rows of x."""
    out[:] = 0
    for t in range(weights.size):
        row, weight = x[first + t], weights[t]
        for i in range(out.size):
            out[i] += weight * row[i]


@numba.njit(error_model="numpy", cache=True)
def _dots(row: Array, first: NDArray[np.int64], weights: Array, out: Array) -> None:
    """Sums of weighted numbers of a row."""
    for i in range(out.size):
        start, total = first[i], weights[i, 0] * 0
        for t in range(weights.shape[1]):
            total += weights[i, t] * row[start + t]
        out[i] = total


@numba.njit(parallel=True, cache=True)
def _along_rows(
    x: Array, channel: int, first: NDArray[np.int64], weights: Array, out: Array, to: int
) -> None:
    """M x for channel `channel` of x: (B, C, n, W) into channel `to` of out: (B, C', m, W)."""
    images, rows = out.shape[0], out.shape[2]
    for job in numba.prange(images * rows):
        b, y = job // rows, job % rows
        _row_sum(x[b, channel], first[y], weights[y], out[b, to, y])


@numba.njit(parallel=True, cache=True)
def _along_columns(x: Array, first: NDArray[np.int64], weights: Array, out: Array) -> None:
    """The product x M' of x: (rows, n), out: (rows, m)."""
    for y in numba.prange(len(x)):
        _dots(x[y], first, weights, out[y])


def reduce(A: Resample, u: Tensor, channel: int = 0) -> Tensor:
    """Return A_y u A_x' of one channel of u.

    Args:
        A: the reduction.
        u: (B, C, H, W).
        channel: that is read.

    Returns:
        (B, 1, h, w).
    """
    rows, columns = A.stretches(u.dtype, transposed=False)
    images, width = u.shape[0], u.shape[3]
    _, h, w = A.out_shape
    thread_count(1, h, 1)
    half, out = u.new_empty((images, 1, h, width)), u.new_empty((images, 1, h, w))
    _along_rows(array_of(u), channel, *rows, half.numpy(), 0)
    _along_columns(half.view(-1, width).numpy(), *columns, out.view(-1, w).numpy())
    return out


def spread(A: Resample, p: Tensor, channels: int = 1, channel: int = 0) -> Tensor:
    """Return A_y' p A_x as one of several channels, 0 in the others.

    Args:
        A: the reduction.
        p: (B, 1, h, w).
        channels: of the result.
        channel: that holds the product.

    Returns:
        (B, channels, H, W).
    """
    rows, columns = A.stretches(p.dtype, transposed=True)
    images, _, h, w = p.shape
    _, height, width = A.in_shape
    thread_count(1, height, 1)
    half, out = p.new_empty((images, 1, h, width)), p.new_empty((images, channels, height, width))
    out[:, :channel] = 0
    out[:, channel + 1 :] = 0
    _along_columns(array_of(p).reshape(-1, w), *columns, half.view(-1, width).numpy())
    _along_rows(half.numpy(), 0, *rows, out.numpy(), channel)
    return out


def sample_step(samples: SampleTerm, u_bar: Tensor, q: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Return q+ = lam (q + step (A u_bar - d)) / (lam + step), and A' q+.

    Args:
        samples: A, d and lam.
        u_bar: (B, 1, H, W).
        q: (B, 1, h, w).
        step: dual step.

    Returns:
        (B, 1, h, w) and (B, 1, H, W).
    """
    A, lam = samples.A, samples.lam
    seen = reduce(A, u_bar) if isinstance(A, Resample) else A(u_bar)
    q = lam * (q + step * (seen - samples.d)) / (lam + step)
    return q, spread(A, q) if isinstance(A, Resample) else A.adjoint(q)
