"""Run many frames, one by one or on a cluster; keep each finished result, and go on after a failure."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.frame import Method
from primaldepth.geometry.cameras import Cameras
from primaldepth.io.atomic import remove_leftovers
from primaldepth.io.files import MAX_TEXT, read_file
from primaldepth.io.locks import held
from primaldepth.methods import create
from primaldepth.methods.identity import method_identity
from primaldepth.methods.temporal import TemporalSettings
from primaldepth.pipeline.frame_report import Report, report_of
from primaldepth.pipeline.ledger import Ledger
from primaldepth.pipeline.load import Inputs, load
from primaldepth.pipeline.on_ray import run_on_ray
from primaldepth.pipeline.outcome import Outcome, compute
from primaldepth.pipeline.output_checks import check_inputs
from primaldepth.pipeline.outputs import OUTPUTS, write_outputs
from primaldepth.pipeline.request import Item, Request
from primaldepth.pipeline.sequence_ledger import MEMORY_NAME, SequenceLedger
from primaldepth.pipeline.warnings import Advice


@dataclass(frozen=True, slots=True)
class FinishedFrame:
    """How one frame ended: with a report, with one of an earlier run, or with an error.

    Args:
        notes: what was assumed to make it.
    """

    item: Item
    report: Report | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """Return plain values: files, and the report or the error."""
        if self.kept:
            return {**self.kept, "kept": True}
        if self.report is None:
            return {"depth": str(self.item.depth), "error": self.message}
        found = self.report.json()
        del found["method"]
        found["seconds"] = round(self.report.seconds, 3)
        files = {"depth": self.item.depth, "guide": self.item.guide, **self.item.outputs}
        return {name: str(path) for name, path in files.items()} | found

    @property
    def message(self) -> str:
        """The error as one line that names the frame."""
        named = getattr(self.error, "subject", "") == str(self.item.depth)
        return str(self.error) if named else f"{self.item.depth}: {self.error}"


@dataclass(frozen=True, slots=True)
class Batch:
    """The frames of one call, which share a request.

    Args:
        advice: words of the front end for what can be chosen.
        ledger: of what is finished; None for a single frame, whose errors are raised.
        kept: reports of an earlier run by their items.
        gpus: share of a GPU that each frame takes on a Ray cluster; None computes here.
    """

    items: Sequence[Item]
    request: Request
    advice: Advice
    ledger: Ledger | None = None
    kept: Mapping[Item, Mapping[str, Any]] = field(default_factory=dict)
    gpus: float | None = None

    def run(self, method: Method) -> Iterator[FinishedFrame]:
        """Run every frame that no earlier run has finished; on a cluster, results come in any order."""
        if self.gpus is not None:
            yield from self._run_on_ray(self.gpus)
            return
        for item in self.items:
            if item in self.kept and self.ledger is not None and self.ledger.holds(item):
                yield FinishedFrame(item, kept=self.kept[item])
            else:
                yield self._attempt(item, partial(self._compute, item, method))

    def _run_on_ray(self, gpus: float) -> Iterator[FinishedFrame]:
        for item, report in self.kept.items():
            yield FinishedFrame(item, kept=report)
        missing = [item for item in self.items if item not in self.kept]
        for item, outcome in run_on_ray(missing, self.request, self._prepare, gpus):
            yield self._attempt(item, outcome)

    def _attempt(self, item: Item, outcome: Callable[[], Outcome]) -> FinishedFrame:
        try:
            found = outcome()
            report = report_of(found, self.advice, write_outputs(item.outputs, found))
        except (PrimalDepthError, OSError) as error:
            if self.ledger is None:
                raise
            return FinishedFrame(item, error=error)
        finished = FinishedFrame(item, report, notes=_notes(item, found.inputs))
        if self.ledger is not None:
            self.ledger.add(item, finished.json())
        return finished

    def _prepare(self, item: Item) -> Inputs:
        """Load a frame's inputs, and check all that would make its outputs impossible to write."""
        inputs = load(item, self.request)
        check_inputs(item.outputs, inputs)
        return inputs

    def _compute(self, item: Item, method: Method) -> Outcome:
        inputs = self._prepare(item)
        run = method if self.ledger is None else self.ledger.method(method, inputs)
        return compute(inputs, self.request, run)


def _notes(item: Item, inputs: Inputs) -> tuple[str, ...]:
    found = [] if inputs.note is None else [f"{item.depth}: {inputs.note}"]
    for name, path in item.outputs.items():
        if inputs.cameras is None and OUTPUTS[name].guesses_camera:
            found.append(f"{path}: no --cameras given, so a camera with a 60 degree wide view was assumed")
    return tuple(found)


@contextmanager
def sole_use(folders: Iterable[Path]) -> Iterator[None]:
    """Hold the output folders of a batch: two batches in one folder would replace each other's results.

    Args:
        folders: of the outputs; they are made if they are missing.

    Raises:
        InputError: if another process writes a batch to one of them.
    """
    with ExitStack() as stack:
        for folder in dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders):
            stack.enter_context(held(folder, "writing a batch to", name=""))
        yield


def open_ledger(
    folder: Path, request: Request, cameras: Cameras | Path | None, temporal: TemporalSettings | None
) -> Ledger:
    """Return the ledger of an output folder; results made with other settings do not count as finished.

    Args:
        folder: of the depth maps that the batch writes.
        request: on which the results depend.
        cameras: on which they depend too; the content of a file counts.
        temporal: how each result is averaged with the frames before; None: not at all.
    """
    remove_leftovers([folder / MEMORY_NAME])
    matrix = read_file(cameras, MAX_TEXT) if isinstance(cameras, Path) else b""
    identity = method_identity(create(request.method, request.options))
    settings = f"{request} {cameras} {matrix!r} {temporal!r} {identity}"
    if temporal is None:
        return Ledger(folder, settings)
    read = partial(load, request=request, compare_views=False)
    return SequenceLedger(folder, settings, read, torch.device(request.device), temporal)
