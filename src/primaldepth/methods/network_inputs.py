"""What a network reads of a frame: windows of the guide's grid, and the samples that lie in them."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.core.frame import Frame, Sampling
from primaldepth.core.trust import sample_trust
from primaldepth.measurement.residual import sampling_kernel
from primaldepth.methods.holes import fill_holes, grow_into_holes
from primaldepth.networks.inputs import NetworkInput, SensorSamples
from primaldepth.networks.normalisation import Scaling, relative_sigma
from primaldepth.operators.sampling import Resample, resample

# Distance from the border of a hole, in samples, up to which its fill is trusted like a measurement, and from
# which on it is not trusted. Chosen by real-holdout, aligned-holes and cut-outs together.
TRUSTED_RING, UNTRUSTED_RING = 2, 6
UNKNOWN_SAMPLING: Sampling = "point"  # does less harm than "average" where it is wrong, see docs/networks.md


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of the guide's grid: rows top..bottom, columns left..right."""

    top: int
    bottom: int
    left: int
    right: int

    def grown(self, margin: int, size: tuple[int, int], stride: int = 1) -> "Window":
        """Return the window with a margin on every side up to a multiple of the stride, cut at the border.

        Args:
            margin: pixels.
            size: (H, W) of the frame.
            stride: of the corners.
        """
        return Window(
            max(0, (self.top - margin) // stride * stride),
            min(size[0], -(-(self.bottom + margin) // stride) * stride),
            max(0, (self.left - margin) // stride * stride),
            min(size[1], -(-(self.right + margin) // stride) * stride),
        )

    def covers(self, size: tuple[int, int]) -> bool:
        """Return whether it is the whole frame of that size."""
        return (self.top, self.bottom, self.left, self.right) == (0, size[0], 0, size[1])

    def cut(self, image: Tensor) -> Tensor:
        """Return the part of an image that the window covers.

        Args:
            image: (B, C, H, W).
        """
        return image[:, :, self.top : self.bottom, self.left : self.right]

    def inside(self, outer: "Window") -> "Window":
        """Return the same rectangle in the coordinates of `outer`.

        Args:
            outer: holds it.
        """
        dy, dx = outer.top, outer.left
        return Window(self.top - dy, self.bottom - dy, self.left - dx, self.right - dx)


def tiles(size: tuple[int, int], tile: int) -> Iterator[Window]:
    """Return windows of at most tile x tile that cover the frame, row by row.

    Args:
        size: (H, W) of the frame.
        tile: side of a window.
    """
    for top in range(0, size[0], tile):
        for left in range(0, size[1], tile):
            yield Window(top, min(size[0], top + tile), left, min(size[1], left + tile))


@dataclass(frozen=True, slots=True)
class NetworkInputs:
    """The frame in the network's unit, still at low resolution, so that any window can be made from it.

    Args:
        measured: what the sample term reads, on the grid the samples were given on; or None.
    """

    depth: Tensor
    sigma: Tensor
    trust: Tensor
    scaling: Scaling
    enlarge: Resample
    measured: SensorSamples | None = None

    @classmethod
    def of(cls, frame: Frame, samples: Frame | None = None) -> "NetworkInputs":
        """Normalise a frame by its samples.

        Args:
            frame: as it was given.
            samples: the same with lone samples gathered on a coarser grid; None where they are not. The
                network sees the gathered ones, the sample term those of the frame where they fall.

        Returns:
            The frame's maps, on the grid of the samples.
        """
        lone = samples is not None and samples is not frame
        seen = frame if samples is None else samples
        scaling = Scaling.of(seen)
        sampling = frame.sampling or UNKNOWN_SAMPLING
        made = cls.made(
            seen.depth,
            seen.valid,
            relative_sigma(seen, scaling),
            seen.confidence,
            scaling,
            frame.high_size,
            None if lone else sampling,
        )
        if not lone:
            return made
        A = sampling_operator(frame.high_size, frame.low_size, sampling)
        depth = torch.where(frame.valid, scaling.apply(frame.depth), 0.0)
        sigma = relative_sigma(frame, scaling)
        return replace(made, measured=SensorSamples(A, depth, sigma, frame.trust))

    def with_trusted_borders(self, valid: Tensor) -> "NetworkInputs":
        """Return the same with measured surfaces continued into holes, and trusted there.

        Trust that falls off across the border of a hole takes weight from the samples beside it, and the
        networks have learned from their training scenes that background lies beside a hole. In the frames of
        real cameras it is as often the foreground that casts the hole, and thin foreground was lost.
        The sample term stays as it is: it knows which samples were measured.

        Args:
            valid: (B, 1, h, w) where the sensor measured.
        """
        if bool(valid.all()):
            return self
        maps = torch.cat([self.depth, self.sigma, self.trust], dim=1)
        grown, ring = grow_into_holes(maps, valid, UNTRUSTED_RING - 1)
        depth, sigma, trust = grown[:, :1], grown[:, 1:2], grown[:, 2:]
        share = ((UNTRUSTED_RING - ring) / (UNTRUSTED_RING - TRUSTED_RING)).clamp(0.0, 1.0)
        return replace(self, depth=depth, sigma=sigma, trust=trust * share)

    @classmethod
    def made(
        cls,
        depth: Tensor,
        valid: Tensor,
        sigma: Tensor,
        confidence: Tensor | None,
        scaling: Scaling,
        size: tuple[int, int],
        sampling: Sampling | None = None,
    ) -> "NetworkInputs":
        """Fill holes in depth and noise, without trust in them.

        Args:
            depth: (B, 1, h, w) in its own unit.
            valid: (B, 1, h, w).
            sigma: (B, 1, h, w) noise in the network's unit.
            confidence: (B, 1, h, w), or None.
            scaling: of the depth.
            size: (H, W) of the guide.
            sampling: how the samples come from the image; None leaves them out of the sample term.

        Returns:
            The maps, on the grid of the samples.
        """
        trust = sample_trust(valid, confidence, depth)
        scaled = torch.where(valid, scaling.apply(depth), 0.0)
        both = fill_holes(torch.cat([scaled, sigma], dim=1), valid)
        low = (int(depth.shape[2]), int(depth.shape[3]))
        enlarge, measured = Resample(low, size, "bilinear"), None
        if sampling is not None:
            measured = SensorSamples(sampling_operator(size, low, sampling), both[:, :1], both[:, 1:], trust)
        return cls(both[:, :1], both[:, 1:], trust, scaling, enlarge, measured)

    @property
    def ratio(self) -> Tensor:
        """(B, 1, 1, 1) log2 of the size of the guide over that of the samples, per side."""
        _, low_y, low_x = self.enlarge.in_shape
        _, high_y, high_x = self.enlarge.out_shape
        level = 0.5 * math.log2(high_y * high_x / (low_y * low_x))
        return self.depth.new_full((self.depth.shape[0], 1, 1, 1), level)

    def window(self, part: Window, guide: Tensor, colours: int = 1) -> NetworkInput:
        """Return what a network reads of one window, with the guide as intensity or of `colours` channels.

        Args:
            part: rectangle of the guide's grid.
            guide: (B, C, H, W) of the whole frame.
            colours: channels that the network reads, 1 or 3.
        """
        depth, sigma, trust = self._enlarged(part).chunk(3, dim=1)
        seen = part.cut(guide)
        seen = seen.mean(dim=1, keepdim=True) if colours == 1 else seen.expand(-1, colours, -1, -1)
        return NetworkInput(depth, sigma, trust, seen, self.ratio, self._measured_in(part))

    def _enlarged(self, part: Window) -> Tensor:
        """Return (B, 3, rows, columns): depth, noise and trust on the guide's grid."""
        maps, size = torch.cat([self.depth, self.sigma, self.trust], dim=1), self.enlarge.out_shape[1:]
        if part.covers(size):
            return resample(maps, size, "bilinear")
        return self.enlarge.window(slice(part.top, part.bottom), slice(part.left, part.right))(maps)

    def _measured_in(self, part: Window) -> SensorSamples | None:
        """Return the samples that are made of pixels of the window alone; None where there are none."""
        if self.measured is None or part.covers(self.enlarge.out_shape[1:]):
            return self.measured
        if not isinstance(self.measured.A, Resample):
            raise ValueError("samples at points cannot be cut into windows")
        A, (rows, columns) = _restricted(self.measured.A, part)
        if 0 in A.out_shape:
            return None
        return self.measured.each(lambda image: image[:, :, rows, columns])._replace(A=A)


# Operators are kept: a recording of a network's kernels holds for the operator it was made with.
@functools.lru_cache(maxsize=16)
def sampling_operator(high: tuple[int, int], low: tuple[int, int], sampling: Sampling) -> Resample:
    """Return the operator from an image to its samples: a mean over each sample's cell, or values at points.

    Args:
        high: (H, W) of the image.
        low: (h, w) of the samples.
        sampling: "average" or "point", see `sampling_kernel`.
    """
    return Resample(high, low, sampling_kernel(high, low, sampling))


@functools.lru_cache(maxsize=16)
def _restricted(A: Resample, part: Window) -> tuple[Resample, tuple[slice, slice]]:
    return A.restricted(slice(part.top, part.bottom), slice(part.left, part.right))


@functools.lru_cache(maxsize=16)
def _turned_operator(A: Resample, edge: tuple[int, int], turns: int, flip: bool) -> Resample:
    return A.padded(*edge).turned(turns, flip)


def turned_input(maps: NetworkInput, edge: tuple[int, int], turns: int, flip: bool) -> NetworkInput:
    """Return the input turned by `rot90(turns)` and, with `flip`, mirrored left to right.

    Args:
        maps: of a window.
        edge: rows below and columns to the right by which the border is repeated before.
        turns: quarter turns.
        flip: whether to mirror.
    """
    below, right = edge
    images = [turned(pad(image, (0, right, 0, below), mode="replicate"), turns, flip) for image in maps[:4]]
    samples = maps.samples
    if samples is not None and isinstance(samples.A, Resample):
        A = _turned_operator(samples.A, edge, turns, flip)
        samples = samples.each(lambda image: turned(image, turns, flip))._replace(A=A)
    return NetworkInput(images[0], images[1], images[2], images[3], maps.ratio, samples)


def turned(image: Tensor, turns: int, flip: bool) -> Tensor:
    """Return the image turned by quarter turns and then, with `flip`, mirrored left to right.

    Args:
        image: (B, C, H, W).
        turns: quarter turns.
        flip: whether to mirror.
    """
    found = image.rot90(turns, (2, 3))
    return (found.flip(3) if flip else found).contiguous()


def turned_back(image: Tensor, turns: int, flip: bool) -> Tensor:
    """Return an image as it was before `turned`.

    Args:
        image: (B, C, H, W).
        turns: as of `turned`.
        flip: as of `turned`.
    """
    return (image.flip(3) if flip else image).rot90(-turns, (2, 3))
