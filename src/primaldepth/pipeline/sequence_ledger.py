"""The list of finished frames of a sequence, where each result depends on the frames before it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.io import Kind, write_bytes
from primaldepth.io.files import check_unlinked, open_file, read_file
from primaldepth.io.formats.base import MAX_FILE_BYTES
from primaldepth.methods.temporal import Memory, Temporal, TemporalSettings
from primaldepth.pipeline.ledger import Ledger
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.request import Item

MEMORY_NAME = ".primaldepth-memory.safetensors"


class SequenceLedger(Ledger):
    """A ledger whose keys depend on the frames before; it also stores the filter's last memory.

    A frame that is kept is only run again if the memory that was stored is older, to bring it up to date.

    Args:
        folder: of the results.
        settings: everything the results depend on beside their inputs.
        read: the inputs of an item.
        device: to compute on.
        filtered: how results are averaged.
    """

    def __init__(
        self,
        folder: Path,
        settings: str,
        read: Callable[[Item], Inputs],
        device: torch.device,
        filtered: TemporalSettings,
    ) -> None:
        super().__init__(folder, settings)
        self._filtered = filtered
        self._file, self._read, self._device = folder / MEMORY_NAME, read, device
        check_unlinked(self._file)
        self._before = ""  # key of the last frame that counts
        self._memory: Memory | None = None
        self._behind: list[Item] = []  # frames that count but are not in the memory yet
        self._next: Memory | None = None  # as it will be once the frame that runs is added
        self._stored = _stored_after(self._file)

    def kept(self, items: Sequence[Item]) -> dict[Item, dict[str, Any]]:
        """Return the reports of finished frames, whether unfinished ones before them will fail or not."""
        found: dict[Item, dict[str, Any]] = {}
        failed = done = ""  # keys of the frame before, if those that are not finished fail, or succeed
        for item in items:
            for before in (failed, done):
                report = self.finished(item, before)
                if report is not None:
                    found[item] = report
                    failed = done = self.key(item, before)
                    break
            else:
                done = self.key(item, done)
        return found

    def holds(self, item: Item) -> bool:
        """Return whether the frame was finished after exactly the frames kept so far; then keep it too."""
        if self.finished(item, self._before) is None:
            return False
        self._before = self.key(item, self._before)
        self._behind.append(item)
        if self._before == self._stored:
            memory = _stored_memory(self._file, self._device)
            if memory is not None:
                self._memory, self._behind = memory, []
        return True

    def add(self, item: Item, report: dict[str, Any], before: str = "") -> None:
        """Count a frame as finished, and store the memory after it; `before` is known here."""
        super().add(item, report, self._before)
        self._before = self.key(item, self._before)
        self._memory = self._next
        if self._memory is not None:
            tensors = {name: value.contiguous().cpu() for name, value in self._memory.tensors().items()}
            write_bytes(self._file, safetensors.torch.save(tensors, {"after": self._before}))

    def method(self, method: Method, inputs: Inputs) -> Callable[[Frame], Prediction]:
        """Return the method with the memory of the frames before."""
        return partial(self._run, method, inputs.kind)

    def _run(self, method: Method, kind: Kind, frame: Frame) -> Prediction:
        """Return the result of the next frame; it enters the memory when it is added to the ledger."""
        temporal = Temporal(method, self._filtered)
        temporal.memory = self._memory
        for item in self._behind:
            self._catch_up(temporal, item)
        self._memory, self._behind = temporal.memory, []
        prediction = temporal(frame, kind)
        self._next = temporal.memory
        return prediction

    def _catch_up(self, temporal: Temporal, item: Item) -> None:
        try:
            inputs = self._read(item)
        except (PrimalDepthError, OSError) as error:
            raise PrimalDepthError(
                item.depth, f"an earlier frame is needed but cannot be read: {error}"
            ) from error
        temporal(inputs.frame.to(self._device), inputs.kind)


def _stored_after(path: Path) -> str | None:
    """Return the key of the frame after which the memory in a file was stored."""
    try:
        with open_file(path), safe_open(path, "pt") as file:
            return (file.metadata() or {}).get("after")
    except (InputError, OSError, SafetensorError):
        return None


def _stored_memory(path: Path, device: torch.device) -> Memory | None:
    """Return the memory in a file, or None if it holds none; the frames before are then run again."""
    try:
        found = Memory.of(safetensors.torch.load(read_file(path, MAX_FILE_BYTES)), device)
    except (InputError, SafetensorError, KeyError):
        return None
    sizes = {tensor.shape for tensor in found.tensors().values()}
    return found if len(sizes) == 1 and next(iter(sizes))[:2] == (1, 1) else None
