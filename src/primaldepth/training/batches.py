"""Batches: patches of scenes, seen by a sensor, as the network gets them; each fixed by its seed alone."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import torch
from torch import Tensor

from primaldepth.core.frame import Sampling
from primaldepth.core.seeds import derive_seed
from primaldepth.data.patches import Patches, Scenes
from primaldepth.methods.network_inputs import UNKNOWN_SAMPLING, NetworkInputs, Window
from primaldepth.networks.inputs import NetworkInput, SensorSamples, turns
from primaldepth.networks.normalisation import Scaling
from primaldepth.operators.sampling import MixedResample
from primaldepth.sensors import sensor, sensor_class
from primaldepth.sensors.base import Sensor
from primaldepth.sensors.drawn_holes import holes
from primaldepth.sensors.draws import uniform
from primaldepth.sensors.false_samples import with_false_samples
from primaldepth.training.recipe import DataRecipe, Mix, Recipe

CENTIMETRE = 0.01  # errors of metric depth are counted in these, those of disparity in pixels
TOGETHER = 4  # steps whose batches are drawn in one go


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """Inputs and truth of one training step, (B, 1, S, S) on the network's grid.

    Args:
        maps: what the network reads.
        truth: in the network's unit.
        valid: where the truth counts.
        unit: (B, 1, 1, 1) factor from the network's unit to that of the loss.
    """

    maps: NetworkInput
    truth: Tensor
    valid: Tensor
    unit: Tensor

    def part(self, share: slice) -> "TrainingBatch":
        """Return some images of the batch."""
        maps = self.maps.part(share)
        return TrainingBatch(maps, self.truth[share], self.valid[share], self.unit[share])

    def with_samples(self, samples: SensorSamples | None) -> "TrainingBatch":
        """Return the batch with other samples for the sample term, or with none."""
        return replace(self, maps=self.maps._replace(samples=samples))

    def copied(self) -> "TrainingBatch":
        """Return the same batch in memory of its own."""
        maps = self.maps.each(torch.clone)
        samples = maps.samples
        if samples is not None and isinstance(samples.A, MixedResample):
            maps = maps._replace(samples=samples._replace(A=samples.A.copied()))
        return TrainingBatch(maps, self.truth.clone(), self.valid.clone(), self.unit.clone())

    def used_on(self, stream: torch.cuda.Stream) -> None:
        """Keep the batch's memory until what the stream has to do with it is done."""
        samples = self.maps.samples
        own = samples.A.matrices if samples is not None and isinstance(samples.A, MixedResample) else ()
        for tensor in (*self.tensors().values(), *own):
            tensor.record_stream(stream)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name, to be saved."""
        return {**self.maps.named(), "truth": self.truth, "valid": self.valid, "unit": self.unit}


class StageBatches:
    """The batches of one stage, each fixed by the recipe's seed and the number of its step.

    Those of a few steps are drawn together: a GPU waits less for many small operations. There they are drawn
    ahead, on a stream of their own, while the steps before them are computed.

    Args:
        scenes: to draw from.
        recipe: of the run.
        stage: index of the stage.
        share: index of this process and number of processes; each has an equal share of every batch.
    """

    def __init__(self, scenes: Scenes, recipe: Recipe, stage: int, share: tuple[int, int] = (0, 1)) -> None:
        self._scenes, self._recipe, self._stage, self._share = scenes, recipe, stage, share
        self._drawn: dict[int, _DrawnGroup] = {}
        self._stream: torch.cuda.Stream | None = None
        if scenes.depth.is_cuda:
            # Of high priority: its many small kernels would else queue behind the large ones of the steps.
            self._stream = torch.cuda.Stream(scenes.depth.device, priority=-1)  # type: ignore[no-untyped-call]
            self._stream.wait_stream(torch.cuda.current_stream(scenes.depth.device))

    def batches(self, step: int) -> Iterator[TrainingBatch]:
        """Yield this process's share of each part of a step's batch."""
        rank, processes = self._share
        for batch in self.whole(step):
            own = len(batch.truth) // processes
            yield batch.part(slice(rank * own, (rank + 1) * own))

    def whole(self, step: int) -> Iterator[TrainingBatch]:
        """Yield each part of a step's batch, the shares of all processes together."""
        group, place = divmod(step, TOGETHER)
        if group not in self._drawn:
            self._drawn = {group: self._group(group)}
        for batch in self._drawn[group].batches():
            own = len(batch.truth) // TOGETHER
            yield batch.part(slice(place * own, (place + 1) * own))
        if place == TOGETHER - 1:
            del self._drawn[group]
            if self._stream is not None:  # the device is busy with these steps
                self._drawn[group + 1] = self._group(group + 1)

    def _group(self, group: int) -> "_DrawnGroup":
        recipe, stage = self._recipe, self._recipe.stages[self._stage]
        count = TOGETHER * (stage.batch // recipe.accumulate)
        places = [(self._stage, group, micro) for micro in range(recipe.accumulate)]
        with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            found = [draw_batch(self._scenes, recipe, count, stage.patch, place) for place in places]
        return _DrawnGroup(found, None if self._stream is None else self._stream.record_event())


@dataclass(frozen=True, slots=True)
class _DrawnGroup:
    """The batches of a few steps.

    Args:
        parts: one for each part of a step.
        done: event on the stream where they were drawn, or None on a CPU.
    """

    parts: list[TrainingBatch]
    done: torch.cuda.Event | None = None

    def batches(self) -> list[TrainingBatch]:
        """Return them for use on the current stream."""
        if self.done is not None:
            here = torch.cuda.current_stream()
            here.wait_event(self.done)
            for part in self.parts:
                part.used_on(here)
        return self.parts


def draw_batch(
    scenes: Scenes, recipe: Recipe, count: int, patch: int, place: tuple[int, ...]
) -> TrainingBatch:
    """Return the batch at `place` (stage, step, ...) of a run: the same in every process."""
    blend = recipe.data.blend
    if blend == 1:
        return _drawn(scenes, recipe, count, patch, place)
    parts = [_drawn(scenes, recipe, count // blend, patch, (*place, part)) for part in range(blend)]
    return _interleaved(parts)


def _interleaved(parts: list[TrainingBatch]) -> TrainingBatch:
    """Return one batch in which the parts take turns, so that a slice of it has some of each."""
    truth, valid, unit = (
        turns([getattr(part, name) for part in parts]) for name in ("truth", "valid", "unit")
    )
    return TrainingBatch(NetworkInput.interleaved([part.maps for part in parts]), truth, valid, unit)


def _drawn(scenes: Scenes, recipe: Recipe, count: int, patch: int, place: tuple[int, ...]) -> TrainingBatch:
    """Return a batch of one sensor and one scale."""
    device = scenes.depth.device
    generator = torch.Generator(device).manual_seed(derive_seed("batch", recipe.seed, *place))
    mix, scale = _choice(recipe, place)
    camera = _camera(recipe, mix, scale, place)
    kind: Literal["disparity", "z"] = "disparity" if camera.kind == "disparity" else "z"
    colours = recipe.net.colours
    size = patch // scale * scale
    patches = scenes.draw(count, size, generator, recipe.data, kind, colours)
    sampling = _sampling(recipe, camera, place) if recipe.net.samples else None
    return observed(patches, camera, recipe.data, generator, mix, sampling)


def _choice(recipe: Recipe, place: tuple[int, ...]) -> tuple[Mix, int]:
    """Return the sensor and the scale of the batch at a place."""
    mixture, scales = recipe.data.mixture, recipe.scales
    if len(mixture) == len(scales) == 1:
        return mixture[0], scales[0]
    random = Random(derive_seed("choice", recipe.seed, *place))  # noqa: S311
    mix = random.choices(mixture, [mix.share for mix in mixture])[0]
    return mix, random.choice(mix.scale or scales)


def _camera(recipe: Recipe, mix: Mix, scale: int, place: tuple[int, ...]) -> Sensor:
    """Return the sensor at a place, with its defaults or with parameters that are drawn for the place."""
    if not mix.drawn:
        return sensor(mix.sensor, scale=scale)
    random = torch.Generator().manual_seed(derive_seed("camera", recipe.seed, *place))
    return sensor_class(mix.sensor).draw(random, scale=scale)


def _sampling(recipe: Recipe, camera: Sensor, place: tuple[int, ...]) -> Sampling:
    """Return how the samples at a place are read: as they were made, or as where nobody says it."""
    random = Random(derive_seed("sampling", recipe.seed, *place))  # noqa: S311
    return UNKNOWN_SAMPLING if random.random() < recipe.data.unsaid else camera.sampling


def observed(
    patches: Patches,
    camera: Sensor,
    data: DataRecipe,
    generator: torch.Generator,
    mix: Mix,
    sampling: Sampling | None = None,
) -> TrainingBatch:
    """Return samples of the patches, normalised as their scenes are, up to `data.jitter`.

    Args:
        sampling: how the sample term reads the samples; None for networks without it.
    """
    u = torch.rand((3, len(patches.depth), 1, 1, 1), generator=generator, device=generator.device)
    low, high = mix.noise
    gain = low * (high / low) ** u[0] if low != high else torch.full_like(u[0], low)
    light = {"amplitude": _amplitude(patches, generator)} if mix.albedo else {}
    seen = camera(patches.depth, patches.valid, generator=generator, gain=gain, **light)
    depth, valid = seen.depth, seen.valid
    if data.holes:
        valid = valid & ~holes(valid, data.holes, generator)
    if mix.false:
        depth = with_false_samples(depth, valid, mix.false, generator)
    spread = patches.spread * torch.exp(data.jitter * (2.0 * u[1] - 1.0))
    scaling = Scaling(patches.centre + data.jitter * spread * (2.0 * u[2] - 1.0), spread)
    size = (int(patches.depth.shape[2]), int(patches.depth.shape[3]))
    sigma = torch.where(valid, seen.sigma / spread, 0.0)
    if mix.plain:
        sigma = _partly_plain(sigma, valid, mix.plain, generator)
    confidence = seen.confidence
    if confidence is not None and mix.silent:
        told = uniform(u[0], generator) >= mix.silent
        confidence = torch.where(told, confidence, valid.to(confidence.dtype))
    inputs = NetworkInputs.made(depth, valid, sigma, confidence, scaling, size, sampling)
    if sampling is not None:
        inputs = inputs.with_trusted_borders(valid)  # as frames are read
    maps = inputs.window(Window(0, size[0], 0, size[1]), patches.guide, int(patches.guide.shape[1]))
    unit = mix.weight * (spread if camera.kind == "disparity" else spread / CENTIMETRE)
    unit = unit * camera.scale**-data.balance
    return TrainingBatch(maps, scaling.apply(patches.depth), patches.valid, unit)


def _amplitude(patches: Patches, generator: torch.Generator) -> Tensor:
    """Return the amplitude g^e / r^2 of surfaces as bright as the guide g, with e from 1/2 to 2."""
    exponent = 0.5 * 4.0 ** uniform(patches.centre, generator)
    albedo = patches.guide.mean(1, keepdim=True).clamp_min(0.01) ** exponent
    return albedo / torch.where(patches.valid, patches.depth, 1.0).square()


def _partly_plain(sigma: Tensor, valid: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Return sigma; in a share of the images its root mean square stands on all samples."""
    chosen = uniform(sigma.new_empty((len(sigma), 1, 1, 1)), generator) < share
    count = valid.sum((2, 3), keepdim=True).clamp_min(1)
    level = (sigma.square().sum((2, 3), keepdim=True) / count).sqrt()
    return torch.where(chosen & valid, level, sigma)
