"""Iterative refinement by a cost volume and bilateral filtering (Yang et al., CVPR 2007)."""

from dataclasses import dataclass, field
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Few, Iterations, NotNegative, Positive, Settings
from primaldepth.methods.bilateral import Axis, BilateralWindow, WeightedSamples, likeness
from primaldepth.methods.holes import everywhere
from primaldepth.methods.interpolation import interpolate, noise_level
from primaldepth.operators.sampling import resample


class Yang07Settings(Settings):
    """Width of the weights, and how the cost volume is searched.

    Distance counts with sigma_d (N/n)^growth pixels of the guide, `narrowing` times that in each
    further iteration; looks with sigma_v. Costs end at `truncation` standard deviations of the noise.
    """

    sigma_d: Positive = 3.3
    growth: NotNegative = 0.6
    narrowing: Positive = 0.5
    sigma_v: Positive = 0.03
    truncation: Positive = 2.5
    hypotheses: Annotated[int, Field(ge=3, le=256)] = 10
    iterations: Iterations = 2
    taps: Few = 5

    def window(self, frame: Frame, iteration: int) -> BilateralWindow:
        """Return the window over the guide's grid, `taps` pixels on each side of its centre.

        Args:
            frame: for its sizes.
            iteration: from 0; later windows are narrower.
        """
        sizes = zip(frame.low_size, frame.high_size, strict=True)
        factor = self.sigma_d * self.narrowing**iteration
        axes = (Axis.reaching(m, m, factor * (m / n) ** self.growth, self.taps) for n, m in sizes)
        return BilateralWindow(*axes)


@dataclass(frozen=True, slots=True)
class Yang07:
    """Repeat u(x) <- argmin_d sum_y f(|x - y|) g(|I(x) - I(y)|) min(s^2, (d - u(y))^2).

    The first u is the interpolation. The hypotheses d of a pixel are evenly spaced between the
    least and the largest u in its window; a parabola through the best and its two
    neighbours gives the value between them. s is the truncation, at least one such step.
    """

    settings: Yang07Settings = field(default_factory=Yang07Settings)
    name: str = "yang07"

    def __call__(self, frame: Frame) -> Prediction:
        """Refine; pixels without a trusted sample in reach keep the interpolation and count for nothing."""
        with torch.no_grad():
            depth, weight = interpolate(frame)
            limit = self.settings.truncation * resample(noise_level(frame), frame.high_size, "bilinear")
            for iteration in range(self.settings.iterations):
                window = self.settings.window(frame, iteration)
                depth, known = self._refine(WeightedSamples(depth, weight, frame.guide), window, limit)
                weight = known.to(depth.dtype)
        return everywhere(depth, frame)

    def _refine(
        self, samples: WeightedSamples, window: BilateralWindow, limit: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return one iteration: the refined depth, and where the window held anything."""
        count = self.settings.hypotheses
        low, high = _range(samples.depth, window)
        step = (high - low) / (count - 1)
        ends = torch.maximum(limit, step).square()
        depth, known = samples.depth.clone(), torch.zeros_like(samples.depth, dtype=torch.bool)
        number = torch.arange(count, dtype=depth.dtype, device=depth.device).view(1, -1, 1, 1)
        for band, neighbours in window.over(samples, maps=count):
            guide, end = samples.guide[:, :, band], ends[:, :, band]
            hypotheses = low[:, :, band] + number * step[:, :, band]
            cost, weight = torch.zeros_like(hypotheses), torch.zeros_like(end)
            for near in neighbours:
                w = near.weight * likeness(guide, near.guide, self.settings.sigma_v)
                weight += w
                cost.addcmul_(w, torch.minimum((hypotheses - near.depth).square_(), end))
            best = low[:, :, band] + between(cost) * step[:, :, band]
            known[:, :, band] = weight > 0
            depth[:, :, band] = torch.where(weight > 0, best, depth[:, :, band])
        return depth, known


def between(cost: Tensor) -> Tensor:
    """Return where the parabola through the least cost and its neighbours is least.

    n + (c[n-1] - c[n+1]) / (2 (c[n-1] - 2 c[n] + c[n+1])); at the ends n itself.

    Args:
        cost: (B, N, H, W) of N hypotheses.

    Returns:
        (B, 1, H, W) from 0 to N - 1.
    """
    least, n = cost.min(dim=1, keepdim=True)
    before = cost.gather(1, (n - 1).clamp_min(0))
    after = cost.gather(1, (n + 1).clamp_max(cost.shape[1] - 1))
    bend = before - 2 * least + after
    inner = (n > 0) & (n < cost.shape[1] - 1) & (bend > 0)
    return n + torch.where(inner, (before - after) / (2 * bend), 0.0).clamp(-0.5, 0.5)


def _range(depth: Tensor, window: BilateralWindow) -> tuple[Tensor, Tensor]:
    """Return the least and largest depth in the window of each pixel."""
    rows, columns = window.rows.margin, window.columns.margin

    def largest(x: Tensor) -> Tensor:
        x = max_pool2d(x, (2 * rows + 1, 1), 1, (rows, 0))
        return max_pool2d(x, (1, 2 * columns + 1), 1, (0, columns))

    return -largest(-depth), largest(depth)
