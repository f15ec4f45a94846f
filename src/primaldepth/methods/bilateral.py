"""Joint bilateral windows: the samples around each pixel of the guide, weighted by distance and by looks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.core.frame import Frame
from primaldepth.methods.holes import fill_holes
from primaldepth.operators.resampling import resample

FLOOR = 1e-6  # of the weight of a sample that looks the same: where nothing does, distance decides
BAND_BYTES = 2**18  # per map: the few maps of a band stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Samples:
    """What a window gathers.

    Args:
        depth: (B, 1, h, w) finite everywhere.
        weight: (B, 1, h, w) trust in each sample, 0 for holes.
        guide: (B, C, h, w) how the guide looks at the sample.
    """

    depth: Tensor
    weight: Tensor
    guide: Tensor

    @classmethod
    def of(cls, frame: Frame) -> "Samples":
        """The frame's samples; the guide is averaged over the cell of each, as the depth was."""
        return cls(frame.clean_depth(), trust(frame), resample(frame.guide, frame.low_size, "area"))


def trust(frame: Frame) -> Tensor:
    """(B, 1, h, w): confidence of valid samples, 0 for holes; equal trust where no confidence is left."""
    mask = frame.valid.to(frame.depth.dtype)
    if frame.confidence is None:
        return mask
    weight = torch.where(frame.valid, frame.confidence, 0.0)
    return torch.where(weight.flatten(1).amax(dim=1).view(-1, 1, 1, 1) > 0, weight, mask)


def interpolate(frame: Frame) -> Tensor:
    """(B, 1, H, W): bilinear between the trusted samples, holes filled smoothly."""
    return resample(fill_holes(frame.clean_depth(), trust(frame) > 0), frame.high_size, "bilinear")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a window: for each pixel the samples within `radius` steps of its own.

    Pixel i sits at sample coordinate (i + 1/2) n_in / n_out - 1/2; a sample at distance t
    has the weight exp(-t^2 / (2 sigma^2)).

    Args:
        sigma: in samples.
        step: samples between neighbours of the window.
    """

    n_in: int
    n_out: int
    sigma: float
    radius: int
    step: int = 1

    @classmethod
    def reaching(cls, n_in: int, n_out: int, sigma: float, step: int = 1) -> "Axis":
        """Out to two sigma, where the weight is 0.14, or to the samples next to the pixel."""
        return cls(n_in, n_out, sigma, max(1, math.floor(2 * sigma / step)), step)

    @property
    def offsets(self) -> range:
        """Positions in the window."""
        return range(-self.radius, self.radius + 1)

    @property
    def margin(self) -> int:
        """Samples the window reaches beyond the border."""
        return self.radius * self.step

    def sample(self, offset: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """(n_out,) index into the samples padded by `margin`, and the weight of the distance."""
        position = (torch.arange(self.n_out, dtype=torch.float64) + 0.5) * (self.n_in / self.n_out) - 0.5
        index = (position + 0.5).floor().clamp(0, self.n_in - 1) + offset * self.step
        weight = torch.exp(-((position - index) ** 2) / (2 * self.sigma**2))
        return (index.long() + self.margin).to(like.device), weight.to(like)


@dataclass(frozen=True, slots=True)
class Window:
    """The product of two axes."""

    rows: Axis
    columns: Axis

    def __len__(self) -> int:
        return len(self.rows.offsets) * len(self.columns.offsets)

    def bands(self, like: Tensor, maps: int = 1) -> Iterator[slice]:
        """Rows of the guide's grid that are worked on together when `maps` maps are held."""
        if like.is_cuda:
            count = max(1, 2**28 // (maps * self.columns.n_out))
        else:
            count = max(1, BAND_BYTES // (maps * self.columns.n_out * like.element_size()))
        for start in range(0, self.rows.n_out, count):
            yield slice(start, min(start + count, self.rows.n_out))

    def gather(self, samples: Samples, band: slice) -> Iterator[Samples]:
        """For each offset the sample of every pixel of the band, its weight times that of its distance."""
        stacked = torch.cat([samples.weight, samples.depth, samples.guide], dim=1)
        stacked = pad(stacked, (self.columns.margin,) * 2 + (self.rows.margin,) * 2)
        rows = [self.rows.sample(offset, stacked) for offset in self.rows.offsets]
        rows = [(index[band], weight[band, None]) for index, weight in rows]
        first, last = int(rows[0][0][0]), int(rows[-1][0][-1])
        stacked = stacked[:, :, first : last + 1]
        for offset in self.columns.offsets:
            index, weight = self.columns.sample(offset, stacked)
            strip = stacked.index_select(3, index)
            strip[:, :1] *= weight
            for row_index, row_weight in rows:
                found = strip.index_select(2, row_index - first)
                yield Samples(found[:, 1:2], found[:, :1] * row_weight, found[:, 2:])


def likeness(guide: Tensor, other: Tensor, sigma: float) -> Tensor:
    """(B, 1, ...): exp(-|I - J|^2 / (2 sigma^2)) over the mean of the channels, at least `FLOOR`."""
    distance = (guide - other).square_().mean(dim=1, keepdim=True)
    return distance.mul_(-0.5 / sigma**2).exp_().clamp_min_(FLOOR)
