"""Samples that stand alone on a fine grid, gathered on one as coarse as they are: what networks expect."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame

AROUND = 15  # pixels on a side that count as around a sample
SPARSE = 0.2  # share of them that is valid, below which samples stand alone


def gathered(frame: Frame) -> Frame:
    """The frame itself; or, if its samples stand alone, their means over cells with about one sample each.

    A map that is dense but for large holes is left as it is: only what lies around samples counts.
    """
    h, w = frame.low_size
    cell = round(_density(frame.valid) ** -0.5)
    if cell < 1 / SPARSE**0.5 or min(h, w) < cell:
        return frame
    grid = (h // cell, w // cell)
    cells = _cells(frame.low_size, grid, frame.depth.device)
    weight = frame.valid.to(frame.depth.dtype)
    count = _sums(weight, cells, grid)
    some = count.clamp_min(1.0)
    sigma = None if frame.sigma is None else _sums(weight * _used(frame.sigma, frame).square(), cells, grid)
    trust = None if frame.confidence is None else _sums(weight * _used(frame.confidence, frame), cells, grid)
    return replace(
        frame,
        depth=_sums(frame.clean_depth(), cells, grid) / some,
        valid=count > 0,
        sigma=None if sigma is None else sigma.sqrt() / some,
        confidence=None if trust is None else trust / some,
    )


def _used(values: Tensor, frame: Frame) -> Tensor:
    """What lies at holes may be anything."""
    return torch.where(frame.valid, values, 0.0)


def _density(valid: Tensor) -> float:
    """Share of valid samples in what lies around them."""
    weight = valid.float()
    around = max_pool2d(weight, AROUND, stride=1, padding=AROUND // 2)
    return float(weight.sum() / around.sum())


def _cells(size: tuple[int, int], grid: tuple[int, int], device: torch.device) -> Tensor:
    """(h w,) flat index of the cell of every pixel; cells share the image out evenly."""
    rows, columns = (torch.arange(n, device=device) * m // n for n, m in zip(size, grid, strict=True))
    return (rows[:, None] * grid[1] + columns).flatten()


def _sums(values: Tensor, cells: Tensor, grid: tuple[int, int]) -> Tensor:
    total = values.new_zeros((values.shape[0], grid[0] * grid[1]))
    return total.index_add(1, cells, values.flatten(1)).view(-1, 1, *grid)
