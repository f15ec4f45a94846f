"""How much each sample counts, and what is known between the samples."""

import torch
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.methods.holes import fill_holes
from primaldepth.operators.sampling import resample
from primaldepth.sensors.noise import estimate_sigma


def trust(frame: Frame) -> Tensor:
    """(B, 1, h, w): confidence of valid samples, 0 for holes; equal trust in a frame without confidence."""
    if frame.confidence is None:
        return frame.valid.to(frame.depth.dtype)
    equal = torch.where(frame.confidence > 0, frame.confidence, 1.0)  # of a map that trusts nothing
    return torch.where(frame.trusted, equal, 0.0)


def interpolate(frame: Frame) -> tuple[Tensor, Tensor]:
    """Bilinear mean of the samples by their trust, A(t d) / A t, and that trust, A t: two (B, 1, H, W).

    Where no trusted sample is next to the pixel its trust is 0 and the depth a smooth fill.
    """
    t = trust(frame)
    weight = resample(t, frame.high_size, "bilinear")
    total = resample(t * frame.clean_depth(), frame.high_size, "bilinear")
    filled = resample(fill_holes(frame.clean_depth(), t > 0), frame.high_size, "bilinear")
    known = weight > 1e-6
    return torch.where(known, total / weight.clamp_min(1e-6), filled), torch.where(known, weight, 0.0)


def noise_level(frame: Frame) -> Tensor:
    """(B, 1, h, w): standard deviation of every sample, estimated from the frame if unknown, holes filled."""
    sigma = frame.sigma if frame.sigma is not None else estimate_sigma(frame.depth, frame.valid)
    return fill_holes(torch.where(frame.valid, sigma, 0.0), frame.valid)
