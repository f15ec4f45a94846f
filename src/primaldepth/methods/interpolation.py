"""Depth and noise between the samples of a frame, and the methods that only interpolate."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.noise_estimate import noise_of
from primaldepth.methods.holes import everywhere, fill_holes
from primaldepth.operators.sampling import Kernel, resample


@dataclass(frozen=True, slots=True)
class Interpolation:
    """Nearest, bilinear or bicubic interpolation; the guide only sets the size.

    Pixel centres lie at half-integers, the border is mirrored, and holes are filled before.
    """

    name: Kernel

    def __call__(self, frame: Frame) -> Prediction:
        """Interpolate to the guide's size."""
        filled = fill_holes(frame.clean_depth(), frame.valid)
        return everywhere(resample(filled, frame.high_size, self.name), frame)


def interpolate(frame: Frame) -> tuple[Tensor, Tensor]:
    """Return the bilinear mean of the samples by their trust, A(t d) / A t, and that trust, A t.

    Where no trusted sample is next to the pixel its trust is 0 and the depth a smooth fill.

    Args:
        frame: whose samples are interpolated.

    Returns:
        (B, 1, H, W) each.
    """
    t = frame.trust
    weight = resample(t, frame.high_size, "bilinear")
    total = resample(t * frame.clean_depth(), frame.high_size, "bilinear")
    filled = resample(fill_holes(frame.clean_depth(), t > 0), frame.high_size, "bilinear")
    known = weight > 1e-6
    return torch.where(known, total / weight.clamp_min(1e-6), filled), torch.where(known, weight, 0.0)


def noise_level(frame: Frame) -> Tensor:
    """Return the standard deviation of every sample, estimated from the frame if unknown, holes filled.

    Args:
        frame: whose noise is asked for.

    Returns:
        (B, 1, h, w).
    """
    return fill_holes(torch.where(frame.valid, noise_of(frame), 0.0), frame.valid)
