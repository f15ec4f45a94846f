"""A training step on a GPU, played back as a CUDA graph: one call starts all its kernels."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from primaldepth.methods.network_inputs import sampling_operator
from primaldepth.operators.sampling import MixedResample, Taps, taps_of
from primaldepth.training.batches import TrainingBatch
from primaldepth.training.recipe import Recipe, StageRecipe

WARM_UP = 3  # steps that are not recorded: kernels are compiled and chosen, the optimiser gets its memory

Update = Callable[[TrainingBatch], tuple[Tensor, ...]]


class StepRecorder:
    """Makes steps of training: the first ones kernel by kernel, all others by playing back a recording.

    A recording reads and writes the memory that it was made with, so batches are copied to where the recorded
    one lay. A batch of another shape is computed without the recording.

    Args:
        update: makes a step of the optimiser from a batch, without waiting for the device; returns tensors.
        to_fixed_shapes: gives every batch of a stage the same shapes.
    """

    def __init__(self, update: Update, to_fixed_shapes: Callable[[TrainingBatch], TrainingBatch]) -> None:
        self._update, self._to_fixed_shapes, self._steps = update, to_fixed_shapes, 0
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []
        self._outputs: tuple[Tensor, ...] = ()

    def __call__(self, batch: TrainingBatch) -> tuple[Tensor, ...]:
        """Make a step.

        Args:
            batch: of any shape.

        Returns:
            What `update` returned; overwritten by the next step.
        """
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            found = self._step(self._to_fixed_shapes(batch))
        here.wait_stream(self._stream)
        return found

    def _step(self, batch: TrainingBatch) -> tuple[Tensor, ...]:
        self._steps += 1
        if self._graph is None and self._steps > WARM_UP:
            self._record(batch)
        tensors = list(_tensors(batch))
        if self._graph is None or [t.shape for t in tensors] != [t.shape for t in self._inputs]:
            return self._update(batch)
        for mine, given in zip(self._inputs, tensors, strict=True):
            mine.copy_(given)
        self._graph.replay()
        return self._outputs

    def _record(self, batch: TrainingBatch) -> None:
        """Record the step of a batch without making it; playing back reads the copy of the batch."""
        batch = batch.copied()
        self._inputs = list(_tensors(batch))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            self._outputs = self._update(batch)
        self._graph = graph


def _tensors(batch: TrainingBatch) -> Iterator[Tensor]:
    """Yield everything that a step reads of a batch."""
    yield from batch.tensors().values()
    samples = batch.maps.samples
    if samples is not None and isinstance(samples.A, MixedResample):
        yield from samples.A.matrices


def with_fixed_shapes(recipe: Recipe, stage: StageRecipe) -> Callable[[TrainingBatch], TrainingBatch]:
    """Return the function that gives all batches of a stage the same shapes.

    Samples of sensors with different scales lie on maps of different sizes: the largest serves all. A stage
    that trains the convolutions alone reads no samples.

    Args:
        recipe: for the network and the scales of its sensors.
        stage: of the training.
    """
    if stage.part == "fcn" or not recipe.net.samples:
        return lambda batch: batch.with_samples(None)
    size, taps = _room_for_samples(recipe, stage.patch)

    def fixed(batch: TrainingBatch) -> TrainingBatch:
        samples = batch.maps.samples
        return batch if samples is None else batch.with_samples(samples.on_larger_maps(size, taps))

    return fixed


def _room_for_samples(recipe: Recipe, patch: int) -> tuple[tuple[int, int], Taps]:
    """Return the size of the largest map of samples, and the places that weights of any operator need."""
    sides = {patch // scale for scale in recipe.scales}
    operators = [
        sampling_operator((patch, patch), (side, side), sampling)
        for side in sides
        for sampling in ("average", "point")
    ]
    return (max(sides), max(sides)), taps_of(operators)
