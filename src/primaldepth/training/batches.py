"""Batches: patches of scenes, seen by a sensor, as the network gets them; each fixed by its seed alone."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from primaldepth.core.seeds import derive_seed
from primaldepth.data.patches import Patches, Scenes
from primaldepth.data.sensors import sensor
from primaldepth.data.sensors.base import Sensor
from primaldepth.methods.network import NetworkInputs, Window
from primaldepth.networks.normalisation import Scaling
from primaldepth.training.recipe import DataRecipe, Recipe

CENTIMETRE = 0.01  # errors of metric depth are counted in these, those of disparity in pixels


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a step needs, (B, 1, S, S) on the network's grid.

    Args:
        maps: interpolated depth, noise, trust, intensity: the network's four inputs.
        truth: in the network's unit.
        valid: where the truth counts.
        unit: (B, 1, 1, 1) factor from the network's unit to that of the loss.
    """

    maps: tuple[Tensor, Tensor, Tensor, Tensor]
    truth: Tensor
    valid: Tensor
    unit: Tensor

    def part(self, share: slice) -> "Batch":
        """Some images of the batch."""
        depth, sigma, trust, guide = (image[share] for image in self.maps)
        return Batch((depth, sigma, trust, guide), self.truth[share], self.valid[share], self.unit[share])

    def tensors(self) -> dict[str, Tensor]:
        """By name, to be saved."""
        names = ("depth", "sigma", "trust", "guide")
        maps = dict(zip(names, self.maps, strict=True))
        return {**maps, "truth": self.truth, "valid": self.valid, "unit": self.unit}


def draw_batch(scenes: Scenes, recipe: Recipe, count: int, patch: int, place: tuple[int, ...]) -> Batch:
    """The batch at `place` (stage, step, ...) of a run: the same whoever draws it."""
    device = scenes.depth.device
    generator = torch.Generator(device).manual_seed(derive_seed("batch", recipe.seed, *place))
    camera = sensor(recipe.data.sensor, scale=recipe.scale)
    kind: Literal["disparity", "z"] = "disparity" if camera.kind == "disparity" else "z"
    patches = scenes.draw(count, patch, generator, recipe.data.variation, kind)
    return observed(patches, camera, recipe.data, generator)


def observed(patches: Patches, camera: Sensor, data: DataRecipe, generator: torch.Generator) -> Batch:
    """Samples of the patches, normalised as their scenes are, up to `data.jitter`."""
    u = torch.rand((3, len(patches.depth), 1, 1, 1), generator=generator, device=generator.device)
    low, high = data.noise
    gain = low * (high / low) ** u[0] if low != high else torch.full_like(u[0], low)
    samples = camera(patches.depth, patches.valid, generator=generator, gain=gain)
    spread = patches.spread * torch.exp(data.jitter * (2.0 * u[1] - 1.0))
    scaling = Scaling(patches.centre + data.jitter * spread * (2.0 * u[2] - 1.0), spread)
    size = (int(patches.depth.shape[2]), int(patches.depth.shape[3]))
    sigma = torch.where(samples.valid, samples.sigma / spread, 0.0)
    inputs = NetworkInputs.made(samples.depth, samples.valid, sigma, samples.confidence, scaling, size)
    depth, noise, trust, guide = inputs.window(Window(0, size[0], 0, size[1]), patches.guide)
    unit = spread if camera.kind == "disparity" else spread / CENTIMETRE
    return Batch((depth, noise, trust, guide), scaling.apply(patches.depth), patches.valid, unit)
