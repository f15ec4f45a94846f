"""How noisy a sensor is: by name, by number, or estimated from the frame."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.errors import InputError

MIDDLEBURY_NOISE = 651.0
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


SENSORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"middlebury": middlebury_sigma}


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
    if isinstance(noise, str) and noise in SENSORS:
        return SENSORS[noise](depth, valid)
    try:
        number = float(noise)
    except ValueError:
        known = ", ".join(["auto", *SENSORS])
        raise InputError(f"noise: '{noise}' is neither a number nor one of {known}") from None
    if not (number >= 0.0 and number < float("inf")):
        raise InputError(f"noise: {number} is not a standard deviation; expected a number >= 0")
    return torch.full_like(depth, number)
