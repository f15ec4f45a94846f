"""How a sensor turns true depth into samples: named, versioned, on tensors."""

import torch
from torch import Tensor

from primaldepth.data.noise import MIDDLEBURY_NOISE
from primaldepth.operators.resampling import resample


def reduced_size(size: tuple[int, int], scale: int) -> tuple[int, int]:
    """(H / scale, W / scale) of a grid whose sides are multiples of the scale."""
    height, width = size
    if height % scale or width % scale:
        raise ValueError(f"{height}x{width} is not a multiple of {scale}")
    return height // scale, width // scale


def middlebury_noisy_v1(disparity: Tensor, scale: int, generator: torch.Generator) -> Tensor:
    """Antialiased bicubic reduction, Gaussian noise of standard deviation 651 / d, rounding to 8 bit.

    (B, 1, H, W) -> (B, 1, H / scale, W / scale); the degradation of the noisy Middlebury
    benchmark. The noise is drawn on the CPU, so the same seed gives the same samples on every device.
    """
    low = resample(disparity, reduced_size((disparity.shape[2], disparity.shape[3]), scale), "bicubic")
    normal = torch.randn(low.shape, generator=generator, dtype=low.dtype).to(low.device)
    noisy = low + normal * MIDDLEBURY_NOISE / low.clamp_min(1.0)
    return noisy.round().clamp(0.0, 255.0)


def fill_occlusions(disparity: Tensor, valid: Tensor) -> Tensor:
    """Fill unknown disparities from the farther of the two known neighbours in the row.

    What is unknown is mostly background hidden from the second camera. Rows without any known
    pixel repeat the row above (the first known row upwards for those at the top).
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
    """Last valid value at or before each place along the last axis; inf where there is none."""
    index = torch.arange(values.shape[-1], device=values.device).expand_as(values)
    last = torch.where(valid, index, -1).cummax(dim=-1).values
    carried = values.gather(-1, last.clamp_min(0))
    return torch.where(last >= 0, carried, torch.inf)
