"""Joint bilateral upsampling (Kopf et al., ACM Transactions on Graphics 2007)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import NotNegative, Positive, Settings
from primaldepth.methods.bilateral import Axis, BilateralWindow, WeightedSamples, filtered, likeness
from primaldepth.methods.holes import everywhere


class Kopf07Settings(Settings):
    """Width of the weights: sigma_d (N/n)^(-shrink) samples of distance, sigma_v of the guide's range.

    The wider the samples lie, the fewer of them belong to one surface.
    """

    sigma_d: Positive = 2.5
    shrink: NotNegative = 0.33
    sigma_v: Positive = 0.04

    def window(self, frame: Frame) -> BilateralWindow:
        """Return the window over the frame's samples, each axis by its own ratio.

        Args:
            frame: for its sizes.
        """
        sizes = zip(frame.low_size, frame.high_size, strict=True)
        return BilateralWindow(
            *(Axis.reaching(n, m, self.sigma_d * (n / m) ** self.shrink) for n, m in sizes)
        )


@dataclass(frozen=True, slots=True)
class Kopf07:
    """u(x) = sum_q t_q f(|x - q|) g(|I(x) - I_q|) d_q / sum_q t_q f g over the samples q around x."""

    settings: Kopf07Settings = field(default_factory=Kopf07Settings)
    name: str = "kopf07"

    def __call__(self, frame: Frame) -> Prediction:
        """Average; where no sample is in reach, the interpolation stays."""

        def weight(band: slice, near: WeightedSamples) -> Tensor:
            return near.weight * likeness(frame.guide[:, :, band], near.guide, self.settings.sigma_v)

        with torch.no_grad():
            return everywhere(filtered(frame, self.settings.window(frame), weight), frame)
