"""How noisy a sensor is: by name, by number, or estimated from the frame."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.errors import InputError

MIDDLEBURY_NOISE = 651.0
STRUCTURED_LIGHT_BASELINE_FOCAL = 0.075 * 580.0  # metres times pixels
STRUCTURED_LIGHT_NOISE = 1.0 / 16.0  # pixels of disparity, the steps of 1/8 px included
TOF_READ, TOF_SHOT = 0.002, 0.004  # of the amplitude of a white surface in 1 m
TOF_WAVE_NUMBER = 0.838  # radians per metre at 20 MHz
LIDAR_NOISE = 0.01  # of the depth
AUTO_FLOOR = 0.005  # of the depth: sensors that smooth their output look better than they are


def local_mean(depth: Tensor, valid: Tensor, size: int = 5) -> Tensor:
    """Mean over the valid samples of a size x size window; 0 where there is none."""
    mask = valid.to(depth.dtype)
    pad = size // 2
    total = avg_pool2d(torch.where(valid, depth, 0.0), size, 1, pad)
    weight = avg_pool2d(mask, size, 1, pad)
    return torch.where(weight > 0, total / weight.clamp_min(1e-12), 0.0)


def middlebury_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Sigma = 651 / d with d the local mean: the noisy sample itself would bias its own weight."""
    return MIDDLEBURY_NOISE / local_mean(depth, valid).clamp_min(1.0)


def phasor_sigma(amplitude: Tensor, wave_number: float, read: float, shot: float) -> Tensor:
    """Sigma_r = sqrt(read^2 + shot^2 a) / (k a): the angle of a phasor of length a with noise, over k."""
    a = amplitude.clamp_min(1e-6)
    return torch.sqrt(read**2 + shot**2 * a) / (wave_number * a)


def tof_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """`phasor_sigma` of a grey surface that faces the camera, a = 1 / (2 r^2), r the local mean in metres."""
    amplitude = 0.5 / local_mean(depth, valid).clamp_min(0.1).square()
    return phasor_sigma(amplitude, TOF_WAVE_NUMBER, TOF_READ, TOF_SHOT)


def structured_light_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Sigma_z = z^2 / (baseline focal) / 16 px, z the local mean in metres: 1.4 mm in 1 m, 36 mm in 5 m."""
    z = local_mean(depth, valid).clamp_min(0.1)
    return z.square() * (STRUCTURED_LIGHT_NOISE / STRUCTURED_LIGHT_BASELINE_FOCAL)


def lidar_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Sigma_z = z / 100, z the local mean, in any unit."""
    return LIDAR_NOISE * local_mean(depth, valid).clamp_min(1e-6)


SENSORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"middlebury": middlebury_sigma}
METRIC_SENSORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tof": tof_sigma,
    "structured-light": structured_light_sigma,
    "lidar": lidar_sigma,
}


def estimate_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """One standard deviation per image from second differences, robust to edges and blind to slopes.

    r(x) = (d(x-1) - 2 d(x) + d(x+1)) / sqrt 6 has the noise's standard deviation on planes;
    1.4826 median |r| over both directions and all triples of valid samples ignores edges.
    """
    sigmas = []
    for image, mask in zip(depth, valid, strict=True):
        residuals = [_second_difference(image, mask, dim) for dim in (-2, -1)]
        values = torch.cat(residuals)
        spread = 1.4826 * values.median() if values.numel() else depth.new_zeros(())
        sigmas.append(spread)
    return torch.stack(sigmas).view(-1, 1, 1, 1).expand_as(depth).contiguous()


def _second_difference(image: Tensor, mask: Tensor, dim: int) -> Tensor:
    n = image.shape[dim] - 2
    if n < 1:
        return image.new_zeros(0)
    left, middle, right = (image.narrow(dim, start, n) for start in range(3))
    inside = mask.narrow(dim, 0, n) & mask.narrow(dim, 1, n) & mask.narrow(dim, 2, n)
    return ((left - 2 * middle + right) / 6**0.5)[inside].abs()


def noise_map(noise: str | float | Tensor, depth: Tensor, valid: Tensor) -> Tensor:
    """Sigma of every sample, (B, 1, h, w), from "auto", a number, a map, or a sensor's name."""
    if isinstance(noise, Tensor):
        if noise.shape != depth.shape and noise.numel() != 1:
            raise InputError(
                f"noise: map of shape {tuple(noise.shape)}, but the depth has {tuple(depth.shape)}"
            )
        return noise.to(depth).expand_as(depth)
    if isinstance(noise, str) and noise == "auto":
        return torch.maximum(estimate_sigma(depth, valid), AUTO_FLOOR * local_mean(depth, valid))
    sensors = SENSORS | METRIC_SENSORS
    if isinstance(noise, str) and noise in sensors:
        return sensors[noise](depth, valid)
    try:
        number = float(noise)
    except ValueError:
        known = ", ".join(["auto", *sensors])
        raise InputError(f"noise: '{noise}' is neither a number nor one of {known}") from None
    if not (number >= 0.0 and number < float("inf")):
        raise InputError(f"noise: {number} is not a standard deviation; expected a number >= 0")
    return torch.full_like(depth, number)
