"""False samples drawn into samples for training: simply wrong depths, single or in clumps."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.sensors.draws import uniform

MOST = 0.1  # of the samples of an image, or thereabouts: each is drawn
CLUMP = 5  # samples a side of the largest clump
BEYOND = 3.0  # times as near as the nearest sample, or as far as the farthest


def with_false_samples(depth: Tensor, valid: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Return the depth with false samples in a `share` of the images, up to about `MOST` of each.

    Half of these images have them one by one and half in clumps, each clump of one depth; in half of them all
    are of the same depth, as where a camera reports the end of its range.

    Args:
        depth: (B, 1, h, w), of any kind.
        valid: (B, 1, h, w), of which none is made or lost.
        share: of the images.
        generator: decides everything.
    """
    per_image = depth.new_empty((5, len(depth), 1, 1, 1))
    has, rate, clumped, alike, level = uniform(per_image, generator)
    level = torch.where(alike < 0.5, level, uniform(depth, generator))
    first = uniform(depth, generator)
    seeds = torch.where(first < MOST * rate.square(), level, -1.0)
    few = torch.where(first < MOST * rate.square() * 2.0 / CLUMP**2, level, -1.0)
    grown = max_pool2d(few, CLUMP, stride=1, padding=CLUMP // 2)
    grown = torch.where(uniform(depth, generator) < 0.5, grown, -1.0)
    level = torch.where(clumped < 0.5, grown, seeds)
    hit = valid & (level >= 0) & (has < share)
    near, far = _ends(depth, valid)
    return torch.where(hit, near * (far / near) ** level.clamp_min(0.0), depth)


def _ends(depth: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return the range of false depths in each image, (B, 1, 1, 1): `BEYOND` that of its samples."""
    lowest = torch.where(valid, depth, torch.inf).amin((2, 3), keepdim=True)
    highest = torch.where(valid, depth, 0.0).amax((2, 3), keepdim=True)
    lowest = torch.where(torch.isfinite(lowest), lowest, 1.0).clamp_min(1e-3)
    return lowest / BEYOND, torch.maximum(highest, lowest) * BEYOND
