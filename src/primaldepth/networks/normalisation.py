"""Depth as networks see it: centred and scaled per frame, so that all units look alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.measurement.noise_estimate import noise_of


@dataclass(frozen=True, slots=True)
class Scaling:
    """x -> (x - centre) / spread, one pair of numbers per image: (B, 1, 1, 1)."""

    centre: Tensor
    spread: Tensor

    @classmethod
    def of(cls, frame: Frame) -> "Scaling":
        """Take the median of the valid samples, and half the range between their 5 % and 95 % quantiles.

        Args:
            frame: with at least one valid sample.

        Returns:
            The numbers of each image.
        """
        centres, spreads = [], []
        for depth, valid in zip(frame.depth, frame.valid, strict=True):
            values = depth[valid].float()
            values = values[:: 1 + values.numel() // 2**24]  # quantile takes no more
            low, middle, high = torch.quantile(values, values.new_tensor([0.05, 0.5, 0.95]))
            floor = 1e-3 * middle.abs() + 1e-12
            centres.append(middle)
            spreads.append(torch.maximum(0.5 * (high - low), floor))
        return cls(torch.stack(centres).view(-1, 1, 1, 1), torch.stack(spreads).view(-1, 1, 1, 1))

    def apply(self, depth: Tensor) -> Tensor:
        """Return depth in the network's unit.

        Args:
            depth: (B, C, H, W) in the frame's unit.
        """
        return (depth - self.centre) / self.spread

    def restore(self, depth: Tensor) -> Tensor:
        """Return depth in the frame's unit.

        Args:
            depth: (B, C, H, W) in the network's unit.
        """
        return depth * self.spread + self.centre


def relative_sigma(frame: Frame, scaling: Scaling) -> Tensor:
    """Return the noise in the network's unit, estimated where the frame does not know it; 0 in holes.

    Args:
        frame: whose noise is asked for.
        scaling: of its depth.

    Returns:
        (B, 1, h, w).
    """
    sigma = noise_of(frame)
    return torch.where(frame.valid, sigma / scaling.spread, 0.0)
