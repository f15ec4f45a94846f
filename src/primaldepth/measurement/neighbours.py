"""How many of a sample's neighbours confirm it."""

import torch
from torch import Tensor
from torch.nn.functional import pad


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
