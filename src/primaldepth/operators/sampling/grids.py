"""Resampling between pixel grids as separable matrices, so that the adjoint is exact.

Both grids cover the same field of view and have their pixel centres at half-integers:
output pixel i sits at input coordinate (i + 1/2) * n_in / n_out - 1/2. When the grid gets
coarser the kernel is stretched by the ratio (antialiasing), except for "point", which interpolates
linearly at the centre of each output pixel whatever the ratio; at the border the signal is mirrored, and
every row of weights sums to one.
"""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, pad

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.sampling.bands import Band

Kernel = Literal["nearest", "bilinear", "bicubic", "area", "point"]
Array = NDArray[np.float64]
Stretches = tuple[NDArray[np.int64], NDArray[np.floating[Any]]]


def _triangle(t: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(t))


def _cubic(t: Array) -> Array:
    """Return the weights of cubic convolution with a = -1/2, which is exact for quadratics."""
    t = np.abs(t)
    near = 1.5 * t**3 - 2.5 * t**2 + 1.0
    far = -0.5 * t**3 + 2.5 * t**2 - 4.0 * t + 2.0
    return np.where(t <= 1.0, near, np.where(t < 2.0, far, 0.0))


def _kernel_matrix(kernel: Kernel, n_in: int, n_out: int) -> Array:
    function, radius = (_cubic, 2.0) if kernel == "bicubic" else (_triangle, 1.0)
    stretch = 1.0 if kernel == "point" else max(1.0, n_in / n_out)
    centre = (np.arange(n_out) + 0.5) * (n_in / n_out) - 0.5
    taps = math.ceil(2 * radius * stretch) + 2
    index = np.floor(centre - radius * stretch)[:, None].astype(np.int64) + np.arange(taps)[None, :]
    weight = function((centre[:, None] - index) / stretch)
    weight /= weight.sum(axis=1, keepdims=True)
    mirrored = np.mod(index, 2 * n_in)
    mirrored = np.where(mirrored < n_in, mirrored, 2 * n_in - 1 - mirrored)
    matrix = np.zeros((n_out, n_in))
    np.add.at(matrix, (np.arange(n_out)[:, None], mirrored), weight)
    return matrix


def _area_matrix(n_in: int, n_out: int) -> Array:
    """Return rows that average over the footprint of each output pixel, partial overlaps by length."""
    left = np.arange(n_out)[:, None] * (n_in / n_out)
    right = left + n_in / n_out
    cell = np.arange(n_in)[None, :]
    overlap = np.clip(np.minimum(right, cell + 1) - np.maximum(left, cell), 0.0, None)
    return np.asarray(overlap / overlap.sum(axis=1, keepdims=True))


def nearest_index(n_in: int, n_out: int) -> NDArray[np.int64]:
    """Return the input pixel whose cell holds the centre of each output pixel.

    Args:
        n_in: pixels of the input along the axis.
        n_out: pixels of the output.

    Returns:
        (n_out,).
    """
    return np.minimum(((np.arange(n_out) + 0.5) * (n_in / n_out)).astype(np.int64), n_in - 1)


def _nearest_matrix(n_in: int, n_out: int) -> Array:
    matrix = np.zeros((n_out, n_in))
    matrix[np.arange(n_out), nearest_index(n_in, n_out)] = 1.0
    return matrix


def resampling_matrix(kernel: Kernel, n_in: int, n_out: int) -> Array:
    """Return the weights of one axis, read-only; rows sum to one.

    Args:
        kernel: as of `resample`.
        n_in: pixels of the input along the axis.
        n_out: pixels of the output.

    Returns:
        (n_out, n_in).
    """
    weights = _matrix(kernel, n_in, n_out).view()
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=64)
def _matrix(kernel: Kernel, n_in: int, n_out: int) -> Array:
    """Return the matrix that `Resample` holds, not a copy: it can have hundreds of megabytes."""
    if n_in < 1 or n_out < 1:
        raise ValueError(f"sizes must be positive, got {n_in} -> {n_out}")
    if kernel == "area":
        return _area_matrix(n_in, n_out)
    if kernel == "nearest":
        return _nearest_matrix(n_in, n_out)
    return _kernel_matrix(kernel, n_in, n_out)


def stretches(matrix: Array) -> Stretches:
    """Return the first column with a weight in each row of (m, n), and the weights from it on, (m, taps).

    Everything beyond is 0: an output pixel reads a few neighbouring input pixels.

    Args:
        matrix: (m, n).
    """
    n = matrix.shape[1]
    first, last = _ends(matrix)
    taps = int((last - first).max()) + 1
    first = np.minimum(first, n - taps)
    index = first[:, None] + np.arange(taps)[None, :]
    return first, np.take_along_axis(matrix, index, axis=1)


def _ends(matrix: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns (m,) of the first and of the last weight of each row; 0 for a row of zeros."""
    used, n = matrix != 0, matrix.shape[1]
    some = used.any(axis=1)
    return np.where(some, used.argmax(axis=1), 0), np.where(some, n - 1 - used[:, ::-1].argmax(axis=1), 0)


class Resample(LinearOperator):
    """u -> A_y u A_x' per channel, from one grid to another of the same field of view.

    ||A||^2 <= max row sum * max column sum of |A|, axis by axis.

    Example:
        >>> import torch
        >>> from primaldepth.operators import Resample
        >>> A = Resample((1, 4), (1, 2), "area")
        >>> A.forward(torch.tensor([[[[1.0, 3.0, 5.0, 7.0]]]])).flatten().tolist()
        [2.0, 6.0]
    """

    def __init__(
        self,
        in_size: tuple[int, int],
        out_size: tuple[int, int],
        kernel: Kernel = "bicubic",
        channels: int = 1,
    ) -> None:
        rows = _matrix(kernel, in_size[0], out_size[0])
        columns = _matrix(kernel, in_size[1], out_size[1])
        self._set(rows, columns, channels)

    def _set(self, rows: Array, columns: Array, channels: int) -> None:
        self.rows, self.columns = torch.from_numpy(rows), torch.from_numpy(columns)
        self.in_shape = (channels, rows.shape[1], columns.shape[1])
        self.out_shape = (channels, rows.shape[0], columns.shape[0])
        self._is_identity = all(np.array_equal(each, np.eye(len(each))) for each in (rows, columns))
        self._bound: float | None = None
        self._averaging: Resample | None = None
        self._cast: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}
        self._stretches: dict[tuple[torch.dtype, bool], tuple[Stretches, Stretches]] = {}
        self._bands: dict[tuple[torch.dtype, torch.device, bool], tuple[Band, Band]] = {}

    def _matrices(self, like: Tensor) -> tuple[Tensor, Tensor]:
        key = (like.dtype, like.device)
        if key not in self._cast:
            self._cast[key] = (self.rows.to(like), self.columns.to(like))
        return self._cast[key]

    def stretches(self, dtype: torch.dtype, *, transposed: bool) -> tuple[Stretches, Stretches]:
        """Return the weights of both axes, or those of the adjoint, without their zeros.

        Args:
            dtype: of the weights.
            transposed: whether to return those of the adjoint.
        """
        key = (dtype, transposed)
        if key not in self._stretches:
            both = [m.mT if transposed else m for m in (self.rows, self.columns)]
            (y, rows), (x, columns) = (stretches(m.numpy()) for m in both)
            kind = torch.empty(0, dtype=dtype).numpy().dtype
            self._stretches[key] = ((y, rows.astype(kind)), (x, columns.astype(kind)))
        return self._stretches[key]

    def bands(self, like: Tensor, *, transposed: bool) -> tuple[Band, Band]:
        """Return `stretches` as tensors on the device of `like`; only the first call copies them there.

        Args:
            like: tensor of the wanted type and device.
            transposed: whether to return those of the adjoint.
        """
        key = (like.dtype, like.device, transposed)
        if key not in self._bands:
            y, x = self.stretches(like.dtype, transposed=transposed)
            self._bands[key] = (_band(y, like), _band(x, like))
        return self._bands[key]

    def forward(self, u: Tensor) -> Tensor:
        """Return A_y u A_x'."""
        if self._is_identity:  # products with it would take most of the time of a solver
            return u.clone(memory_format=torch.contiguous_format)
        rows, columns = self._matrices(u)
        return rows @ u @ columns.mT

    def adjoint(self, p: Tensor) -> Tensor:
        """Return A_y' p A_x."""
        if self._is_identity:
            return p.clone(memory_format=torch.contiguous_format)
        rows, columns = self._matrices(p)
        return rows.mT @ (p @ columns)

    @property
    def norm_bound(self) -> float:
        """Return the product of the bounds of the axes; a part of an operator has the bound of the whole."""
        if self._bound is None:
            squares = [m.abs().sum(1).max() * m.abs().sum(0).max() for m in (self.rows, self.columns)]
            self._bound = float((squares[0] * squares[1]).sqrt())
        return self._bound

    def magnitude(self) -> LinearOperator:
        """Return the operator with absolute weights."""
        return self._like(self.rows.abs(), self.columns.abs())

    def window(self, rows: slice, columns: slice) -> "Resample":
        """Return the operator that gives only these rows and columns of the output.

        Args:
            rows: of the output.
            columns: of the output.
        """
        return self._like(self.rows[rows], self.columns[columns])

    def averaging(self) -> "Resample":
        """Return the operator of means with the absolute weights, scaled so that every row sums to one."""
        if self._averaging is None:
            both = (m.abs() / m.abs().sum(1, keepdim=True) for m in (self.rows, self.columns))
            self._averaging = self._like(*both)
        return self._averaging

    def restricted(self, rows: slice, columns: slice) -> tuple["Resample", tuple[slice, slice]]:
        """Return the operator from a window of the input to the outputs that read nothing else, and which.

        Its norm bound is that of the whole, which holds for every part: steps do not depend on windows.

        Args:
            rows: of the input.
            columns: of the input.
        """
        y, x = _inside(self.rows, rows), _inside(self.columns, columns)
        return self._bounded(self.rows[y, rows], self.columns[x, columns]), (y, x)

    def padded(self, below: int, right: int) -> "Resample":
        """Return the operator for an input with as many more rows and columns, which it does not read.

        Args:
            below: rows.
            right: columns.
        """
        return self._bounded(pad(self.rows, (0, below)), pad(self.columns, (0, right)))

    def turned(self, turns: int, flip: bool) -> "Resample":
        """Return the operator on images turned by `rot90(turns)`, then with `flip` mirrored left to right.

        Args:
            turns: quarter turns.
            flip: whether to mirror.
        """
        rows, columns = self.rows, self.columns
        for _ in range(turns % 4):
            rows, columns = columns.flip(0, 1), rows
        return self._bounded(rows, columns.flip(0, 1) if flip else columns)

    def _bounded(self, rows: Tensor, columns: Tensor) -> "Resample":
        other = self._like(rows, columns)
        other._bound = self.norm_bound
        return other

    def _like(self, rows: Tensor, columns: Tensor) -> "Resample":
        other = Resample.__new__(Resample)
        other._set(rows.contiguous().numpy(), columns.contiguous().numpy(), self.in_shape[0])
        return other


def _band(stretches: Stretches, like: Tensor) -> Band:
    """Return stretches as tensors on the device of `like`."""
    first, weights = (torch.from_numpy(each).to(like.device) for each in stretches)
    first = first.to(torch.int32)
    return Band(first, torch.full_like(first, weights.shape[1]), weights.mT.contiguous())


def _inside(matrix: Tensor, window: slice) -> slice:
    """Return the rows of a banded matrix whose weights all lie within a stretch of its columns."""
    first, last = _ends(matrix.numpy())
    start, stop, _ = window.indices(matrix.shape[1])
    whole = np.flatnonzero((first >= start) & (last < stop))
    return slice(int(whole[0]), int(whole[-1]) + 1) if len(whole) else slice(0, 0)


def resample(u: Tensor, size: tuple[int, int], kernel: Kernel = "bicubic") -> Tensor:
    """Resample an image to another size, as the operator `Resample` does: (B, C, h, w) -> (B, C, *size).

    Means over whole blocks, bilinear enlargement and reduction by "point" are torch's own, which do not
    multiply by the zeros of the matrices, nor keep these; values differ by rounding alone.

    Args:
        u: (B, C, h, w).
        size: (H, W) of the result.
        kernel: "nearest", "bilinear", "bicubic", "area" or "point".

    Returns:
        (B, C, H, W).
    """
    low = int(u.shape[2]), int(u.shape[3])
    if kernel == "area" and all(n % m == 0 for n, m in zip(low, size, strict=True)):
        return avg_pool2d(u, (low[0] // size[0], low[1] // size[1]))
    if kernel == "bilinear" and all(n <= m for n, m in zip(low, size, strict=True)):
        return interpolate(u, size, mode="bilinear", align_corners=False)
    if kernel == "point" and all(n >= m for n, m in zip(low, size, strict=True)):
        return interpolate(u, size, mode="bilinear", align_corners=False)
    return Resample(low, size, kernel, int(u.shape[1])).forward(u)
