"""Sensors with the same noise everywhere, for devices of which nothing else is known."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from primaldepth.core.settings import NotNegative
from primaldepth.io import Kind
from primaldepth.sensors.base import Samples, Sensor, filled_and_whole
from primaldepth.sensors.degradations import reduced
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.shadow import shadow

REACH = 256.0  # disparities beyond it cast no longer shadows


class Gaussian(Sensor):
    """Disparity: antialiased bicubic reduction and noise of one standard deviation, not rounded.

    A sample is valid if every pixel below it is.
    """

    name = "gaussian-v1"
    kind: ClassVar[Kind] = "disparity"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"sigma": (0.1, 20.0)}

    sigma: NotNegative = 5.0

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return samples of (B, 1, H, W) true values; holes are filled from their row before."""
        filled, whole = filled_and_whole(depth, seen, self.scale)
        return _measured(reduced(filled, self.scale), whole, self.sigma, noise)


class MetricGaussian(Gaussian):
    """Depth in metres with one noise for all samples: a camera of which nothing but its noise is known."""

    name = "metric-gaussian-v1"
    kind = "z"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"sigma": (0.001, 0.2)}

    sigma: NotNegative = 0.02


class PointGaussian(Sensor):
    """Disparity at the middle pixel of each block and noise of one standard deviation, not rounded.

    Args:
        scale: the truth has scale times the samples per side.
        sigma: standard deviation of the noise, in the unit of the disparity.
        parallax: shift between the two views in pixels of the truth, per unit of disparity. What the second
            view does not see beside nearer surfaces is not measured; 0: everything is.
    """

    name = "point-gaussian-v1"
    kind = "disparity"
    sampling = "point"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"sigma": (0.1, 20.0), "parallax": (0.02, 0.5)}

    sigma: NotNegative = 1.0
    parallax: NotNegative = 0.0

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return samples of (B, 1, H, W) true values."""
        truth = torch.where(seen, depth, 0.0)
        if self.parallax:
            seen = seen & ~shadow(self.parallax * truth, seen, reach=math.ceil(REACH * self.parallax))
        middle = slice(self.scale // 2, None, self.scale)
        return _measured(truth[..., middle, middle], seen[..., middle, middle], self.sigma, noise)


def _measured(truth: Tensor, seen: Tensor, sigma: float, noise: Noise) -> Samples:
    """Return the truth with noise of one standard deviation; what is not above 0 is lost."""
    samples = truth + sigma * noise.normal(truth)
    measured = seen & (samples > 0)
    deviation = noise.scaled(torch.full_like(samples, sigma))
    return Samples(torch.where(measured, samples, 0.0), measured, deviation)
