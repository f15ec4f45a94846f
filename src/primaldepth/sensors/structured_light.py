"""A structured-light camera: disparity noise and steps, the projector's shadow, holes at edges."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.settings import NotNegative, Positive, Share
from primaldepth.sensors.base import Samples, Sensor, reduce_surface
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.noise import STRUCTURED_LIGHT_BASELINE_FOCAL, local_mean
from primaldepth.sensors.shadow import shadow


class StructuredLight(Sensor):
    """Depth z by triangulation between a camera and a projector to its right.

    d = baseline_focal / z
    d' = step round((d + noise n) / step), n standard normal
    z' = baseline_focal / d'

    Not measured: what the projector does not reach (another surface is nearer on the same projector
    column x - d), what is out of range, a share `edge_loss` of the pixels whose 3x3 neighbourhood
    spans more than `edge` of disparity, and a share `loss` anywhere.

    Args:
        scale: the truth has scale times the camera's pixels per side.
        baseline_focal: baseline in metres times focal length in pixels of the samples.
        noise: standard deviation of the disparity, in pixels.
        step: of the disparity, in pixels.
        edge: range of disparities in 3x3 pixels that makes an edge, in pixels.
        near: least depth, in metres.
        far: largest depth, in metres.
    """

    name = "structured-light-v1"
    kind = "z"
    sampling = "point"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "noise": (0.0125, 0.2),
        "step": (1 / 32, 1 / 4),
        "loss": (0.001, 0.05),
        "edge_loss": (0.1, 1.0),
    }

    baseline_focal: Positive = STRUCTURED_LIGHT_BASELINE_FOCAL
    noise: NotNegative = 0.05
    step: Positive = 0.125
    edge: Positive = 2.0
    edge_loss: Share = 0.5
    loss: Share = 0.005
    near: Positive = 0.4
    far: Positive = 8.0

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return samples of (B, 1, H, W) depth in metres."""
        inverse, seen = reduce_surface(depth, seen, self.scale, gap=0.02)
        disparity = self.baseline_focal * inverse
        noisy = disparity + self.noise * noise.normal(disparity)
        stepped = (noisy / self.step).round() * self.step
        z = self.baseline_focal / stepped.clamp_min(self.step)
        lost = noise.uniform(disparity) < self.loss + self.edge_loss * self._edges(disparity, seen)
        hidden = shadow(disparity, seen, reach=int(self.baseline_focal / self.near) + 1)
        measured = seen & ~lost & ~hidden & (z >= self.near) & (z <= self.far)
        return Samples(torch.where(measured, z, 0.0), measured, self._sigma(z, measured, noise.gain))

    def _sigma(self, z: Tensor, measured: Tensor, gain: Tensor | None) -> Tensor:
        """Return sigma_z = z^2 / baseline_focal sqrt(noise^2 + step^2 / 12), z the local mean."""
        noise = self.noise if gain is None else self.noise * gain
        deviation = (noise**2 + self.step**2 / 12.0) ** 0.5
        return local_mean(z, measured).square() / self.baseline_focal * deviation

    def _edges(self, disparity: Tensor, seen: Tensor) -> Tensor:
        """Return 1 where the known disparities of a 3x3 neighbourhood span more than `edge`, else 0."""
        high = max_pool2d(torch.where(seen, disparity, -torch.inf), 3, 1, 1)
        low = -max_pool2d(torch.where(seen, -disparity, -torch.inf), 3, 1, 1)
        return (high - low > self.edge).to(disparity.dtype)
