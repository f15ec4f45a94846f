"""What every method needs to treat holes alike."""

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.lone_samples import Cells, cells_of
from primaldepth.operators.sampling import nearest_index, resample


def fill_holes(values: Tensor, valid: Tensor) -> Tensor:
    """Fill holes smoothly: means over growing cells reach into them, valid samples stay as they are.

    (B, C, h, w) and (B, 1, h, w) -> (B, C, h, w). A constant stays constant.

    Args:
        values: (B, C, h, w).
        valid: (B, 1, h, w).

    Returns:
        (B, C, h, w); a constant stays constant.
    """
    if bool(valid.all()):
        return values
    height, width = int(values.shape[2]), int(values.shape[3])
    if height == width == 1:
        return torch.where(valid, values, 0.0)
    half = ((height + 1) // 2, (width + 1) // 2)
    weight = resample(valid.to(values.dtype), half, "area")
    total = resample(torch.where(valid, values, 0.0), half, "area")
    coarse_valid = weight > 1e-6
    coarse = fill_holes(torch.where(coarse_valid, total / weight.clamp_min(1e-6), 0.0), coarse_valid)
    return torch.where(valid, values, resample(coarse, (height, width), "bilinear"))


def grow_into_holes(values: Tensor, valid: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Continue what was measured into holes, ring by ring; deeper than `steps` samples the fill is smooth.

    A sample of a new ring is the mean of its eight neighbours that are measured or of an earlier ring. Unlike
    the smooth fill this does not mix a near surface with a far one on the other side of the hole.

    Args:
        values: (B, C, h, w); holes may hold anything finite.
        valid: (B, 1, h, w), at least one sample in each image.
        steps: number of rings.

    Returns:
        The filled values, and (B, 1, h, w) the distance to the nearest sample in rings: 0 where measured, at
        most `steps` + 1.
    """
    known, filled = valid.to(values.dtype), torch.where(valid, values, 0.0)
    around = values.new_ones((1, 1, 3, 3))
    distance = 1.0 - known
    for _ in range(steps):
        count = conv2d(known, around, padding=1)
        total = conv2d(filled, around.expand(values.shape[1], 1, 3, 3), padding=1, groups=values.shape[1])
        ring = (known == 0) & (count > 0)
        filled = torch.where(ring, total / count.clamp_min(1.0), filled)
        known = torch.where(ring, 1.0, known)
        distance = distance + (1.0 - known)
    return fill_holes(filled, known > 0), distance


def everywhere(
    depth: Tensor, frame: Frame, sigma: Tensor | None = None, info: Mapping[str, Any] | None = None
) -> Prediction:
    """Return the prediction of a method that estimates a depth at every pixel.

    Args:
        depth: (B, 1, H, W).
        frame: what it was made of.
        sigma: (B, 1, H, W) how far it may be off, or None.
        info: what the method reports of its run.
    """
    valid = torch.ones_like(depth, dtype=torch.bool)
    return Prediction(depth, valid, measured_mask(frame), sigma, info or {})


def measured_mask(frame: Frame) -> Tensor:
    """Return True where the sample that covers the pixel is valid and trusted.

    Lone samples cover all that lies between them, but not gaps of three times their distance.

    Args:
        frame: whose samples cover the pixels.

    Returns:
        (B, 1, H, W).
    """
    images = zip(frame.trusted.chunk(len(frame.valid)), cells_of(frame), strict=True)
    return torch.cat([_enlarged(_covered(*each), frame.high_size) for each in images])


def _covered(trusted: Tensor, cells: Cells | None) -> Tensor:
    """Return where trusted samples cover the map, (1, 1, h, w) on their grid or on that of cells."""
    return trusted if cells is None else _closed(cells.sums(trusted.float()) > 0)


def _enlarged(mask: Tensor, size: tuple[int, int]) -> Tensor:
    """Return a map in which every pixel has the value of the cell around it."""
    rows, columns = (
        _nearest(int(low), high, mask.device) for low, high in zip(mask.shape[2:], size, strict=True)
    )
    return mask.index_select(2, rows).index_select(3, columns)


@functools.lru_cache(maxsize=16)
def _nearest(low: int, high: int, device: torch.device) -> Tensor:
    """Return `nearest_index` on the device, where it is copied once for every size."""
    return torch.from_numpy(nearest_index(low, high)).to(device)


def _closed(mask: Tensor) -> Tensor:
    """Return the mask without gaps that are too narrow for a square of 3x3."""
    grown = max_pool2d(mask.float(), 3, stride=1, padding=1)
    return max_pool2d(-grown, 3, stride=1, padding=1) < -0.5
