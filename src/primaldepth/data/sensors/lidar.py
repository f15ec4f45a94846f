"""A LiDAR scanner in a hand-held device: few exact points, spread over a smooth map, with confidence."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from primaldepth.data.draws import normal, uniform
from primaldepth.data.noise import LIDAR_NOISE, local_mean
from primaldepth.data.sensors.base import (
    Count,
    NotNegative,
    Positive,
    Samples,
    Sensor,
    Share,
    known,
    reduce_surface,
)
from primaldepth.io import Kind


class Lidar(Sensor):
    """Depth z at points `spacing` pixels apart, spread over a map along the surfaces of a blurred guide.

    z_i = z (1 + noise n) at each point i, n standard normal
    w_i(x) = bilinear weight of point i at x, times exp(-(log z_i - log g(x))^2 / (2 similarity^2))
    1 / z'(x) = sum w_i / z_i / sum w_i over the four points around x

    g, the depth smoothed by a Gaussian of `blur` pixels, stands for the image that guides such devices:
    edges come out smooth and a few pixels wide, and what is thinner than the points are apart is
    mostly lost. Confidence is low (0), medium (0.5) or high (1) by the support sum w_i.

    Args:
        scale: the truth has scale times the map's pixels per side.
        spacing: pixels of the map between two points.
        noise: standard deviation of a point's range, relative.
        similarity: of depths on one surface, relative.
        blur: of the guide, in pixels of the map.
        loss: share of the points that do not return.
        far: largest depth, in metres.
    """

    name: ClassVar[str] = "lidar-v1"
    kind: ClassVar[Kind] = "z"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "noise": (LIDAR_NOISE / 4, 4 * LIDAR_NOISE),
        "similarity": (0.05, 0.2),
        "blur": (0.5, 2.0),
        "loss": (0.005, 0.1),
    }

    spacing: Count = 8
    noise: NotNegative = LIDAR_NOISE
    similarity: Positive = 0.1
    blur: NotNegative = 1.0
    loss: Share = 0.02
    far: Positive = 5.0

    def __call__(
        self,
        depth: Tensor,
        valid: Tensor | None = None,
        *,
        generator: torch.Generator,
        gain: Tensor | None = None,
    ) -> Samples:
        """Samples of (B, 1, H, W) depth in metres."""
        seen = known(depth, valid, self.scale)
        inverse, seen = reduce_surface(depth, seen, self.scale, gap=0.02)
        points, returned = self._points(inverse, seen, generator, gain)
        spread, support = self._spread(points, returned, _blurred(inverse, seen, self.blur))
        measured = seen & (spread > 1.0 / self.far)
        z = torch.where(measured, 1.0 / torch.where(measured, spread, 1.0), 0.0)
        confidence = 0.5 * ((support > 0.3).to(z.dtype) + (support > 0.7).to(z.dtype))
        sigma = self.noise * local_mean(z, measured)
        return Samples(z, measured, sigma if gain is None else sigma * gain, confidence * measured)

    def _points(
        self, inverse: Tensor, seen: Tensor, generator: torch.Generator, gain: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """(inverse depth, returned or not) at every `spacing`-th pixel of the map."""
        middle = [min(self.spacing // 2, side - 1) for side in inverse.shape[2:]]
        at = (..., slice(middle[0], None, self.spacing), slice(middle[1], None, self.spacing))
        true, hit = inverse[at], seen[at]
        error = (1.0 + self.noise * normal(true, generator, gain)).clamp_min(0.1)
        return true / error, hit & (uniform(true, generator) >= self.loss) & (true > 1.0 / self.far)

    def _spread(self, points: Tensor, returned: Tensor, guide: Tensor) -> tuple[Tensor, Tensor]:
        """(inverse depth, support) on the guide's grid; 0 where none of the four points returned."""
        rows = self._neighbours(int(guide.shape[2]), int(points.shape[2]), guide)
        columns = self._neighbours(int(guide.shape[3]), int(points.shape[3]), guide)
        total, support = torch.zeros_like(guide), torch.zeros_like(guide)
        log_guide = guide.clamp_min(1e-6).log()
        for i, vertical in rows:
            for j, horizontal in columns:
                q, hit = points[:, :, i][..., j], returned[:, :, i][..., j]
                distance = (q.clamp_min(1e-6).log() - log_guide) / self.similarity
                # The floor keeps the nearest surface where a thin one was missed by all points.
                alike = torch.exp(-0.5 * distance.square()).clamp_min(1e-4)
                w = vertical[:, None] * horizontal * alike * hit
                total, support = total + w * q, support + w
        return total / support.clamp_min(1e-12), support

    def _neighbours(self, size: int, count: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
        """[(index, weight)] of the point before and the point after each of `size` pixels of an axis."""
        x = torch.arange(size, device=like.device, dtype=like.dtype)
        position = ((x - min(self.spacing // 2, size - 1)) / self.spacing).clamp(0, count - 1)
        before = position.floor()
        index = before.long()
        return [(index, 1.0 - (position - before)), ((index + 1).clamp_max(count - 1), position - before)]


def _blurred(inverse: Tensor, seen: Tensor, width: float) -> Tensor:
    """Gaussian mean of the known inverse depths; 0 where there is none."""
    if width == 0:
        return inverse
    radius = int(3 * width) + 1
    x = torch.arange(-radius, radius + 1, device=inverse.device, dtype=inverse.dtype)
    kernel = torch.exp(-0.5 * (x / width).square())
    kernel = kernel / kernel.sum()
    both = torch.cat([torch.where(seen, inverse, 0.0), seen.to(inverse.dtype)], 0)
    both = conv2d(pad(both, (radius, radius, 0, 0), mode="replicate"), kernel.view(1, 1, 1, -1))
    both = conv2d(pad(both, (0, 0, radius, radius), mode="replicate"), kernel.view(1, 1, -1, 1))
    total, weight = both.chunk(2)
    return torch.where(weight > 1e-6, total / weight.clamp_min(1e-6), 0.0)
