"""How noisy a sensor is: by name, by number, or estimated from the frame."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Sampling
from primaldepth.measurement.noise_estimate import estimate_sigma as estimate_sigma
from primaldepth.measurement.noise_estimate import local_mean as local_mean
from primaldepth.sensors.device_noise import DEVICES

MIDDLEBURY_NOISE = 651.0
STRUCTURED_LIGHT_BASELINE_FOCAL = 0.075 * 580.0  # metres times pixels
STRUCTURED_LIGHT_NOISE = 1.0 / 16.0  # pixels of disparity, the steps of 1/8 px included
TOF_READ, TOF_SHOT = 0.002, 0.004  # of the amplitude of a white surface in 1 m
TOF_WAVE_NUMBER = 0.838  # radians per metre at 20 MHz
LIDAR_NOISE = 0.01  # of the depth
AUTO_FLOOR = 0.0005  # of the depth: no depth camera is better


def middlebury_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return sigma = 651 / d with d the local mean: the noisy sample itself would bias its own weight.

    Args:
        depth: (B, 1, h, w) disparities.
        valid: (B, 1, h, w).
    """
    return MIDDLEBURY_NOISE / local_mean(depth, valid).clamp_min(1.0)


def phasor_sigma(amplitude: Tensor, wave_number: float, read: float, shot: float) -> Tensor:
    """Return sigma_r = sqrt(read^2 + shot^2 a) / (k a): the noise of a phasor's angle, over k; length a.

    Args:
        amplitude: (B, 1, h, w) a.
        wave_number: k in radians per metre.
        read: noise that does not depend on the signal.
        shot: noise of the signal's own photons.
    """
    a = amplitude.clamp_min(1e-6)
    return torch.sqrt(read**2 + shot**2 * a) / (wave_number * a)


def tof_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return the noise of a time-of-flight camera that faces grey surfaces.

    `phasor_sigma` with the amplitude a = 1 / (2 r^2), r the local mean of the distance.

    Args:
        depth: (B, 1, h, w) radial distances in metres.
        valid: (B, 1, h, w).
    """
    amplitude = 0.5 / local_mean(depth, valid).clamp_min(0.1).square()
    return phasor_sigma(amplitude, TOF_WAVE_NUMBER, TOF_READ, TOF_SHOT)


def structured_light_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return sigma_z = z^2 / (baseline focal) / 16 px, z the local mean: 1.4 mm in 1 m, 36 mm in 5 m.

    Args:
        depth: (B, 1, h, w) z in metres.
        valid: (B, 1, h, w).
    """
    z = local_mean(depth, valid).clamp_min(0.1)
    return z.square() * (STRUCTURED_LIGHT_NOISE / STRUCTURED_LIGHT_BASELINE_FOCAL)


def lidar_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return sigma_z = z / 100, z the local mean, in any unit.

    Args:
        depth: (B, 1, h, w) z.
        valid: (B, 1, h, w).
    """
    return LIDAR_NOISE * local_mean(depth, valid).clamp_min(1e-6)


def device_sigma(name: str, depth: Tensor, valid: Tensor) -> Tensor:
    """Return sigma of the depth camera `name`, z the local mean in metres; at least 0.1 mm."""
    return DEVICES[name].sigma(local_mean(depth, valid).clamp_min(0.1)).clamp_min(1e-4)


SENSORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"middlebury": middlebury_sigma}
METRIC_SENSORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tof": tof_sigma,
    "structured-light": structured_light_sigma,
    "lidar": lidar_sigma,
    **{name: partial(device_sigma, name) for name in DEVICES},
}
SAMPLINGS_OF: dict[str, Sampling] = {
    "middlebury": "average",
    "tof": "average",
    "structured-light": "point",
    "lidar": "point",
    **{name: device.sampling for name, device in DEVICES.items()},
}
"""How the samples of each sensor come from the image."""
UNITLESS_SENSORS = frozenset({"lidar"})  # a part of the depth, whatever its unit


def least_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return the least noise that "auto" assumes: 0.05 % of the local mean depth.

    Args:
        depth: (B, 1, h, w).
        valid: (B, 1, h, w).
    """
    return AUTO_FLOOR * local_mean(depth, valid)


def noise_map(noise: str | float | Tensor, depth: Tensor, valid: Tensor) -> Tensor:
    """Return sigma of every sample, (B, 1, h, w), from "auto", a number, a map, or a sensor's name.

    Args:
        noise: "auto", a standard deviation, a map of them, or a sensor's name.
        depth: (B, 1, h, w) samples; metres for the name of a metric sensor.
        valid: (B, 1, h, w).

    Raises:
        InputError: if the name is unknown, a number is negative or not finite, or a map has another shape.

    Example:
        >>> import torch
        >>> from primaldepth.sensors.noise import noise_map
        >>> depth = torch.full((1, 1, 2, 2), 93.0)  # pixels of disparity
        >>> noise_map("middlebury", depth, depth > 0).flatten().tolist()  # 651 / 93
        [7.0, 7.0, 7.0, 7.0]
    """
    if isinstance(noise, Tensor):
        if noise.shape != depth.shape and noise.numel() != 1:
            raise InputError(
                "noise", f"map of shape {tuple(noise.shape)}, but the depth has {tuple(depth.shape)}"
            )
        return noise.to(depth).expand_as(depth)
    if isinstance(noise, str) and noise == "auto":
        return torch.maximum(estimate_sigma(depth, valid), least_sigma(depth, valid))
    sensors = SENSORS | METRIC_SENSORS
    if isinstance(noise, str) and noise in sensors:
        return sensors[noise](depth, valid)
    try:
        number = float(noise)
    except OverflowError:
        number = math.inf
    except ValueError:
        known = ", ".join(["auto", *sensors])
        raise InputError("noise", f"'{noise}' is neither a number nor one of {known}") from None
    if not 0.0 <= number <= torch.finfo(depth.dtype).max:
        raise InputError("noise", f"{number} is not a standard deviation", "expected a number >= 0")
    return torch.full_like(depth, number)
