"""How far a result departs from the samples it was made of."""

from dataclasses import dataclass

from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.measurement.neighbours import standing_out
from primaldepth.operators.sampling import resample


@dataclass(frozen=True, slots=True)
class Departure:
    """The result, reduced to the samples' grid, less the trusted samples.

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


def sensor_errors(depth: Tensor, frame: Frame) -> Tensor:
    """Return the residual A d - f of a result d at its trusted samples f, in the depth's unit, in float64.

    A is the sensor without noise: antialiased bicubic reduction to the samples' grid, or nothing where
    that is the guide's.

    Args:
        depth: (B, 1, H, W) result.
        frame: the samples it was made of.
    """
    trusted = frame.trusted
    again = depth if frame.low_size == frame.high_size else resample(depth, frame.low_size, "bicubic")
    return again[trusted].double() - frame.depth[trusted].double()


def departure(depth: Tensor, frame: Frame) -> Departure:
    """Return how far a result departs from its trusted samples.

    Args:
        depth: (B, 1, H, W) result, on any device.
        frame: the samples it was made of.
    """
    errors = sensor_errors(depth.to(frame.depth), frame)
    sigma = None if frame.sigma is None else frame.sigma[frame.trusted].double()
    if sigma is None or not bool((sigma > 0).all()):
        return Departure(_rms(errors))
    sigmas, out = errors / sigma, standing_out(frame.depth, frame.valid)[frame.trusted]
    return Departure(_rms(errors), _rms(sigmas), float(sigmas.abs().median()), _rms(sigmas * out))


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())
