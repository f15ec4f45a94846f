"""The primal update on the CPU, compiled by numba: a sum, a step and an extrapolation in one pass."""

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.threads import Array, array_of, thread_count


@numba.njit(error_model="numpy", cache=True)
def _add(term: Array, out: Array) -> None:
    for x in range(out.size):
        out[x] += term[x]


@numba.njit(error_model="numpy", cache=True)
def _descend_row(u: Array, tau: Array, theta: float, out: Array, bar: Array) -> None:
    """The step u - tau out in the place of `out`, and its extrapolation."""
    for x in range(out.size):
        out[x] = u[x] - tau[x] * out[x]
    for x in range(out.size):
        bar[x] = out[x] + theta * (out[x] - u[x])


@numba.njit(parallel=True, cache=True)
def _descend_rows(
    u: Array, pulls: tuple[Array, ...], tau: Array, theta: Array, out: Array, bar: Array
) -> None:
    """All (rows, W); tau: (rows or fewer, W), used over and over."""
    for y in numba.prange(len(u)):
        row = out[y]
        row[:] = 0
        for pull in pulls:
            _add(pull[y], row)
        _descend_row(u[y], tau[y % len(tau)], theta[0], row, bar[y])


def descend(
    u: Tensor, pulls: list[Tensor], tau: float | Tensor, theta: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Return u+ = u - tau sum(pulls) and u+ + theta (u+ - u).

    Args:
        u: (B, C, H, W).
        pulls: each (B, C, H, W).
        tau: a number or (B or 1, C, H, W).
        theta: a number.
    """
    width = u.shape[-1]
    if not isinstance(tau, Tensor) or tau.numel() == 1:
        tau = u.new_full((1, width), number(tau))
    out = torch.empty_like(u, memory_format=torch.contiguous_format)
    bar = torch.empty_like(out)
    thread_count(1, u.numel() // width, 1)
    given, step, sums = _rows(u, width), _rows(tau, width), tuple(_rows(pull, width) for pull in pulls)
    thetas = np.array([number(theta)], dtype=given.dtype)
    _descend_rows(given, sums, step, thetas, _rows(out, width), _rows(bar, width))
    return out, bar


def number(value: float | Tensor) -> float:
    """Return a tensor of one number as that number.

    Args:
        value: a number, or a tensor of one.
    """
    return float(value.detach() if isinstance(value, Tensor) else value)


def _rows(t: Tensor, width: int) -> Array:
    return array_of(t).reshape(-1, width)
