"""Samples of a depth map with holes: one pixel of each block, or the mean of what is measured in it."""

from torch import Tensor
from torch.nn.functional import avg_pool2d

CROP = 8  # sides are cut to multiples of it, so that all scales have the same reference


def cropped(truth: Tensor, known: Tensor, guide: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the maps, (1, C, H, W), cut to multiples of `CROP` from the top left corner."""
    height, width = (int(side) // CROP * CROP for side in truth.shape[2:])
    truth, known, guide = (each[..., :height, :width].contiguous() for each in (truth, known, guide))
    return truth, known, guide


def at_samples(image: Tensor, scale: int) -> Tensor:
    """Return the values of (1, 1, h s, w s) at the samples' own pixels `[s // 2 :: s]`, (1, 1, h, w)."""
    return image[:, :, scale // 2 :: scale, scale // 2 :: scale]


def point_samples(depth: Tensor, measured: Tensor, scale: int) -> tuple[Tensor, Tensor]:
    """Return depth and validity of samples that stand for one pixel each, 0 where not valid.

    Args:
        depth: (1, 1, H, W).
        measured: (1, 1, H, W) where the sensor measures.
        scale: pixels per sample, each way.
    """
    valid = at_samples(measured, scale)
    return at_samples(depth, scale).where(valid, depth.new_zeros(())), valid


def mean_samples(depth: Tensor, measured: Tensor, scale: int) -> tuple[Tensor, Tensor]:
    """Return means over the measured pixels of each block, valid where half of the block is measured.

    Args:
        depth: (1, 1, H, W).
        measured: (1, 1, H, W) where the sensor measures.
        scale: side of a block in pixels.
    """
    inside = measured.to(depth.dtype)
    share = avg_pool2d(inside, scale)
    mean = avg_pool2d(depth * inside, scale) / share.clamp_min(1e-6)
    valid = share >= 0.5
    return mean.where(valid, mean.new_zeros(())), valid
