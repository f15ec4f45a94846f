"""How many of a sample's neighbours confirm it, and which samples stand out from all the others."""

import torch
from torch import Tensor
from torch.nn.functional import pad, unfold

from primaldepth.measurement.spikes import ALIKE, LEAST, MARGIN

CONFIRMED = 3  # neighbours on the same surface


def neighbour_counts(values: Tensor, valid: Tensor, same: float) -> tuple[Tensor, Tensor]:
    """Count, for each sample, those of its eight neighbours that are equal to it and those that are holes.

    Neighbours are equal if they are valid and differ by at most `same` of the sample's value. Places outside
    of the map are neither.

    Args:
        values: (B, 1, h, w).
        valid: (B, 1, h, w); the counts of samples that are not valid mean nothing.
        same: relative difference.

    Returns:
        Two maps of integers, (B, 1, h, w).
    """
    height, width = values.shape[2:]
    around, inside = pad(values, (1, 1, 1, 1)), pad(valid, (1, 1, 1, 1))
    holes_around = pad(~valid, (1, 1, 1, 1))
    equal, holes = torch.zeros_like(values, dtype=torch.int), torch.zeros_like(values, dtype=torch.int)
    for dy, dx in ((y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)):
        window = (..., slice(dy, dy + height), slice(dx, dx + width))
        equal += inside[window] & ((around[window] - values).abs() <= same * values.abs())
        holes += holes_around[window]
    return equal, holes


def standing_out(values: Tensor, valid: Tensor) -> Tensor:
    """Mark samples, (B, 1, h, w), that may be false: few neighbours are alike, the others far on one side.

    Fewer than `CONFIRMED` neighbours are within `ALIKE`, `LEAST` or more are not, and the sample is farther
    from all of these than `MARGIN` times their range. At the edge of a surface neighbours on the same surface
    confirm a sample, and among many things of different depth the neighbours differ from each other as well.

    Args:
        values: (B, 1, h, w).
        valid: (B, 1, h, w).

    Returns:
        (B, 1, h, w).
    """
    around = unfold(pad(torch.where(valid, values, torch.nan), (1, 1, 1, 1), value=torch.nan), 3)
    around = around.view(len(values), 9, *values.shape[2:])
    off, near = (around - values).abs(), ALIKE * values.abs()
    alike, other = off <= near, off > near  # a hole is neither
    lowest = torch.where(other, around, torch.inf).amin(dim=1, keepdim=True)
    highest = torch.where(other, around, -torch.inf).amax(dim=1, keepdim=True)
    alone = alike.sum(dim=1, keepdim=True) < 1 + CONFIRMED  # of which the sample itself is one
    enough = other.sum(dim=1, keepdim=True) >= LEAST
    gap = torch.maximum(lowest - values, values - highest)
    return valid & alone & enough & (gap > MARGIN * (highest - lowest))
