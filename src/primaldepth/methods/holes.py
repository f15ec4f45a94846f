"""What every method needs to treat holes alike."""

import torch
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.operators.resampling import nearest_index, resample


def fill_holes(values: Tensor, valid: Tensor) -> Tensor:
    """Smooth fill: means over growing cells reach into the holes, valid samples stay as they are.

    (B, C, h, w) and (B, 1, h, w) -> (B, C, h, w). A constant stays constant.
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


def measured_mask(frame: Frame) -> Tensor:
    """(B, 1, H, W): True where the sample whose cell covers the pixel is valid."""
    rows, columns = (
        torch.from_numpy(nearest_index(low, high)).to(frame.valid.device)
        for low, high in zip(frame.low_size, frame.high_size, strict=True)
    )
    return frame.valid.index_select(2, rows).index_select(3, columns)
