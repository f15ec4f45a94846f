"""Whether measured surfaces stay where they were measured: samples that a result puts elsewhere."""

import torch
from torch import Tensor
from torch.nn.functional import pad

PER = 10_000  # rates are counts among so many samples


def neighbour_counts(values: Tensor, valid: Tensor, same: float) -> tuple[Tensor, Tensor]:
    """Count, for each sample, those of its eight neighbours that are equal to it and those that are holes.

    Neighbours are equal if they are valid and differ by at most `same` of the sample's value. Places outside
    of the map are neither.

    Args:
        values: (1, 1, h, w).
        valid: (1, 1, h, w); the counts of samples that are not valid mean nothing.
        same: relative difference.

    Returns:
        Two maps of integers, (1, 1, h, w).
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


def surface_samples(values: Tensor, valid: Tensor, same: float, least: int = 3) -> Tensor:
    """Return True for samples of a surface: `least` neighbours or more are equal, all others are holes."""
    equal, holes = neighbour_counts(values, valid, same)
    return valid & (equal >= least) & (equal + holes == 8)


def equal_samples(values: Tensor, valid: Tensor, same: float) -> Tensor:
    """Return True for samples whose eight neighbours are all measured and equal to it."""
    return surface_samples(values, valid, same, least=8)


def misplaced(result: Tensor, values: Tensor, by: float, *, disparities: bool) -> tuple[Tensor, Tensor]:
    """Return where the result is more than `by` farther than the values, and where it is as much nearer.

    Depth d' is farther than d if d' > (1 + by) d, and nearer if d' < (1 - by) d. Disparities are taken for
    inverse depths.
    """
    if disparities:
        return result * (1.0 + by) < values, result * (1.0 - by) > values
    return result > (1.0 + by) * values, result < (1.0 - by) * values


def rate(found: Tensor, among: Tensor) -> float | None:
    """Return how many of 10,000 samples of `among` are in `found`; None if there is no such sample."""
    count = int(among.sum())
    return PER * int((found & among).sum()) / count if count else None
