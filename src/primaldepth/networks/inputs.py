"""What a network reads, named and in the one order that the network, batches and exported files share."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.operators.sampling import MixedResample, PointSamples, Resample, SampleTerm, Taps

SIGMA_FLOOR = 1e-3
"""Noise that every sample has at least, in the network's unit (half the spread of the frame's depth).

The precision 1 / sigma^2 of a sample without noise would be infinite. With this floor the samples are still
reproduced to a thousandth of the spread, which is less than the solver leaves after 60 iterations.
"""

SAMPLE_NAMES = ("samples", "sample_sigma", "sample_trust")
"""Names of the maps of `SensorSamples` beside those of `NetworkInput`."""


class SensorSamples(NamedTuple):
    """The samples of a sensor on the sensor's own grid, and how they come from the image's.

    A tuple, because the wrappers for several processes take tuples apart and not dataclasses.

    Args:
        A: sampling operator, (1, H, W) -> (1, h, w).
        depth: (B, 1, h, w) normalised; any finite value in holes.
        sigma: (B, 1, h, w) standard deviation of the noise, normalised.
        trust: (B, 1, h, w) confidence from 0 to 1; 0 in holes.
    """

    A: Resample | PointSamples | MixedResample
    depth: Tensor
    sigma: Tensor
    trust: Tensor

    def each(self, change: Callable[[Tensor], Tensor]) -> "SensorSamples":
        """Return the same samples with every map changed.

        Args:
            change: applied to each map.
        """
        return SensorSamples(self.A, change(self.depth), change(self.sigma), change(self.trust))

    def weighed(self, omega: Tensor | None) -> SampleTerm:
        """Return the sample term's data: precisions omega trust / (sigma^2 + floor^2), omega 1 for None.

        Args:
            omega: (B, 1, h, w) the network's trust in each sample.
        """
        precision = self.trust / (self.sigma.square() + SIGMA_FLOOR**2)
        lam = precision if omega is None else omega * precision
        if not isinstance(self.A, MixedResample):
            return SampleTerm(self.A, self.depth, lam)
        norms = self.A.norms  # the same term, with operators whose norms are alike
        return SampleTerm(self.A.unit(), self.depth / norms, lam * norms.square())

    def on_larger_maps(self, size: tuple[int, int], taps: Taps) -> "SensorSamples":
        """Return the same samples on maps of size (h, w) with holes to the right and below.

        Args:
            size: at least that of the maps.
            taps: places for the weights of the operators, see `MixedResample`.

        Raises:
            ValueError: the samples are values at points.
        """
        A = self.A
        if isinstance(A, Resample):
            A = MixedResample.interleaved([A], len(self.depth), self.depth)
        if not isinstance(A, MixedResample):
            raise ValueError("samples at points have no larger map")
        return self.each(lambda image: _larger(image, size))._replace(A=A.on_larger_maps(size, taps))

    def part(self, share: slice) -> "SensorSamples":
        """Return the samples of some images of the batch.

        Args:
            share: which images.
        """
        A = self.A.part(share) if isinstance(self.A, MixedResample) else self.A
        return self.each(lambda image: image[share])._replace(A=A)


def interleaved(parts: Sequence[SensorSamples]) -> SensorSamples:
    """Return one batch in which the images of parts of equal length take turns.

    Where the parts have operators of their own, smaller maps get holes to the right and below.

    Args:
        parts: with as many images each.

    Raises:
        ValueError: operators differ, and some of them are no reductions of grids.
    """
    first = parts[0].A
    maps = [part[1:] for part in parts]
    if all(part.A is first for part in parts):
        return SensorSamples(first, *(turns(same) for same in zip(*maps, strict=True)))
    operators = [part.A for part in parts if isinstance(part.A, Resample)]
    if len(operators) < len(parts):
        raise ValueError("only reductions of grids can be mixed in a batch")
    A = MixedResample.interleaved(operators, len(parts[0].depth), parts[0].depth)
    size = A.out_shape[1:]
    return SensorSamples(
        A, *(turns([_larger(each, size) for each in same]) for same in zip(*maps, strict=True))
    )


def turns(maps: Sequence[Tensor]) -> Tensor:
    """Return one batch of several in which they take turns.

    Args:
        maps: (B, C, H, W) each.
    """
    return torch.stack(list(maps), dim=1).flatten(0, 1)


def _larger(image: Tensor, size: tuple[int, int]) -> Tensor:
    return pad(image, (0, size[1] - image.shape[3], 0, size[0] - image.shape[2]))


class NetworkInput(NamedTuple):
    """All that a network reads of a batch of windows.

    Args:
        depth: (B, 1, H, W) interpolated depth, normalised.
        sigma: (B, 1, H, W) its noise, normalised.
        trust: (B, 1, H, W) trust in it, 0 in holes.
        guide: (B, 1 or 3, H, W) intensity or colours in [0, 1].
        ratio: (B, 1, 1, 1) log2 of the guide's size over that of the samples, per side; None for 1:1.
        samples: of the sample term, or None; read by networks with `samples` in their settings only.
    """

    depth: Tensor
    sigma: Tensor
    trust: Tensor
    guide: Tensor
    ratio: Tensor | None = None
    samples: SensorSamples | None = None

    def each(self, change: Callable[[Tensor], Tensor]) -> "NetworkInput":
        """Return the same input with every tensor changed.

        Args:
            change: applied to each tensor.
        """
        depth, sigma, trust, guide = (change(image) for image in self[:4])
        ratio = None if self.ratio is None else change(self.ratio)
        samples = None if self.samples is None else self.samples.each(change)
        return NetworkInput(depth, sigma, trust, guide, ratio, samples)

    def part(self, share: slice) -> "NetworkInput":
        """Return some images of the batch.

        Args:
            share: which images.
        """
        samples = None if self.samples is None else self.samples.part(share)
        return self.each(lambda image: image[share])._replace(samples=samples)

    def named(self) -> dict[str, Tensor]:
        """Return all tensors by name in the order of the fields, those of the samples last."""
        images = dict(zip(self._fields[:4], self[:4], strict=True))
        ratio = {} if self.ratio is None else {"ratio": self.ratio}
        measured = {} if self.samples is None else dict(zip(SAMPLE_NAMES, self.samples[1:], strict=True))
        return images | ratio | measured

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors in the order of `named`."""
        return tuple(self.named().values())

    @classmethod
    def interleaved(cls, parts: Sequence["NetworkInput"]) -> "NetworkInput":
        """Return one batch in which the images of parts of equal length take turns.

        Args:
            parts: with as many images each.
        """
        depth, sigma, trust, guide = (turns(same) for same in zip(*(part[:4] for part in parts), strict=True))
        ratios = [part.ratio for part in parts if part.ratio is not None]
        measured = [part.samples for part in parts if part.samples is not None]
        ratio, samples = turns(ratios) if ratios else None, interleaved(measured) if measured else None
        return cls(depth, sigma, trust, guide, ratio, samples)
