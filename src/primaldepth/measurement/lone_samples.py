"""Samples that stand alone on a fine grid, as cells of a grid that is as coarse as they are."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame

AROUND = 15  # pixels on a side that count as around a sample
FEWEST = 4  # cells a side: fewer are no map, but a few samples among holes
SPARSE = 0.2  # share of them that is valid, below which samples stand alone


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells that share the image out evenly.

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
        """Return cells of about `side` pixels each way over (B, 1, h, w); at least one."""
        size = int(image.shape[2]), int(image.shape[3])
        grid = max(1, size[0] // side), max(1, size[1] // side)
        rows, columns = (
            torch.arange(n, device=image.device) * m // n for n, m in zip(size, grid, strict=True)
        )
        return cls(size, grid, (rows[:, None] * grid[1] + columns).flatten())

    def sums(self, values: Tensor) -> Tensor:
        """(B, 1, h, w) -> (B, 1, *grid): the sum over each cell."""
        total = values.new_zeros((values.shape[0], self.grid[0] * self.grid[1]))
        return total.index_add(1, self.index, values.flatten(1)).view(-1, 1, *self.grid)

    def means(self, values: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """(mean over the valid samples of each cell, whether it has any); holes may hold anything."""
        count = self.sums(valid.to(values.dtype))
        return self.sums(torch.where(valid, values, 0.0)) / count.clamp_min(1.0), count > 0

    def at_pixels(self, values: Tensor) -> Tensor:
        """(B, 1, *grid) -> (B, 1, h, w): to every pixel what its cell has."""
        return values.flatten(1)[:, self.index].view(-1, 1, *self.size)


def lone_samples(valid: Tensor) -> Cells | None:
    """The cells of a mask (B, 1, h, w) whose samples stand alone; None where they do not.

    A map that is dense but for large holes has none: only what lies around samples counts. One size of cells
    is found for all images: where they may differ, ask for `cells_of` the frame.
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
    """Return the cells of each image of a frame, None for images whose samples do not stand alone.

    They are found once and kept with the frame.
    """
    if "cells" not in frame.found:
        frame.found["cells"] = tuple(lone_samples(valid) for valid in frame.valid.chunk(len(frame.valid)))
    cells: tuple[Cells | None, ...] = frame.found["cells"]
    return cells


def _side(density: float) -> int | None:
    """Of a cell with about one sample; None where samples of this density do not stand alone."""
    cell = round(density**-0.5) if density > 0 else 1
    return cell if cell >= 1 / SPARSE**0.5 else None


def _density(valid: Tensor) -> float:
    """Share of valid samples in what lies around them; there is at least one."""
    weight = valid.float()
    return float(weight.sum() / max_pool2d(weight, AROUND, stride=1, padding=AROUND // 2).sum())
