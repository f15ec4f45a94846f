"""Samples that no surface holds: alone or in pairs, and far off all around them."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

ALIKE = 0.05  # of the depth: neighbours as near as this may lie on one surface
SIGMAS = 8.0  # beyond every neighbour: noise does not reach so far
MARGIN = 1.5  # times as far from the neighbours as they are from each other: slopes do not reach so far
LEAST = 5  # neighbours that stand against a sample: fewer prove nothing
TOGETHER = 1  # neighbours alike that a spike may have
SMALLEST = 32  # samples a side: in smaller maps one of them may be all that was seen of a thing


def spikes(depth: Tensor, valid: Tensor, sigma: Callable[[Tensor], Tensor]) -> Tensor:
    """(B, 1, h, w) True where a sample, or a pair of them, stands out from all its neighbours.

    `LEAST` neighbours or more lie over `ALIKE` of its depth away, and the nearest of them over `SIGMAS` times
    its noise and `MARGIN` times their range. What is three samples large stays, and all of a small map.

    Args:
        sigma: gives the noise, (B, 1, h, w), from a mask of samples that are no spikes; asked for only where
            something stands out.
    """
    if min(depth.shape[2:]) < SMALLEST:
        return torch.zeros_like(valid)
    gap = _standing_out(torch.where(valid, depth, torch.nan))
    out = gap > 0
    return out & (gap > SIGMAS * sigma(valid & ~out)) if bool(out.any()) else out


def _standing_out(depth: Tensor) -> Tensor:
    """How far samples are from the nearest of their neighbours, where they may be spikes; else 0."""
    reach = ALIKE * depth.abs()
    gap = torch.full_like(depth, torch.inf)
    lowest, highest = gap.clone(), -gap
    near, far = torch.zeros_like(depth), torch.zeros_like(depth)
    for neighbour in _neighbours(depth):
        off = (neighbour - depth).abs()
        near += off <= reach  # a hole, NaN, is neither
        apart = off > reach
        far += apart
        gap = torch.where(apart, gap.minimum(off), gap)
        lowest = torch.where(apart, lowest.minimum(neighbour), lowest)
        highest = torch.where(apart, highest.maximum(neighbour), highest)
    alone = (near <= TOGETHER) & (far >= LEAST) & (gap > MARGIN * (highest - lowest))
    mates = torch.zeros_like(depth)
    for neighbour in _neighbours(torch.where(alone, depth, torch.nan)):
        mates += (neighbour - depth).abs() <= reach
    return torch.where(alone & (mates == near), gap, 0.0)


def _neighbours(image: Tensor) -> Iterator[Tensor]:
    """The eight images shifted by one sample; NaN comes in at the border."""
    rows, columns = image.shape[2:]
    padded = pad(image, (1, 1, 1, 1), value=torch.nan)
    for top in range(3):
        for left in range(3):
            if (top, left) != (1, 1):
                yield padded[:, :, top : top + rows, left : left + columns]
