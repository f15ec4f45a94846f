"""Find spikes: single samples or pairs that lie far from all samples around them."""

from collections.abc import Callable

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
    """Return True, (B, 1, h, w), where a sample or a pair of samples lies far from all its neighbours.

    `LEAST` neighbours or more lie over `ALIKE` of its depth away, and the nearest of them over `SIGMAS` times
    its noise and `MARGIN` times their range. What is three samples large stays, and all of a small map.

    Args:
        depth: (B, 1, h, w).
        valid: (B, 1, h, w).
        sigma: gives the noise, (B, 1, h, w), from a mask of samples that are no spikes; asked for only where
            something stands out.
    """
    if min(depth.shape[2:]) < SMALLEST:
        return torch.zeros_like(valid)
    gap = _standing_out(torch.where(valid, depth, torch.nan))
    out = gap > 0
    return out & (gap > SIGMAS * sigma(valid & ~out)) if bool(out.any()) else out


def _standing_out(depth: Tensor) -> Tensor:
    """Return how far each candidate lies from its nearest neighbour in depth, (B, 1, h, w); 0 elsewhere."""
    gap = torch.zeros_like(depth)
    place = _candidates(depth).nonzero(as_tuple=True)
    if not len(place[0]):
        return gap
    here = depth[place][:, None]
    around = _neighbours(depth, place)
    off, reach = (around - here).abs(), ALIKE * here.abs()
    near, apart = off <= reach, off > reach  # a hole is neither
    nearest = torch.where(apart, off, torch.inf).amin(dim=1)
    lowest, highest = (torch.where(apart, around, fill) for fill in (torch.inf, -torch.inf))
    alone = near.sum(dim=1) <= TOGETHER
    alone &= apart.sum(dim=1) >= LEAST
    alone &= nearest > MARGIN * (highest.amax(dim=1) - lowest.amin(dim=1))
    of_spikes = torch.full_like(depth, torch.nan)
    of_spikes[place] = torch.where(alone, depth[place], torch.nan)
    mates = (_neighbours(of_spikes, place) - here).abs() <= reach
    gap[place] = torch.where(alone & (mates == near).all(dim=1), nearest, 0.0)
    return gap


def _candidates(depth: Tensor) -> Tensor:
    """Return True for samples unlike a neighbour in their row and unlike one in their column."""
    found, reach = ~depth.isnan(), ALIKE * depth.abs()
    for dim in (2, 3):
        inner = depth.shape[dim] - 2  # what has two neighbours
        off, near = depth.diff(dim=dim).abs(), reach.narrow(dim, 1, inner)
        like_both = (off.narrow(dim, 0, inner) <= near) & (off.narrow(dim, 1, inner) <= near)
        found.narrow(dim, 1, inner).logical_and_(~like_both)
    return found


def _neighbours(image: Tensor, place: tuple[Tensor, ...]) -> Tensor:
    """Return the eight values around each of N places of (B, 1, h, w), (N, 8); NaN beyond the border."""
    padded = pad(image, (1, 1, 1, 1), value=torch.nan)
    batch, channel, row, column = place
    shifts = [(down, right) for down in range(3) for right in range(3) if (down, right) != (1, 1)]
    return torch.stack([padded[batch, channel, row + down, column + right] for down, right in shifts], dim=1)
