"""Noise-aware filter for depth upsampling (Chan et al., ECCV workshop M2SFA2 2008)."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import NotNegative, Positive
from primaldepth.methods.bilateral import FLOOR, WeightedSamples, filtered, likeness
from primaldepth.methods.holes import everywhere, fill_holes
from primaldepth.methods.interpolation import noise_level
from primaldepth.methods.kopf07 import Kopf07Settings
from primaldepth.operators.sampling import resample


class Chan08Settings(Kopf07Settings):
    """Settings: the windows of `kopf07`, and thresholds in units of the noise.

    sigma_r is the width of the depth weight; steps of depth of `threshold` give both weights
    the same say, and `slope` says how fast that changes; sigma_s (samples) smooths the depth
    that pixels and steps are judged by.
    """

    sigma_v: Positive = 0.025
    sigma_r: Positive = 2.5
    threshold: NotNegative = 1.0
    slope: Positive = 1.0
    sigma_s: Positive = 0.7


@dataclass(frozen=True, slots=True)
class Judged:
    """Maps (B, 1, H, W) that decide, for each pixel, between the weights of guide and depth.

    Args:
        depth: the smoothed samples, interpolated.
        inverse: 1 / (2 sigma^2 ln 2), sigma the width of the depth weight.
        alpha: share of the guide.
    """

    depth: Tensor
    inverse: Tensor
    alpha: Tensor

    @classmethod
    def of(cls, frame: Frame, q: Chan08Settings) -> "Judged":
        """Return the maps; alpha = 1 / (1 + exp(-slope (step / noise - threshold))), step over 3x3 samples.

        Args:
            frame: that is filtered.
            q: settings of the method.

        Returns:
            The maps.
        """
        smooth = _smooth(frame.clean_depth(), frame.trust, q.sigma_s)
        step = max_pool2d(smooth, 3, 1, 1) + max_pool2d(-smooth, 3, 1, 1)
        # Without noise the depth weight has to be as wide as the depth is uneven.
        sigma = torch.maximum(noise_level(frame), 0.01 * step).clamp_min(1e-12)
        alpha = torch.sigmoid(q.slope * (step / sigma - q.threshold))
        depth, sigma, alpha = (resample(x, frame.high_size, "bilinear") for x in (smooth, sigma, alpha))
        return cls(depth, 1 / (2 * math.log(2) * (q.sigma_r * sigma).square()), alpha)

    def weight(self, band: slice, near: WeightedSamples, alike: Tensor) -> Tensor:
        """Return alpha g(|I(x) - I_q|) + (1 - alpha) h(|d(x) - d_q|).

        Args:
            band: rows of the guide's grid.
            near: one neighbour of each of their pixels.
            alike: (B, 1, rows, W) g.
        """
        distance = (near.depth - self.depth[:, :, band]).square_()
        close = distance.mul_(self.inverse[:, :, band]).neg_().exp2_()
        return torch.lerp(close, alike, self.alpha[:, :, band]).clamp_min_(FLOOR)


@dataclass(frozen=True, slots=True)
class Chan08:
    """u(x) = sum_q w_q d_q / sum_q w_q, w_q = t_q f(|x - q|) (alpha g(guide) + (1 - alpha) h(depth)).

    Where the depth is flat but for noise, alpha is small and the guide's texture has no say.
    """

    settings: Chan08Settings = field(default_factory=Chan08Settings)
    name: str = "chan08"

    def __call__(self, frame: Frame) -> Prediction:
        """Average the samples around each pixel; keep the interpolation where no sample is in reach."""
        with torch.no_grad():
            judged = Judged.of(frame, self.settings)

            def weight(band: slice, near: WeightedSamples) -> Tensor:
                alike = likeness(frame.guide[:, :, band], near.guide, self.settings.sigma_v)
                return near.weight * judged.weight(band, near, alike)

            return everywhere(filtered(frame, self.settings.window(frame), weight), frame)


def _smooth(depth: Tensor, weight: Tensor, sigma: float) -> Tensor:
    """Return the Gaussian mean of the trusted samples within 3 sigma, with the rest filled."""
    radius = max(1, math.floor(3 * sigma))
    distance = torch.arange(-radius, radius + 1, dtype=depth.dtype, device=depth.device)
    kernel = torch.exp(-(distance**2) / (2 * sigma**2))
    both = torch.cat([weight, weight * depth])
    both = conv2d(both, kernel.view(1, 1, -1, 1), padding=(radius, 0))
    total_weight, total = conv2d(both, kernel.view(1, 1, 1, -1), padding=(0, radius)).chunk(2)
    known = total_weight > FLOOR
    return fill_holes(torch.where(known, total / total_weight.clamp_min(FLOOR), 0.0), known)
