"""What every sensor model shares: its samples, its random numbers, its parameters."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Sampling
from primaldepth.core.settings import Count, Settings
from primaldepth.io import Kind
from primaldepth.sensors.degradations import fill_occlusions, reduced_size
from primaldepth.sensors.draws import Noise


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What a sensor gives for one batch; every map is (B, 1, h, w).

    Args:
        depth: of the sensor's kind; 0 where not valid.
        valid: True where the sensor measured.
        sigma: standard deviation of the noise in the depth's unit, as one who only has the samples knows
            it: never computed from the truth, so a network that reads it learns nothing it should not.
        confidence: in [0, 1], or None if the sensor gives none.
        amplitude: of the returned light, or None if the sensor gives none.
    """

    depth: Tensor
    valid: Tensor
    sigma: Tensor
    confidence: Tensor | None = None
    amplitude: Tensor | None = None


class Sensor(Settings):
    """A sensor model with its parameters: true depth in, samples out.

    Noise is drawn on the device of the generator and then moved to that of the depth. A CPU
    generator gives the same samples on every device; one on the depth's own device is the fast path.
    A released name never changes its samples: a better model gets a new version. `sampling` says whether a
    sample is the average over its footprint or the depth of the surface at the footprint's centre.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    sampling: ClassVar[Sampling] = "average"
    ranges: ClassVar[dict[str, tuple[float, float]]]

    scale: Count = 1

    def __call__(
        self,
        depth: Tensor,
        valid: Tensor | None = None,
        *,
        generator: torch.Generator,
        gain: Tensor | None = None,
        **light: Tensor | None,
    ) -> Samples:
        """Return the samples that this sensor measures of a batch of true depth maps.

        Args:
            depth: (B, 1, H, W) of the sensor's kind; H and W are multiples of `scale`.
            valid: (B, 1, H, W) where the truth is known; None: where it is finite and > 0.
            generator: decides all noise.
            gain: (B, 1, 1, 1) factor on the noise of each image, for training on many noise levels.
            light: what else the sensor can read of the scene, by the names that its `measure` has.

        Raises:
            InputError: a map has another shape or type, or a size that is no multiple of `scale`.
        """
        return self.measure(depth, known(depth, valid, self.scale), Noise(generator, gain), **light)

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise) -> Samples:
        """Return the samples of a batch whose shapes and types were checked: what every model has.

        Args:
            depth: (B, 1, H, W) of the sensor's kind.
            seen: (B, 1, H, W) where the truth may be read; elsewhere it can be anything.
            noise: makes all random numbers.

        Raises:
            NotImplementedError: the class has no model of its own.
        """
        raise NotImplementedError(f"sensor '{self.name}' has no method measure")

    @classmethod
    def draw(cls, generator: torch.Generator, **fixed: Any) -> Self:
        """Make a sensor with random parameters, each log-uniform between its `ranges`.

        Args:
            generator: best on the CPU, for the numbers become Python floats.
            fixed: parameters that are not drawn; those drawn do not depend on which are fixed.

        Returns:
            The sensor.

        Raises:
            InputError: a fixed parameter is unknown, or its value is wrong.
        """
        uniform = torch.rand(len(cls.ranges), generator=generator, device=generator.device).tolist()
        drawn = {
            name: math.exp((1 - u) * math.log(low) + u * math.log(high))
            for u, (name, (low, high)) in zip(uniform, cls.ranges.items(), strict=True)
        }
        return cls.parse({**drawn, **fixed}, f"sensor '{cls.name}'")


def known(depth: Tensor, valid: Tensor | None, scale: int) -> Tensor:
    """Return where the truth may be read: marked as valid (if a mask is given), finite and > 0.

    Args:
        depth: (B, 1, H, W).
        valid: (B, 1, H, W), or None.
        scale: pixels per sample, per side.

    Raises:
        InputError: a map has another shape or type, or a size that is no multiple of the scale.
    """
    if depth.ndim != 4 or depth.shape[1] != 1 or not depth.is_floating_point():
        raise InputError(
            "depth", f"{depth.dtype} of shape {tuple(depth.shape)}, expected floating point (B, 1, H, W)"
        )
    reduced_size((int(depth.shape[2]), int(depth.shape[3])), scale)
    usable = torch.isfinite(depth) & (depth > 0)
    if valid is None:
        return usable
    if valid.shape != depth.shape or valid.dtype != torch.bool:
        raise InputError(
            "valid", f"{valid.dtype} of shape {tuple(valid.shape)}, expected bool {tuple(depth.shape)}"
        )
    return usable & valid


def blocks(image: Tensor, scale: int) -> Tensor:
    """Return the pixels below each coarse pixel: (B, 1, h scale, w scale) -> (B, scale^2, h, w).

    Args:
        image: (B, 1, h scale, w scale).
        scale: pixels per sample, per side.
    """
    return torch.nn.functional.pixel_unshuffle(image, scale)


def filled_and_whole(depth: Tensor, seen: Tensor, scale: int) -> tuple[Tensor, Tensor]:
    """Return disparities with holes filled from behind, and True for samples without a hole below them.

    Args:
        depth: (B, 1, H, W) disparities.
        seen: (B, 1, H, W).
        scale: pixels per sample, per side.
    """
    filled = fill_occlusions(depth, seen)
    filled = torch.where(torch.isfinite(filled), filled, 0.0)  # an image without any known pixel
    return filled, blocks(seen.to(depth.dtype), scale).amin(dim=1, keepdim=True) > 0


def reduce_surface(depth: Tensor, valid: Tensor, scale: int, gap: float) -> tuple[Tensor, Tensor]:
    """Return inverse depth averaged over each block, and its mask; only the surface at the centre counts.

    1 / z is affine on a plane, so planes are kept. A pixel lies off the surface if its depth differs
    from the centre's by more than the factor 1 + gap; where the centre is not valid, nothing is.

    Args:
        depth: (B, 1, H, W).
        valid: (B, 1, H, W).
        scale: pixels per sample, per side.
        gap: relative difference of depth between two surfaces.
    """
    inverse = torch.where(valid, 1.0 / torch.where(valid, depth, 1.0), 0.0)
    if scale == 1:
        return inverse, valid
    q, inside = blocks(inverse, scale), blocks(valid.to(depth.dtype), scale) > 0
    middle = (scale // 2) * scale + scale // 2
    centre = q[:, middle : middle + 1]
    near = inside & (torch.maximum(q, centre) <= (1.0 + gap) * torch.minimum(q, centre))
    mean = torch.where(near, q, 0.0).sum(1, keepdim=True) / near.sum(1, keepdim=True).clamp_min(1)
    return mean, inside[:, middle : middle + 1]
