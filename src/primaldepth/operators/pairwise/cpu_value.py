"""The energy of pairs on the CPU, compiled by numba: sum_k h(K u), without a tensor of differences.

Every row of pixels has a sum of its own, in double precision, and the rows are added in their order: the
result does not depend on the number of threads.
"""

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.pairwise.cpu import inner_ends
from primaldepth.operators.pairwise.cpu_slope import departure
from primaldepth.operators.threads import Array, thread_count


@numba.njit(fastmath=True, cache=True)
def _difference(u: Array, u_there: Array, out: Array) -> None:
    for x in range(out.size):
        out[x] = u[x] - u_there[x]


@numba.njit(fastmath=True, error_model="numpy", cache=True)
def _huber(z: Array, w: Array, eps: float) -> float:
    """Sum of w |z|, or with eps > 0 of p z - eps p^2 / 2 where p = clamp(z / eps, -w, w)."""
    total = 0.0
    if eps == 0:
        for x in range(z.size):
            total += w[x] * abs(z[x])
        return total
    for x in range(z.size):
        size, bound = abs(z[x]), w[x]
        p = size / eps
        p = p if p < bound else bound
        total += p * (size - eps / 2 * p)
    return total


@numba.njit(fastmath=True, cache=True)
def _row_value(z: Array, w: Array, y: int, offsets: Array, halves: Array, eps: float) -> float:
    """What the pairs of row y add; z: (1 or 3, H, W), w: (N, H, W)."""
    channels, _, width = z.shape
    apart, total = np.empty_like(z[0, 0]), 0.0
    for k in range(len(offsets)):
        there, left, right = inner_ends(offsets[k], y, width)
        if left == right:
            continue
        row, start = apart[left:right], left + offsets[k, 1]
        if channels == 3:
            departure(z, y, left, there, start, halves[k, 0], halves[k, 1], row)
        else:
            _difference(z[0, y, left:right], z[0, there, start : start + row.size], row)
        total += _huber(row, w[k, y, left:right], eps)
    return total


@numba.njit(parallel=True, cache=True)
def _row_values(z: Array, w: Array, offsets: Array, halves: Array, eps: float, out: Array) -> None:
    """z: (B, 1 or 3, H, W), w: (B, N, H, W), out: (B, H)."""
    images, height = out.shape
    for job in numba.prange(images * height):
        b, y = job // height, job % height
        out[b, y] = _row_value(z[b], w[b], y, offsets, halves, eps)


def pair_value(u: Tensor, w: Tensor, offsets: tuple[tuple[int, int], ...], eps: float) -> Tensor:
    """Return F(K u) of the Huber penalty.

    Args:
        u: (B, 1, H, W) for `PairwiseDifference`, (B, 3, H, W) for `PairwiseSlope`.
        w: (B, N, H, W) weights.
        offsets: of a half window.
        eps: width of the quadratic part, 0 for none.

    Returns:
        (B,).
    """
    z, weights = u.contiguous().numpy(), w.contiguous().numpy()
    sums = np.empty((u.shape[0], u.shape[2]))
    halves = (np.array(offsets) / 2).astype(z.dtype)
    thread_count(1, sums.size, 1)
    _row_values(z, weights, np.array(offsets), halves, eps, sums)
    return torch.from_numpy(sums.sum(axis=1)).to(u.dtype)
