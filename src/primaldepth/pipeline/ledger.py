"""The record of finished results of a batch, so that a repeated command continues where it was stopped."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from primaldepth.core.errors import MissingFileError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.io.files import check_unlinked, json_lines, open_to_append
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.request import Item
from primaldepth.version import __version__

LEDGER_NAME = ".primaldepth-journal.jsonl"


class Ledger:
    """One line of JSON for each finished result, in a hidden file of the output folder.

    A result counts as finished if a line has its key (settings, input files with size and time, output
    files) and every output still has the size and time it was written with: another run may have replaced it.
    A line that is cut off, or that an older version wrote without times, counts for nothing.

    Args:
        folder: of the results.
        settings: everything the results depend on beside their inputs.
    """

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder, self._path = folder, folder / LEDGER_NAME
        self._settings = settings
        check_unlinked(self._path)
        self._lines = _read(self._path)

    def finished(self, item: Item, before: str = "") -> dict[str, Any] | None:
        """Return the report of a finished item, or None; `before` is the key of the frame before it."""
        line = self._lines.get(self.key(item, before))
        if line is None or line["outputs"] != _outputs(item):
            return None
        report: dict[str, Any] = line["report"]
        return report

    def kept(self, items: Sequence[Item]) -> dict[Item, dict[str, Any]]:
        """Return the reports of the items that are finished."""
        found = {item: self.finished(item) for item in items}
        return {item: report for item, report in found.items() if report is not None}

    def method(self, method: Method, inputs: Inputs) -> Callable[[Frame], Prediction]:
        """Return the method to run on the next frame: itself or, in a sequence, with its memory."""
        return method

    def holds(self, item: Item) -> bool:
        """Return whether a finished result may be kept, which depends on earlier frames in a sequence."""
        return True

    def add(self, item: Item, report: dict[str, Any], before: str = "") -> None:
        """Count an item as finished; call it when all its outputs are in place."""
        line = {"key": self.key(item, before), "outputs": _outputs(item), "report": report}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open_to_append(self._path) as file:
            file.write(f"\n{json.dumps(line)}\n".encode())  # the line before may have been cut off

    def key(self, item: Item, before: str = "") -> str:
        """Return a digest of everything the result depends on."""
        stats = [(str(path.absolute()), *_stat(path)) for path in item.files]
        outputs = [(f"--{name}", str(path.absolute())) for name, path in item.outputs.items()]
        text = json.dumps([__version__, self._settings, str(item.depth), stats, outputs, before])
        return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a ledger file by their keys; skip damaged lines."""
    found: dict[str, dict[str, Any]] = {}
    try:
        for line in json_lines(path):
            key, outputs, report = ((line or {}).get(name) for name in ("key", "outputs", "report"))
            if isinstance(key, str) and isinstance(report, dict):
                found[key] = {"outputs": outputs, "report": report}
    except MissingFileError:
        return {}
    return found


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _outputs(item: Item) -> dict[str, list[int]]:
    return {name: list(_stat(path)) for name, path in item.outputs.items()}
