"""A LiDAR scanner in a hand-held device: few exact points, spread over a smooth map, with confidence."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from primaldepth.core.settings import Count, NotNegative, Positive, Share
from primaldepth.sensors.base import Samples, Sensor, reduce_surface
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.noise import LIDAR_NOISE, local_mean


class Lidar(Sensor):
    """Depth z at points `spacing` pixels apart, spread over a map along surfaces, then smoothed.

    z_i = z(i) (1 + noise n) at each point i, n standard normal
    alike_i(x) = exp(-(log z_i - log z(x))^2 / (2 similarity^2))
    w_i(x) = bilinear weight of point i at x, times alike_i(x)
    log s(x) = sum w_i (log z_i + alike_i (log z(x) - log z(i))) / sum w_i, the four points around x
    1 / z'(x) = 1 / s, blurred by a Gaussian of `blur` pixels

    The true surfaces stand for the image that guides such devices: they keep their slope, edges come out
    smooth and a few pixels wide, and what no point has hit is mostly lost. Confidence is low (0), medium
    (0.5) or high (1), by the support sum w_i and by how far the blur has moved the depth.

    Args:
        scale: the truth has scale times the map's pixels per side.
        spacing: pixels of the map between two points.
        noise: standard deviation of a point's range, relative.
        similarity: of depths on one surface, relative.
        blur: in pixels of the map.
        loss: share of the points that do not return.
        far: largest depth, in metres.
        medium: support from which on confidence is medium.
        high: support from which on confidence is high.
    """

    name = "lidar-v1"
    kind = "z"
    sampling = "point"
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
    medium: Share = 0.3
    high: Share = 0.7

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return samples of (B, 1, H, W) depth in metres."""
        inverse, seen = reduce_surface(depth, seen, self.scale, gap=0.02)
        sharp, support = self._spread(inverse, *self._points(inverse, seen, noise))
        hit = support > 0
        smooth = _blurred(sharp, hit & seen, self.blur)
        measured = seen & hit & (smooth > 1.0 / self.far)
        z = torch.where(measured, 1.0 / torch.where(measured, smooth, 1.0), 0.0)
        trust = support * self._alike(_log(smooth), _log(sharp))
        confidence = 0.5 * ((trust > self.medium).to(z.dtype) + (trust > self.high).to(z.dtype))
        sigma = noise.scaled(self.noise * local_mean(z, measured))
        return Samples(z, measured, sigma, confidence * measured)

    def _points(self, inverse: Tensor, seen: Tensor, noise: Noise) -> tuple[Tensor, Tensor, Tensor]:
        """Return log 1 / z_i, its error, and whether the point returned, at each `spacing`-th pixel."""
        first = [min(self.spacing // 2, side - 1) for side in inverse.shape[2:]]
        at = (..., slice(first[0], None, self.spacing), slice(first[1], None, self.spacing))
        true, hit = inverse[at], seen[at]
        error = (1.0 + self.noise * noise.normal(true)).clamp_min(0.1)
        hit = hit & (noise.uniform(true) >= self.loss) & (true > 1.0 / self.far)
        return _log(true) - error.log(), -error.log(), hit

    def _alike(self, log_a: Tensor, log_b: Tensor) -> Tensor:
        """Return 1 for equal depths, falling towards 0 for those of two surfaces."""
        return torch.exp(-0.5 * ((log_a - log_b) / self.similarity).square())

    def _spread(self, inverse: Tensor, q: Tensor, error: Tensor, returned: Tensor) -> tuple[Tensor, Tensor]:
        """Return 1 / s and the support sum w_i on the map's grid; 0 if none of the four points returned."""
        rows = self._neighbours(int(inverse.shape[2]), int(q.shape[2]), inverse)
        columns = self._neighbours(int(inverse.shape[3]), int(q.shape[3]), inverse)
        total, support, here = torch.zeros_like(inverse), torch.zeros_like(inverse), _log(inverse)
        for i, vertical in rows:
            for j, horizontal in columns:
                point, off, hit = (each[:, :, i][..., j] for each in (q, error, returned))
                alike = self._alike(point, here)
                # The floor keeps the surface around where a thin one was missed by all four points.
                w = vertical[:, None] * horizontal * alike.clamp_min(1e-4) * hit
                total, support = total + w * (point + alike * (here + off - point)), support + w
        mean = (total / support.clamp_min(1e-12)).exp()
        return torch.where(support > 0, mean, 0.0), support

    def _neighbours(self, size: int, count: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return (index, weight) of the points before and after each of `size` pixels of an axis."""
        x = torch.arange(size, device=like.device, dtype=like.dtype)
        position = ((x - min(self.spacing // 2, size - 1)) / self.spacing).clamp(0, count - 1)
        index = position.long()
        # Not quite 0, so that the place of a point that did not return is filled by its neighbours.
        after = (position - index).clamp(1e-3, 1.0 - 1e-3)
        return [(index, 1.0 - after), ((index + 1).clamp_max(count - 1), after)]


class SmoothLidar(Lidar):
    """The same for devices that smooth more: edges are softer, and limits of confidence may be drawn."""

    name = "lidar-v2"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        **Lidar.ranges,
        "similarity": (0.05, 0.4),
        "blur": (0.7, 4.0),
        "medium": (0.1, 0.5),
        "high": (0.5, 0.95),
    }

    similarity: Positive = 0.2
    blur: NotNegative = 2.0


def _log(values: Tensor) -> Tensor:
    return values.clamp_min(1e-6).log()


def _blurred(inverse: Tensor, seen: Tensor, width: float) -> Tensor:
    """Return the Gaussian mean of the known inverse depths; 0 where there is none."""
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
