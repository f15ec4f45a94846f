"""Reductions of grids that differ from image to image of a batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.sampling.bands import Band
from primaldepth.operators.sampling.grids import Resample, Stretches

Taps = tuple[tuple[int, int], tuple[int, int]]
"""Most weights next to each other in a row of the two matrices, and of their transposes."""


class MixedResample(LinearOperator):
    """u_b -> A_b u_b for every image b: (B, 1, H, W) -> (B, 1, h, w), h and w the largest of all A_b.

    Samples beyond those of A_b have no weights and are 0.

    Args:
        rows: (B, 1, h, H) weights along columns of pixels.
        columns: (B, 1, w, W) weights along rows of pixels.
        norms: (B, 1, 1, 1) bounds of ||A_b||.
        taps: of the matrices; None: their rows are read whole.
    """

    def __init__(
        self,
        rows: Tensor,
        columns: Tensor,
        norms: Tensor,
        bound: float | None = None,
        taps: Taps | None = None,
    ) -> None:
        self.rows, self.columns, self.norms, self._bound = rows, columns, norms, bound
        self.in_shape = (1, rows.shape[3], columns.shape[3])
        self.out_shape = (1, rows.shape[2], columns.shape[2])
        self.taps = taps
        self._bands: dict[bool, tuple[Band, Band]] = {}

    @classmethod
    def interleaved(cls, parts: Sequence[Resample], count: int, like: Tensor) -> "MixedResample":
        """Return the operator of a batch in which `parts` operators take turns, `count` times each.

        Args:
            parts: operators on images of one size.
            count: images of each operator.
            like: tensor of the wanted type and device.
        """
        h, w = (max(part.out_shape[axis] for part in parts) for axis in (1, 2))
        rows = torch.stack([_taller(part.rows, h) for part in parts]).to(like)
        columns = torch.stack([_taller(part.columns, w) for part in parts]).to(like)
        norms = torch.tensor([part.norm_bound for part in parts]).to(like).view(-1, 1, 1, 1)
        rows, columns = (each[:, None].repeat(count, 1, 1, 1) for each in (rows, columns))
        return cls(rows, columns, norms.repeat(count, 1, 1, 1), taps=taps_of(parts))

    @classmethod
    def given(cls, rows: Tensor, columns: Tensor) -> "MixedResample":
        """Return the operator of one image from its matrices, (h, H) and (w, W), without asking for sizes.

        Args:
            rows: (h, H) weights along columns of pixels.
            columns: (w, W) weights along rows of pixels.
        """
        squares = [m.abs().sum(1).amax(0) * m.abs().sum(0).amax(0) for m in (rows, columns)]
        return cls(rows[None, None], columns[None, None], (squares[0] * squares[1]).sqrt().view(1, 1, 1, 1))

    def part(self, share: slice) -> "MixedResample":
        """Return the operator of some images of the batch.

        Args:
            share: which images.
        """
        return MixedResample(self.rows[share], self.columns[share], self.norms[share], taps=self.taps)

    @property
    def matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return all tensors of the operator: rows, columns and norms."""
        return self.rows, self.columns, self.norms

    def copied(self) -> "MixedResample":
        """Return the same operator with matrices in memory of their own."""
        rows, columns, norms = (each.clone() for each in self.matrices)
        return MixedResample(rows, columns, norms, self._bound, self.taps)

    def on_larger_maps(self, size: tuple[int, int], taps: Taps) -> "MixedResample":
        """Return the same operator with maps of samples of size (h, w), and places for so many weights.

        Args:
            size: (h, w), at least that of the samples.
            taps: places for weights, at least those of the matrices.
        """
        rows, columns = (
            torch.nn.functional.pad(each, (0, 0, 0, side - each.shape[2]))
            for each, side in zip((self.rows, self.columns), size, strict=True)
        )
        return MixedResample(rows, columns, self.norms, self._bound, taps)

    def unit(self) -> "MixedResample":
        """Return A_b / ||A_b||, whose bound is 1, so that one step serves all images."""
        root = self.norms.sqrt()
        ones = torch.ones_like(self.norms)
        return MixedResample(self.rows / root, self.columns / root, ones, 1.0, self.taps)

    def averaging(self) -> "MixedResample":
        """Return the operator of means with the absolute weights; 0 where a sample has no weights."""
        rows, columns = (
            m.abs() / m.abs().sum(3, keepdim=True).clamp_min(1e-12) for m in (self.rows, self.columns)
        )
        return MixedResample(rows, columns, self.norms, taps=self.taps)

    def bands(self, like: Tensor, *, transposed: bool) -> tuple[Band, Band]:
        """Return both matrices of all images without their zeros, or their transposes, on their device.

        Args:
            like: a tensor of the wanted type.
            transposed: whether to return the transposes.
        """
        if transposed not in self._bands:
            both = [each[:, 0].mT if transposed else each[:, 0] for each in (self.rows, self.columns)]
            whole = int(both[0].shape[2]), int(both[1].shape[2])
            taps = whole if self.taps is None else self.taps[transposed]
            y, x = (Band.of(each.to(like.dtype), most) for each, most in zip(both, taps, strict=True))
            self._bands[transposed] = (y, x)
        return self._bands[transposed]

    def forward(self, u: Tensor) -> Tensor:
        """Return A_y u A_x' with the matrices of each image."""
        return self.rows.to(u.dtype) @ u @ self.columns.mT.to(u.dtype)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return A_y' p A_x with the matrices of each image."""
        return self.rows.mT.to(p.dtype) @ (p @ self.columns.to(p.dtype))

    @property
    def norm_bound(self) -> float:
        """Return the largest bound of the images."""
        if self._bound is None:
            self._bound = float(self.norms.max())
        return self._bound

    def magnitude(self) -> LinearOperator:
        """Return the same with absolute weights, for which the bounds hold too: they come from their sums."""
        return MixedResample(self.rows.abs(), self.columns.abs(), self.norms)


def taps_of(parts: Sequence[Resample]) -> Taps:
    """Return the places that are enough for the weights of every one of some operators.

    Args:
        parts: the operators.
    """
    straight, transposed = (
        [part.stretches(torch.float32, transposed=turned) for part in parts] for turned in (False, True)
    )
    return _most(straight), _most(transposed)


def _most(bands: Sequence[tuple[Stretches, Stretches]]) -> tuple[int, int]:
    rows, columns = (max(each[axis][1].shape[1] for each in bands) for axis in (0, 1))
    return rows, columns


def _taller(matrix: Tensor, height: int) -> Tensor:
    """Return the matrix with rows of zeros below."""
    return torch.nn.functional.pad(matrix, (0, 0, 0, height - matrix.shape[0]))
