"""Joint bilateral upsampling."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Settings
from primaldepth.methods.bilateral import Axis, Samples, Window, interpolate, likeness
from primaldepth.methods.holes import measured_mask
from primaldepth.variational.models import NotNegative, Positive


class Kopf07Settings(Settings):
    sigma_d: Positive = 2.5
    power: NotNegative = 0.4
    sigma_v: Positive = 0.08


@dataclass(frozen=True, slots=True)
class Kopf07:
    name: str
    settings: Kopf07Settings

    def __call__(self, frame: Frame) -> Prediction:
        with torch.no_grad():
            depth = self._filter(frame)
        return Prediction(depth, torch.ones_like(depth, dtype=torch.bool), measured_mask(frame))

    def _filter(self, frame: Frame) -> Tensor:
        q = self.settings
        axes = [Axis.reaching(n,N, max(0.5, q.sigma_d * (N/n)**-q.power)) for n,N in zip(frame.low_size, frame.high_size)]
        window = Window(*axes)
        samples = Samples.of(frame)
        result = interpolate(frame)
        for band in window.bands(result):
            guide = frame.guide[:, :, band]
            total = torch.zeros_like(result[:, :, band])
            weight = torch.zeros_like(total)
            for near in window.gather(samples, band):
                w = near.weight * likeness(guide, near.guide, q.sigma_v)
                weight += w
                total += w * near.depth
            result[:, :, band] = torch.where(weight > 0, total / weight.clamp_min(1e-30), result[:, :, band])
        return result
