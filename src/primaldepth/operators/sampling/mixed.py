"""Reductions of grids that differ from image to image of a batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.sampling.grids import Resample


class MixedResample(LinearOperator):
    """u_b -> A_b u_b for every image b: (B, 1, H, W) -> (B, 1, h, w), h and w the largest of all A_b.

    Samples beyond those of A_b have no weights and are 0.

    Args:
        rows: (B, 1, h, H) weights along columns of pixels.
        columns: (B, 1, w, W) weights along rows of pixels.
        norms: (B, 1, 1, 1) bounds of ||A_b||.
    """

    def __init__(self, rows: Tensor, columns: Tensor, norms: Tensor, bound: float | None = None) -> None:
        self.rows, self.columns, self.norms, self._bound = rows, columns, norms, bound
        self.in_shape = (1, rows.shape[3], columns.shape[3])
        self.out_shape = (1, rows.shape[2], columns.shape[2])

    @classmethod
    def interleaved(cls, parts: Sequence[Resample], count: int, like: Tensor) -> "MixedResample":
        """Return the operator of a batch in which `parts` operators take turns, `count` times each."""
        h, w = (max(part.out_shape[axis] for part in parts) for axis in (1, 2))
        rows = torch.stack([_taller(part.rows, h) for part in parts]).to(like)
        columns = torch.stack([_taller(part.columns, w) for part in parts]).to(like)
        norms = torch.tensor([part.norm_bound for part in parts]).to(like).view(-1, 1, 1, 1)
        rows, columns = (each[:, None].repeat(count, 1, 1, 1) for each in (rows, columns))
        return cls(rows, columns, norms.repeat(count, 1, 1, 1))

    @classmethod
    def given(cls, rows: Tensor, columns: Tensor) -> "MixedResample":
        """Return the operator of one image from its matrices, (h, H) and (w, W), without asking for sizes."""
        squares = [m.abs().sum(1).amax(0) * m.abs().sum(0).amax(0) for m in (rows, columns)]
        return cls(rows[None, None], columns[None, None], (squares[0] * squares[1]).sqrt().view(1, 1, 1, 1))

    def part(self, share: slice) -> "MixedResample":
        """Return the operator of some images of the batch."""
        return MixedResample(self.rows[share], self.columns[share], self.norms[share])

    def unit(self) -> "MixedResample":
        """Return A_b / ||A_b||, whose bound is 1, so that one step serves all images."""
        root = self.norms.sqrt()
        return MixedResample(self.rows / root, self.columns / root, torch.ones_like(self.norms), 1.0)

    def averaging(self) -> "MixedResample":
        """Return the operator of means with the absolute weights; 0 where a sample has no weights."""
        rows, columns = (
            m.abs() / m.abs().sum(3, keepdim=True).clamp_min(1e-12) for m in (self.rows, self.columns)
        )
        return MixedResample(rows, columns, self.norms)

    def forward(self, u: Tensor) -> Tensor:
        """A_y u A_x' with the matrices of each image."""
        return self.rows.to(u.dtype) @ u @ self.columns.mT.to(u.dtype)

    def adjoint(self, p: Tensor) -> Tensor:
        """A_y' p A_x with the matrices of each image."""
        return self.rows.mT.to(p.dtype) @ (p @ self.columns.to(p.dtype))

    @property
    def norm_bound(self) -> float:
        """The largest of the images."""
        if self._bound is None:
            self._bound = float(self.norms.max())
        return self._bound

    def magnitude(self) -> LinearOperator:
        """Return the same with absolute weights, for which the bounds hold too: they come from their sums."""
        return MixedResample(self.rows.abs(), self.columns.abs(), self.norms)


def _taller(matrix: Tensor, height: int) -> Tensor:
    """Return the matrix with rows of zeros below."""
    return torch.nn.functional.pad(matrix, (0, 0, 0, height - matrix.shape[0]))
