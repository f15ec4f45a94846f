"""Which files the page may read: uploads and results in its own folder, and the shipped examples."""

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from primaldepth.app.problems import Problem, RefusedError

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe is not waited for
_NOT_OURS = Problem(403, "not_uploaded", "a file was named that was not uploaded", "upload it first")


class ReadableFiles:
    """Folders whose files may be read, links in paths followed before they are compared.

    Args:
        folders: all files below them are meant for whoever knows their names.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._roots = tuple(folder.resolve() for folder in folders)

    def resolve(self, path: str | Path) -> Path:
        """Return where a path leads; the file itself need not be there any more.

        Raises:
            RefusedError: if that is in none of the folders.
        """
        try:
            found = Path(path).resolve()
        except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, links in a circle
            raise RefusedError(_NOT_OURS) from None
        if not any(found.is_relative_to(root) and found != root for root in self._roots):
            raise RefusedError(_NOT_OURS)
        return found

    def open(self, path: str | Path) -> BinaryIO:
        """Open a regular file of one of the folders for reading.

        Raises:
            RefusedError: if the path leads elsewhere, or to what is no regular file.
            OSError: if there is no such file.
        """
        file = os.open(self.resolve(path), _READ)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise RefusedError(_NOT_OURS)
        return os.fdopen(file, "rb")

    def copy(self, path: str | Path, to: Path, called: str) -> None:
        """Copy an upload.

        Args:
            path: of the upload.
            to: new file.
            called: what the visitor knows it by, for errors.

        Raises:
            RefusedError: as `open` does, and if the upload is there no more.
        """
        try:
            with self.open(path) as source, to.open("xb") as target:
                shutil.copyfileobj(source, target)
        except FileNotFoundError:
            message = f"{called}: the uploaded file is no longer kept"
            raise RefusedError(Problem(422, "missing", message, "drop it again")) from None
