"""Lone samples: valid samples on a fine grid with holes all around, averaged over cells of about one each."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame

AROUND = 15  # pixels on a side that count as around a sample
FEWEST = 4  # cells a side: fewer are no map, but a few samples among holes
SPARSE = 0.2  # share of them that is valid, below which samples are lone


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A division of the image into rectangular cells of nearly equal size.

    Args:
        size: (h, w) of the fine grid.
        grid: rows and columns of the cells.
        index: (h w,) the cell of every pixel.
    """

    size: tuple[int, int]
    grid: tuple[int, int]
    index: Tensor

    @classmethod
    def over(cls, image: Tensor, side: int) -> "Cells":
        """Divide images (B, 1, h, w) into cells of about `side` pixels each way; at least one cell.

        Args:
            image: for its size and device.
            side: of a cell in pixels.

        Returns:
            The division.
        """
        size = int(image.shape[2]), int(image.shape[3])
        grid = max(1, size[0] // side), max(1, size[1] // side)
        rows, columns = (
            torch.arange(n, device=image.device) * m // n for n, m in zip(size, grid, strict=True)
        )
        return cls(size, grid, (rows[:, None] * grid[1] + columns).flatten())

    def sums(self, values: Tensor) -> Tensor:
        """Return the sum over each cell: (B, 1, h, w) -> (B, 1, *grid).

        Args:
            values: (B, 1, h, w).
        """
        total = values.new_zeros((values.shape[0], self.grid[0] * self.grid[1]))
        return total.index_add(1, self.index, values.flatten(1)).view(-1, 1, *self.grid)

    def means(self, values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean of the valid samples of each cell, and whether it has any; holes are not read.

        Args:
            values: (B, 1, h, w).
            valid: (B, 1, h, w).
        """
        count = self.sums(valid.to(values.dtype))
        return self.sums(torch.where(valid, values, 0.0)) / count.clamp_min(1.0), count > 0

    def at_pixels(self, values: Tensor) -> Tensor:
        """Return to every pixel the value of its cell: (B, 1, *grid) -> (B, 1, h, w).

        Args:
            values: (B, 1, *grid).
        """
        return values.flatten(1)[:, self.index].view(-1, 1, *self.size)


def lone_samples(valid: Tensor) -> Cells | None:
    """Return cells that hold about one sample each if the samples of a mask are lone; else None.

    A map that is dense but for large holes has none: only what lies around samples counts. One size of cells
    is found for all images: where they may differ, ask for `cells_of` the frame.

    Args:
        valid: (B, 1, h, w).
    """
    height, width = (int(side) for side in valid.shape[2:])
    share = float(valid.float().mean())  # never larger than the share around samples
    if _side(share) is None:
        return None
    cell = _side(_density(valid))
    if cell is None or min(height, width) // cell < FEWEST:
        return None
    return Cells.over(valid, cell)


def cells_of(frame: Frame) -> tuple[Cells | None, ...]:
    """Return the cells of each image of a frame, None for images whose samples are not lone.

    They are found once and kept with the frame.

    Args:
        frame: whose samples are looked at.
    """
    if "cells" not in frame.found:
        frame.found["cells"] = tuple(lone_samples(valid) for valid in frame.valid.chunk(len(frame.valid)))
    cells: tuple[Cells | None, ...] = frame.found["cells"]
    return cells


def _side(density: float) -> int | None:
    """Return the side of a cell that holds about one sample; None if samples of this density are not lone."""
    cell = round(density**-0.5) if density > 0 else 1
    return cell if cell >= 1 / SPARSE**0.5 else None


def _density(valid: Tensor) -> float:
    """Return the share of valid pixels among all pixels near a valid one; at least one is valid."""
    weight = valid.float()
    return float(weight.sum() / max_pool2d(weight, AROUND, stride=1, padding=AROUND // 2).sum())
