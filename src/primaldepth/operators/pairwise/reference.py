"""Pairwise operators in plain torch: the definition that faster backends are tested against."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator

Offset = tuple[int, int]


def half_window(size: int) -> tuple[Offset, ...]:
    """Return the offsets (dy, dx) of a size x size window, each unordered pair once: 24 for a 7x7 window.

    Args:
        size: side of the window, odd.

    Raises:
        ValueError: the size is even, or below 3.

    Example:
        >>> from primaldepth.operators import half_window
        >>> half_window(3)
        ((-1, -1), (-1, 0), (-1, 1), (0, -1))
    """
    if size < 3 or size % 2 == 0:
        raise ValueError(f"window size must be odd and at least 3, got {size}")
    r = size // 2
    full = [(dy, dx) for dy in range(-r, 1) for dx in range(-r, r + 1)]
    return tuple((dy, dx) for dy, dx in full if dy < 0 or dx < 0)


def ends(offset: Offset, size: tuple[int, int]) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the slices of all x and of all y = x + offset for which both lie inside an image.

    Args:
        offset: (dy, dx).
        size: (H, W) of the image.

    Returns:
        (rows, columns) of the x, and of the y; empty ones where no pair lies inside.
    """
    (dy, dx), (height, width) = offset, size
    rows = slice(max(0, -dy), max(height - max(0, dy), 0))
    columns = slice(max(0, -dx), max(width - max(0, dx), 0))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        empty = (slice(0, 0), slice(0, 0))
        return empty, empty
    return (rows, columns), (
        slice(rows.start + dy, rows.stop + dy),
        slice(columns.start + dx, columns.stop + dx),
    )


class PairwiseDifference(LinearOperator):
    """(K u)(x, k) = u(x) - u(x + d_k), 0 where x + d_k lies outside the image.

    (C, H, W) -> (C * N, H, W) for N offsets, channel by channel: maps 0..N-1 belong to the
    first channel. The adjoint gathers sum_k p(x, k) - p(x - d_k, k). Each offset alone has
    norm^2 <= 4, so ||K||^2 <= 4 N.

    Example:
        >>> import torch
        >>> from primaldepth.operators import PairwiseDifference
        >>> K = PairwiseDifference((1, 3), offsets=[(0, 1), (0, 2)])
        >>> K.forward(torch.tensor([[[[1.0, 2.0, 4.0]]]]))[0].tolist()
        [[[-1.0, -2.0, 0.0]], [[-3.0, 0.0, 0.0]]]
    """

    def __init__(
        self, size: tuple[int, int], offsets: Sequence[Offset], channels: int = 1, sign: float = -1.0
    ) -> None:
        self.size, self.offsets, self.sign = size, tuple(offsets), sign
        self.in_shape = (channels, *size)
        self.out_shape = (channels * len(self.offsets), *size)
        self._ends = [ends(offset, size) for offset in self.offsets]

    def forward(self, u: Tensor) -> Tensor:
        """Return all differences, one map per channel and offset."""
        out = u.new_zeros((u.shape[0], u.shape[1], len(self.offsets), *self.size))
        for k, (x, y) in enumerate(self._ends):
            here, there = u[:, :, x[0], x[1]], u[:, :, y[0], y[1]]
            out[:, :, k, x[0], x[1]] = here - there if self.sign < 0 else here + there
        return out.flatten(1, 2)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return the non-local divergence (with its sign): what flows out of x minus what flows in."""
        p = p.reshape(p.shape[0], self.in_shape[0], len(self.offsets), *self.size)
        out = p.new_zeros((p.shape[0], *self.in_shape))
        for k, (x, y) in enumerate(self._ends):
            flow = p[:, :, k, x[0], x[1]]
            out[:, :, x[0], x[1]] += flow
            out[:, :, y[0], y[1]] += flow if self.sign > 0 else -flow
        return out

    @property
    def norm_bound(self) -> float:
        """Return sqrt(4 N)."""
        return 2.0 * math.sqrt(len(self.offsets))

    @property
    def row_sums(self) -> tuple[float, ...]:
        """Return 1 + 1 for every pair."""
        return (2.0,) * len(self.offsets)

    def magnitude(self) -> LinearOperator:
        """Return the operator with sums in place of differences."""
        return PairwiseDifference(self.size, self.offsets, self.in_shape[0], 1.0)


class PairwiseSlope(LinearOperator):
    """(u, v) -> u(x) - u(y) - <(v(x) + v(y)) / 2, x - y> for y = x + d_k: (3, H, W) -> (N, H, W).

    The coupling of non-local TGV: zero for every plane with slope v. The mean of the two
    slopes serves the unordered pairs of a half window and makes it zero for quadratics too
    when v is their gradient. Per offset norm^2 <= 4 + |d_k|^2.
    """

    def __init__(self, size: tuple[int, int], offsets: Sequence[Offset], sign: float = -1.0) -> None:
        self.size, self.offsets, self.sign = size, tuple(offsets), sign
        self.in_shape = (3, *size)
        self.out_shape = (len(self.offsets), *size)
        self._ends = [ends(offset, size) for offset in self.offsets]

    def _slopes(self) -> list[tuple[float, float]]:
        """Return the coefficients of v in each pair: + d_k / 2, since x - y = -d_k."""
        return [(abs(dy) / 2, abs(dx) / 2) if self.sign > 0 else (dy / 2, dx / 2) for dy, dx in self.offsets]

    def forward(self, u: Tensor) -> Tensor:
        """Return the departure of each pair from the plane through its mean slope."""
        out = u.new_zeros((u.shape[0], *self.out_shape))
        for k, ((x, y), (a, b)) in enumerate(zip(self._ends, self._slopes(), strict=True)):
            here, there = u[:, :, x[0], x[1]], u[:, :, y[0], y[1]]
            v = here[:, 1:] + there[:, 1:]
            out[:, k, x[0], x[1]] = here[:, 0] + self.sign * there[:, 0] + a * v[:, 0] + b * v[:, 1]
        return out

    def adjoint(self, p: Tensor) -> Tensor:
        """Each pair gives its flow back to u with the signs of its ends, to v along its slope."""
        out = p.new_zeros((p.shape[0], *self.in_shape))
        for k, ((x, y), (a, b)) in enumerate(zip(self._ends, self._slopes(), strict=True)):
            flow = p[:, k, x[0], x[1]]
            out[:, :, x[0], x[1]] += torch.stack([flow, a * flow, b * flow], dim=1)
            out[:, :, y[0], y[1]] += torch.stack([self.sign * flow, a * flow, b * flow], dim=1)
        return out

    @property
    def norm_bound(self) -> float:
        """Return sqrt(sum_k 4 + |d_k|^2)."""
        return math.sqrt(sum(4.0 + dy * dy + dx * dx for dy, dx in self.offsets))

    @property
    def row_sums(self) -> tuple[float, ...]:
        """Return 1 + 1 for u, and |d_k| / 2 at both ends for each of the two slopes."""
        return tuple(2.0 + abs(dy) + abs(dx) for dy, dx in self.offsets)

    def magnitude(self) -> LinearOperator:
        """Return the operator with sums in place of differences, and absolute slopes."""
        return PairwiseSlope(self.size, self.offsets, 1.0)
