"""How far a result departs from the samples it was made of."""

from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.operators.sampling import resample


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
