"""The degradation of the noisy Middlebury benchmark, with room for other noise levels."""

from typing import ClassVar

import torch
from torch import Tensor

from primaldepth.core.settings import NotNegative
from primaldepth.sensors.base import Samples, Sensor, filled_and_whole
from primaldepth.sensors.degradations import middlebury_noisy_v1
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.noise import MIDDLEBURY_NOISE, local_mean


class MiddleburyNoisy(Sensor):
    """Disparity d: antialiased bicubic reduction, noise of standard deviation noise / d, 8-bit rounding.

    With the default noise of 651 it is the benchmark's degradation, bit for bit
    (`middlebury_noisy_v1`). A sample is valid if every pixel below it is, and if it did not come out as 0.
    """

    name = "middlebury-noisy-v1"
    kind = "disparity"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {"noise": (MIDDLEBURY_NOISE / 4, 2 * MIDDLEBURY_NOISE)}

    noise: NotNegative = MIDDLEBURY_NOISE

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return samples of (B, 1, H, W) disparities; holes are filled from behind before the reduction."""
        filled, whole = filled_and_whole(depth, seen, self.scale)
        samples = middlebury_noisy_v1(filled, self.scale, noise.generator, noise=self.noise, gain=noise.gain)
        measured = whole & (samples > 0)
        sigma = self.noise / local_mean(samples, measured).clamp_min(1.0)
        return Samples(torch.where(measured, samples, 0.0), measured, noise.scaled(sigma))
