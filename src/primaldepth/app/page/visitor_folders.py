"""Where uploads and results lie as long as a visitor may look at them; Gradio copies what it shows."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 512  # whatever the disk's own are
_LEAST_BYTES = 4096  # of a file or folder, whose entry takes room too
_MOST_FOLDERS = 4096  # so that tidying stays quick
_AGE_SECONDS = 1800.0  # as long as a visitor may take to look at the 3-D view


@dataclass(frozen=True, slots=True, order=True)
class _VisitorFolder:
    """A folder of one upload or one result."""

    changed: float
    path: Path
    size: int


class VisitorFolders:
    """A folder for each result, and one in which Gradio has a folder for each file.

    Args:
        root: of all of them; made here.
        most_bytes: that lie on the disk for them at a time; the oldest folders are removed first.
    """

    def __init__(self, root: Path, most_bytes: float) -> None:
        self._most = most_bytes
        self.root, self.gradio = root, root / "gradio"
        self.gradio.mkdir(parents=True)

    def new(self) -> Path:
        """Make and return an empty folder."""
        self.tidy()
        return Path(tempfile.mkdtemp(prefix="result-", dir=self.root))

    def tidy(self) -> None:
        """Remove what is too old, then the oldest until the rest is small enough."""
        oldest = time.time() - _AGE_SECONDS
        kept = sorted(self._kept())
        total = sum(each.size for each in kept)
        for rank, each in enumerate(kept):
            if each.changed >= oldest and total <= self._most and len(kept) - rank <= _MOST_FOLDERS:
                return
            shutil.rmtree(each.path, ignore_errors=True)
            total -= each.size

    def _kept(self) -> Iterator[_VisitorFolder]:
        """Yield every folder; skip one that another visitor's run has just removed."""
        for pattern in ("result-*", "gradio/*"):
            for path in self.root.glob(pattern):
                with suppress(OSError):
                    yield _VisitorFolder(path.stat().st_mtime, path, _size(path))

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.root, ignore_errors=True)


def _size(folder: Path) -> int:
    """Return the bytes that a folder takes up on the disk: many small files take more than they hold."""
    total = _taken(folder)
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            with suppress(OSError):
                total += _taken(Path(place, name))
    return total


def _taken(path: Path) -> int:
    found = path.lstat()
    blocks = getattr(found, "st_blocks", 0)  # not on every system
    return max(found.st_size, blocks * _BLOCK_BYTES, _LEAST_BYTES)
