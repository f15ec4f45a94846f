"""One row of the local operators and of the projection, compiled by numba.

A loop reads and writes few rows, each under one name: only so does the compiler use vector instructions.
"""

import math

import numba
import numpy as np

from primaldepth.operators.threads import Array


@numba.njit(error_model="numpy", cache=True)
def down(u: Array, y: int, out: Array) -> None:
    """d_y u of row y: 0 in the last row."""
    if y + 1 == u.shape[0]:
        out[:] = 0
        return
    here, below = u[y], u[y + 1]
    for x in range(out.size):
        out[x] = below[x] - here[x]


@numba.njit(error_model="numpy", cache=True)
def right(row: Array, out: Array) -> None:
    """d_x u of a row: 0 in the last column."""
    for x in range(row.size - 1):
        out[x] = row[x + 1] - row[x]
    out[-1] = 0


@numba.njit(error_model="numpy", cache=True)
def from_left(flow: Array, out: Array) -> None:
    """d_x' of a row whose last number is 0."""
    out[0] = -flow[0]
    for x in range(1, flow.size):
        out[x] = flow[x - 1] - flow[x]


@numba.njit(error_model="numpy", cache=True)
def from_above(flow: Array, above: Array, out: Array) -> None:
    """d_y' of a row, added to `out`; the flow then takes the place of the one above."""
    for x in range(out.size):
        out[x] -= flow[x]
    for x in range(out.size):
        out[x] += above[x]
    above[:] = flow


@numba.njit(error_model="numpy", cache=True)
def mix(a: Array, z_y: Array, b: Array, z_x: Array, out: Array) -> None:
    """One row of a z_y + b z_x."""
    for x in range(out.size):
        out[x] = a[x] * z_y[x] + b[x] * z_x[x]


@numba.njit(error_model="numpy", cache=True)
def _ascend(p: Array, sigma: Array, z: Array, length: Array) -> None:
    """One channel of q = p + sigma z, in the place of z; adds q^2 to `length`."""
    for x in range(z.size):
        z[x] = p[x] + sigma[x] * z[x]
    for x in range(z.size):
        length[x] += z[x] * z[x]


@numba.njit(error_model="numpy", cache=True)
def project(p: Array, y: int, sigma: Array, w: Array, z: Array, length: Array, out: Array) -> None:
    """p+ = q min(1, w / |q|) with q = p + sigma z, in the place of z and in row y of `out`."""
    one, tiny = w[0] * 0 + 1, np.finfo(w.dtype).tiny
    length[:] = 0
    for c in range(z.shape[0]):
        _ascend(p[c, y], sigma, z[c], length)
    for x in range(length.size):
        ratio = w[x] / max(math.sqrt(length[x]), tiny)
        length[x] = ratio if ratio < one else one
    for c in range(z.shape[0]):
        row = z[c]
        for x in range(length.size):
            row[x] *= length[x]
        out[c, y] = row
