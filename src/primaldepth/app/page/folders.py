"""Where uploads and results lie as long as a visitor may look at them; Gradio copies what it shows."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_AGE_SECONDS = 1800.0  # as long as a visitor may take to look at the 3-D view


@dataclass(frozen=True, slots=True, order=True)
class _Kept:
    """A folder of one upload or one result."""

    changed: float
    path: Path
    size: int


class Folders:
    """A folder for each result, and one in which Gradio has a folder for each file.

    Args:
        most_bytes: that lie here at a time; the oldest folders are removed first.
    """

    def __init__(self, most_bytes: float) -> None:
        self._most = most_bytes
        self.root = Path(tempfile.mkdtemp(prefix="primaldepth-page-"))
        self.gradio = self.root / "gradio"

    def new(self) -> Path:
        """An empty folder."""
        self.tidy()
        return Path(tempfile.mkdtemp(prefix="result-", dir=self.root))

    def tidy(self) -> None:
        """Remove what is too old, then the oldest until the rest is small enough."""
        oldest = time.time() - _AGE_SECONDS
        kept = sorted(self._kept())
        total = sum(each.size for each in kept)
        for each in kept:
            if each.changed >= oldest and total <= self._most:
                return
            shutil.rmtree(each.path, ignore_errors=True)
            total -= each.size

    def _kept(self) -> Iterator[_Kept]:
        """Every folder; one that another visitor's run has just removed is passed over."""
        for pattern in ("result-*", "gradio/*"):
            for path in self.root.glob(pattern):
                with suppress(OSError):
                    yield _Kept(path.stat().st_mtime, path, _size(path))

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.root, ignore_errors=True)


def _size(folder: Path) -> int:
    """Bytes of all files below."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total
