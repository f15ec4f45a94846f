"""How far a method's result may be off: the sensor's noise, what was filled in, and steps of the depth.

All are variances on the guide's grid, (1, 1, H, W).
"""

from torch import Tensor, maximum, where

from primaldepth.core.frame import Frame
from primaldepth.methods.scene_change import steps_of
from primaldepth.operators.sampling import resample
from primaldepth.sensors.noise import estimate_sigma

_LEAST_NOISE = 5e-4  # of the depth: as `estimate_sigma` has it
_GUESS = 0.3  # of the depth: standard deviation of what a method fills in
_STEP = 0.5  # of a step of the depth: standard deviation of a result there


def sensor_variance(frame: Frame, depth: Tensor) -> Tensor:
    """Return the square of the sensor's noise.

    Args:
        frame: with the samples.
        depth: (1, 1, H, W) that a method made of them.
    """
    sigma = frame.sigma if frame.sigma is not None else estimate_sigma(frame.depth, frame.valid)
    sigma = where(frame.valid, sigma, sigma[frame.valid].median())
    sigma = resample(sigma, frame.high_size, "bilinear")
    return maximum(sigma, _LEAST_NOISE * depth.abs()).square()


def guess_variance(frame: Frame, depth: Tensor) -> Tensor:
    """Return the variance of filled-in depth; 0 where valid samples cover the pixel.

    Args:
        frame: with the samples.
        depth: (1, 1, H, W) that a method made of them.
    """
    covered = resample(frame.valid.to(depth.dtype), frame.high_size, "bilinear")
    return (_GUESS * depth * (1.0 - covered).clamp_min(0.0)).square()


def step_variance(depth: Tensor) -> Tensor:
    """Return the variance at steps of the depth, which a method places anew in every frame.

    Args:
        depth: (1, 1, H, W) that a method made.
    """
    return (_STEP * steps_of(depth)).square()
