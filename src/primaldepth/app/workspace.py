"""The folder of one service, for uploads and results; the service writes nowhere else.

A service that is killed cannot remove its folder. The next one does: each holds a lock on its folder, which
the system lets go of when the process ends, however it ends.
"""

import os
import secrets
import shutil
import stat
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from primaldepth.core.errors import InputError
from primaldepth.io.locks import held

_PREFIX = "primaldepth-service-"
_IN_THE_MAKING = "primaldepth-starting-"


class Workspace:
    """A new folder in the system's folder for temporary files, readable by this user alone."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        place = Path(tempfile.gettempdir())
        remove_left_over(place)
        try:
            made = Path(tempfile.mkdtemp(prefix=_IN_THE_MAKING, dir=place))
        except OSError as error:
            hint = "set TMPDIR to a folder that can be written to"
            raise InputError(place, f"no folder can be made there ({error.strerror})", hint) from error
        self._stack.enter_context(held(made, "serving from"))
        self.root = place / f"{_PREFIX}{secrets.token_hex(8)}"
        made.rename(self.root)  # under a name that others look for only now that the lock is held

    def new_folder(self) -> "tempfile.TemporaryDirectory[str]":
        """Return a folder for the uploads of one request; it is removed at the end of its `with` block."""
        return tempfile.TemporaryDirectory(prefix="request-", dir=self.root)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.root, ignore_errors=True)
        self._stack.close()


def remove_left_over(place: Path) -> None:
    """Remove the folders in `place` of this user's services that have ended without doing so."""
    if sys.platform == "win32":  # removes no file that is open, such as the lock
        return
    for folder in place.glob(f"{_PREFIX}*"):
        if not _is_own_folder(folder):
            continue
        try:
            with held(folder, "serving from"):
                shutil.rmtree(folder, ignore_errors=True)
        except InputError:  # its service lives
            continue


def _is_own_folder(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
