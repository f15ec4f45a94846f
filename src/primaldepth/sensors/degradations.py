"""The noisy Middlebury benchmark's degradation, frozen: protocols depend on every bit of it."""

from functools import lru_cache

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.operators.sampling import Resample
from primaldepth.sensors.draws import normal
from primaldepth.sensors.noise import MIDDLEBURY_NOISE


def reduced_size(size: tuple[int, int], scale: int) -> tuple[int, int]:
    """Return (H / scale, W / scale) of a grid whose sides must be multiples of the scale.

    Args:
        size: (H, W).
        scale: pixels per sample, per side.

    Raises:
        InputError: a side is no multiple of the scale.
    """
    height, width = size
    if height % scale or width % scale:
        raise InputError("depth", f"{height}x{width} is not a multiple of {scale}", "crop it")
    return height // scale, width // scale


@lru_cache(maxsize=32)
def _reduction(size: tuple[int, int], scale: int) -> Resample:
    """Return the reduction operator; cached, so that its matrices are sent to the device once."""
    return Resample(size, reduced_size(size, scale), "bicubic")


def reduced(disparity: Tensor, scale: int) -> Tensor:
    """Reduce by antialiased bicubic interpolation.

    Args:
        disparity: (B, 1, H, W) without holes.
        scale: pixels per sample, per side.

    Returns:
        (B, 1, H / scale, W / scale).
    """
    return _reduction((int(disparity.shape[2]), int(disparity.shape[3])), scale).forward(disparity)


def middlebury_noisy_v1(
    disparity: Tensor,
    scale: int,
    generator: torch.Generator,
    *,
    noise: float = MIDDLEBURY_NOISE,
    gain: Tensor | None = None,
) -> Tensor:
    """Reduce by antialiased bicubic, add Gaussian noise of standard deviation 651 / d, round to 8 bit.

    (B, 1, H, W) -> (B, 1, H / scale, W / scale); the degradation of the noisy Middlebury
    benchmark. The noise is drawn on the generator's device: with one on the CPU, the same seed gives
    the same samples on every device.

    Args:
        disparity: (B, 1, H, W) without holes; H and W are multiples of `scale`.
        scale: pixels per sample, per side.
        generator: decides the noise.
        noise: standard deviation of the noise times d; the benchmark's is 651.
        gain: (B, 1, 1, 1) factor on the noise of each image.

    Returns:
        (B, 1, H / scale, W / scale) whole numbers in [0, 255].
    """
    low = reduced(disparity, scale)
    noisy = low + normal(low, generator, gain) * noise / low.clamp_min(1.0)
    return noisy.round().clamp(0.0, 255.0)


def fill_occlusions(disparity: Tensor, valid: Tensor) -> Tensor:
    """Fill unknown disparities from the farther of the two known neighbours in the row.

    What is unknown is mostly background hidden from the second camera. Rows without any known
    pixel repeat the row above (the first known row upwards for those at the top).

    Args:
        disparity: (B, 1, H, W).
        valid: (B, 1, H, W).

    Returns:
        (B, 1, H, W) without holes.
    """
    left = _carry(disparity, valid)
    right = _carry(disparity.flip(-1), valid.flip(-1)).flip(-1)
    row = torch.minimum(left, right)
    filled = torch.where(valid, disparity, torch.where(torch.isinf(row), torch.maximum(left, right), row))
    filled = torch.where(torch.isinf(row), row, filled)
    known = torch.isfinite(filled)
    down = _carry(filled.mT, known.mT).mT
    up = _carry(filled.mT.flip(-1), known.mT.flip(-1)).flip(-1).mT
    return torch.where(known, filled, torch.where(torch.isinf(down), up, down))


def _carry(values: Tensor, valid: Tensor) -> Tensor:
    """Return the last valid value at or before each place along the last axis; inf where there is none."""
    index = torch.arange(values.shape[-1], device=values.device).expand_as(values)
    last = torch.where(valid, index, -1).cummax(dim=-1).values
    carried = values.gather(-1, last.clamp_min(0))
    return torch.where(last >= 0, carried, torch.inf)
