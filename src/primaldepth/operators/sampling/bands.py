"""Banded matrices as the GPU's kernels read them."""

from typing import NamedTuple

import torch
from torch import Tensor


class Band(NamedTuple):
    """The weights of a matrix (m, n), row by row, without the zeros around them.

    Args:
        first: (m,), or (B, m) with a matrix for every image: column of the first weight that is kept.
        kept: like `first`: how many are kept; 0 for a row of zeros.
        weights: (taps, m) or (B, taps, m): the weights from `first` on. Neighbours in memory belong to
            neighbouring rows, which a program reads together.
    """

    first: Tensor
    kept: Tensor
    weights: Tensor

    @property
    def taps(self) -> int:
        """Places that a row has for its weights."""
        return int(self.weights.shape[-2])

    @property
    def rows(self) -> int:
        """Rows of the matrix of one image."""
        return int(self.weights.shape[-1])

    @property
    def per_image(self) -> int:
        """Rows from the matrix of one image to that of the next; 0 where all images share one."""
        return self.rows if self.weights.ndim == 3 else 0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Taps, rows and rows per image, in the order in which the kernels take them."""
        return self.taps, self.rows, self.per_image

    @classmethod
    def of(cls, matrices: Tensor, taps: int) -> "Band":
        """Find the bands of matrices on their device, without asking for any of their numbers.

        Args:
            matrices: (B, m, n), at most `taps` columns from the first to the last weight of every row.
            taps: places to keep, at most n.

        Returns:
            The bands, with `taps` places in every row.
        """
        n = matrices.shape[2]
        used = (matrices != 0).to(torch.int32)
        last = n - 1 - used.flip(2).argmax(2)
        first = used.argmax(2).clamp_max(n - taps)
        kept = torch.where(used.amax(2) > 0, last - first + 1, 0)
        index = first[..., None] + torch.arange(taps, device=matrices.device)
        weights = matrices.gather(2, index).mT.contiguous()
        return cls(first.to(torch.int32), kept.to(torch.int32), weights)
