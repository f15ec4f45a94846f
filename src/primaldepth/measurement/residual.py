"""The residual: how far a result departs from the samples it was made of, r = A u - d."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Sampling
from primaldepth.measurement.neighbours import standing_out
from primaldepth.operators.sampling import Kernel, resample


@dataclass(frozen=True, slots=True)
class Departure:
    """How large the residual is at the trusted samples.

    Args:
        rms: in the unit of the depth.
        sigmas: the same in standard deviations of the noise; None where it is 0.
        median: of the absolute value, in standard deviations.
        outliers: as `sigmas`, but only samples that stand out from all around them count as off.
    """

    rms: float | None = None
    sigmas: float | None = None
    median: float | None = None
    outliers: float | None = None


NO_DEPARTURE = Departure()  # nothing is known of it


def departure(u: Tensor, frame: Frame) -> Departure:
    """Return how far a result departs from its trusted samples.

    Args:
        u: (B, 1, H, W) result, on any device.
        frame: the samples it was made of.
    """
    trusted = frame.trusted
    errors = least_residual(u.to(frame.depth), frame)[trusted]
    sigma = None if frame.sigma is None else frame.sigma[trusted].double()
    if sigma is None or not bool((sigma > 0).all()):
        return Departure(_rms(errors))
    sigmas, out = errors / sigma, standing_out(frame.depth, frame.valid)[trusted]
    return Departure(_rms(errors), _rms(sigmas), float(sigmas.abs().median()), _rms(sigmas * out))


def least_residual(u: Tensor, frame: Frame) -> Tensor:
    """Return r, (B, 1, h, w) in float64, by the frame's sampling; if unknown, by what fits a sample better.

    Args:
        u: (B, 1, H, W) result.
        frame: the samples it was made of; r means nothing in their holes.
    """
    ways: tuple[Sampling, ...] = ("point", "average") if frame.sampling is None else (frame.sampling,)
    least, *others = (residual(u, frame, way) for way in ways)
    for other in others:
        least = torch.where(least.abs() <= other.abs(), least, other)
    return least


def residual(u: Tensor, frame: Frame, sampling: Sampling) -> Tensor:
    """Return r = A u - d, (B, 1, h, w) in float64; it means nothing in holes.

    Args:
        u: (B, 1, H, W) result.
        frame: the samples d it was made of.
        sampling: what A is: "average" or "point", see `sampling_kernel`.
    """
    A = sampling_kernel(frame.high_size, frame.low_size, sampling)
    return resample(u, frame.low_size, A).double() - frame.clean_depth().double()


def sampling_kernel(high: tuple[int, int], low: tuple[int, int], sampling: Sampling) -> Kernel:
    """Return the kernel by which samples come from an image.

    Args:
        high: (H, W) of the image.
        low: (h, w) of the samples.
        sampling: "average" is the antialiased bicubic reduction, "point" the bilinear value at the centre.
    """
    return "bicubic" if sampling == "average" and low != high else "point"


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())
