"""Fill holes that are deeper than those of a network's training, by a second run on coarser samples."""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame
from primaldepth.measurement.lone_samples import Cells
from primaldepth.methods.sparse import averaged
from primaldepth.operators.sampling import resample

REACH = 4  # samples from the nearest one: so deep a network fills holes by itself, twice as deep not at all
COARSER = 4
# Of the sizes of guide and coarser samples. Above WHOLE_RATIO the guide is halved, which saves three quarters
# of the second run and changes no score of aligned-holes by 2 %; cut-outs of 1:1 maps would lose 7 %.
WHOLE_RATIO, LARGEST_RATIO = 4, 8


def deep_share(valid: Tensor) -> Tensor | None:
    """Return how much of a hole's fill is to come from coarser samples, 0 to 1; None: nothing.

    Args:
        valid: (B, 1, h, w).

    Returns:
        (B, 1, h, w), or None.
    """
    if bool(valid.all()):
        return None
    near, depth = valid.float(), torch.zeros_like(valid, dtype=torch.float32)
    for _ in range(2 * REACH):
        depth += 1.0 - near
        near = max_pool2d(near, 3, stride=1, padding=1)
    share = (depth / REACH - 1.0).clamp_min(0.0)
    return share if bool(share.any()) else None


def coarser(samples: Frame) -> Frame:
    """Return means over cells of 4x4 samples; the guide shrinks where it is too large for them.

    Args:
        samples: whose holes are deep.
    """
    found = averaged(samples, Cells.over(samples.valid, COARSER))
    ratio = found.high_size[1] / found.low_size[1]
    if ratio <= WHOLE_RATIO:
        return found
    factor = max(2, math.ceil(ratio / LARGEST_RATIO))
    rows, columns = (
        max(low, high // factor) for low, high in zip(found.low_size, found.high_size, strict=True)
    )
    return replace(found, guide=resample(found.guide, (rows, columns), "area"))


def blended(fine: Tensor, coarse: Tensor, share: Tensor) -> Tensor:
    """Return fine where the share is 0, coarse where it is 1.

    Args:
        fine: (B, C, H, W).
        coarse: (B, C, H', W').
        share: (B, 1, h, w).

    Returns:
        (B, C, H, W).
    """
    size = int(fine.shape[2]), int(fine.shape[3])
    return torch.lerp(
        fine, resample(coarse, size, "bilinear"), resample(share.to(fine.dtype), size, "bilinear")
    )
