"""Joint bilateral windows: the samples around each pixel of the guide, weighted by distance and by looks."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.core.frame import Frame
from primaldepth.methods.interpolation import interpolate
from primaldepth.operators.sampling import resample

FLOOR = 1e-6  # least weight of a neighbour: where none looks alike, distance decides
# Numbers a step works on at once. Up to 2^15 torch computes in one thread, within the cache, and for
# so short a step a second thread would cost more than it gives. A GPU takes most frames whole.
CPU_BAND, GPU_BAND = 2**15, 2**26


@dataclass(frozen=True, slots=True)
class WeightedSamples:
    """Samples with their weights: either all of a frame, or one neighbour of every pixel.

    Args:
        depth: (B, 1, h, w) finite everywhere.
        weight: (B, 1, h, w) at least 0; 0 for holes.
        guide: (B, C, h, w) how the guide looks at the sample.
    """

    depth: Tensor
    weight: Tensor
    guide: Tensor

    @classmethod
    def of(cls, frame: Frame) -> "WeightedSamples":
        """Return the frame's samples; the guide is averaged over the cell of each, as the depth was.

        Args:
            frame: whose samples are averaged.
        """
        return cls(frame.clean_depth(), frame.trust, resample(frame.guide, frame.low_size, "area"))


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """One place along an axis of a window: which sample each pixel finds there, and its weight.

    Args:
        index: (n,) into the padded samples.
        weight: (n,) by the distance from the pixel.
        shift: index of the first pixel where each pixel has a sample of its own, so that no copy is needed.
    """

    index: Tensor
    weight: Tensor
    shift: int | None

    def pick(self, padded: Tensor, dim: int, part: slice) -> Tensor:
        """Return the samples of the pixels in `part`."""
        if self.shift is not None:
            return padded.narrow(dim, self.shift + part.start, part.stop - part.start)
        return padded.index_select(dim, self.index[part])


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a window: 2 radius + 1 samples around each pixel, `step` samples apart.

    Pixel i sits at sample coordinate (i + 1/2) n_in / n_out - 1/2; a sample at distance t
    has the weight exp(-t^2 / (2 sigma^2)).
    """

    n_in: int
    n_out: int
    sigma: float
    radius: int
    step: int = 1

    @classmethod
    def reaching(cls, n_in: int, n_out: int, sigma: float, taps: int | None = None) -> "Axis":
        """Return the axis whose Gaussian window ends at 2 sigma, but not before one sample on each side.

        Args:
            n_in: samples along the axis.
            n_out: pixels along it.
            sigma: samples.
            taps: at most so many on each side; None: all.
        """
        step = 1 if taps is None else max(1, math.ceil(2 * sigma / taps))
        return cls(n_in, n_out, sigma, max(1, math.floor(2 * sigma / step)), step)

    @property
    def margin(self) -> int:
        """Number of samples from the pixel's own to the farthest of the window."""
        return self.radius * self.step

    def places(self, like: Tensor) -> list[WindowPlace]:
        """Return every place of the window, for samples padded by `margin`."""
        position = (torch.arange(self.n_out, dtype=torch.float64) + 0.5) * (self.n_in / self.n_out) - 0.5
        nearest = (position + 0.5).long().clamp(0, self.n_in - 1)
        found = []
        for offset in range(-self.margin, self.margin + 1, self.step):
            weight = torch.exp(-((position - nearest - offset) ** 2) / (2 * self.sigma**2))
            shift = offset + self.margin if self.n_in == self.n_out else None
            index = nearest + offset + self.margin
            found.append(WindowPlace(index.to(like.device), weight.to(like), shift))
        return found


@dataclass(frozen=True, slots=True)
class BilateralWindow:
    """The product of two axes."""

    rows: Axis
    columns: Axis

    def over(self, samples: WeightedSamples, maps: int) -> Iterator[tuple[slice, Iterator[WeightedSamples]]]:
        """Return bands of rows of the guide's grid, each with an iterator over its pixels' neighbours.

        Args:
            samples: over which the window is laid.
            maps: numbers per pixel in the largest step of the caller.
        """
        images, channels = samples.guide.shape[:2]
        row = max(maps, channels + 1) * images * self.columns.n_out
        count = max(1, (GPU_BAND if samples.guide.is_cuda else CPU_BAND) // row)
        rows, columns = self.rows.places(samples.depth), self._columns(samples)
        for start in range(0, self.rows.n_out, count):
            band = slice(start, min(start + count, self.rows.n_out))
            yield band, _neighbours(rows, columns, band)

    def _columns(self, samples: WeightedSamples) -> list[tuple[Tensor, Tensor]]:
        """Return weights (B, 1, h + 2 margin, W) and values of the samples in each column of the window."""
        margins = (self.columns.margin,) * 2 + (self.rows.margin,) * 2
        weight = pad(samples.weight, margins)
        values = pad(torch.cat([samples.depth, samples.guide], dim=1), margins)
        whole = slice(0, self.columns.n_out)
        places = self.columns.places(weight)
        return [
            (place.pick(weight, 3, whole) * place.weight, place.pick(values, 3, whole)) for place in places
        ]


def _neighbours(
    rows: list[WindowPlace], columns: list[tuple[Tensor, Tensor]], band: slice
) -> Iterator[WeightedSamples]:
    """Yield one neighbour of every pixel at a time, its weight multiplied by that of its distance."""
    for place in rows:
        distance = place.weight[band, None]
        for weight, values in columns:
            found = place.pick(values, 2, band)
            yield WeightedSamples(found[:, :1], place.pick(weight, 2, band) * distance, found[:, 1:])


def likeness(guide: Tensor, other: Tensor, sigma: float) -> Tensor:
    """Return exp(-|I - J| / sigma), the mean over the channels; at least `FLOOR`.

    Args:
        guide: (B, C, h, w) I.
        other: (B, C, h, w) J.
        sigma: width of the weight.

    Returns:
        (B, 1, h, w).
    """
    distance = (guide - other).abs_().mean(dim=1, keepdim=True)
    # exp2, for torch splits exp among threads from 2^11 numbers on.
    return distance.mul_(-1 / (sigma * math.log(2))).exp2_().clamp_min_(FLOOR)


def filtered(
    frame: Frame, window: BilateralWindow, weigh: Callable[[slice, WeightedSamples], Tensor]
) -> Tensor:
    """Return the weighted mean of the samples around each pixel, band by band of its rows.

    Args:
        frame: whose samples are averaged.
        window: over the samples.
        weigh: from a band of rows and one neighbour of each of its pixels to the weight of that neighbour.

    Returns:
        (B, 1, H, W); the interpolation where no sample is in reach.
    """
    depth, _ = interpolate(frame)
    for band, neighbours in window.over(WeightedSamples.of(frame), maps=1):
        part = depth[:, :, band]
        weight, total = torch.zeros_like(part), torch.zeros_like(part)
        for near in neighbours:
            w = weigh(band, near)
            weight += w
            total.addcmul_(w, near.depth)
        part.copy_(torch.where(weight > 0, total / weight, part))
    return depth
