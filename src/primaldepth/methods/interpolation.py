"""Nearest, bilinear and bicubic interpolation; the guide only sets the size."""

from dataclasses import dataclass

import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods.holes import fill_holes, measured_mask
from primaldepth.operators.sampling import Kernel, resample


@dataclass(frozen=True, slots=True)
class Interpolation:
    """Pixel centres at half-integers, border mirrored; holes are filled before."""

    name: str
    kernel: Kernel

    def __call__(self, frame: Frame) -> Prediction:
        """Interpolate to the guide's size."""
        filled = fill_holes(frame.clean_depth(), frame.valid)
        depth = resample(filled, frame.high_size, self.kernel)
        return Prediction(depth, torch.ones_like(depth, dtype=torch.bool), measured_mask(frame))
