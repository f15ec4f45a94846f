"""A lock that lets one process at a time work in a folder."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from primaldepth.core.errors import InputError

_IN_PLACE_OF_FOLDER = ".lock" if os.name == "nt" else ""  # Windows opens no folder
_WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of some network file systems


@contextmanager
def held(folder: Path, doing: str, name: str = ".lock") -> Iterator[None]:
    """Keep the folder for this process alone, until the block or the process ends, however that ends.

    Where a file system knows no locks, nothing is held.

    Args:
        folder: made if it is missing.
        doing: what a process does that holds it, for the message to another.
        name: of the file in it that is locked, made if it is missing; empty for the folder itself, which
            leaves no file behind, but is not possible on some network file systems and on Windows, where
            a file is locked all the same.

    Raises:
        InputError: if another process holds the folder, or it cannot be written to.
    """
    from filelock import lock_descriptor

    place = folder / (name or _IN_PLACE_OF_FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        how = os.O_RDONLY if place == folder else os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(place, how, 0o644)
    except OSError as error:
        raise InputError(
            folder, f"cannot be written to ({error.strerror})", "choose another folder"
        ) from error
    try:
        try:
            ours = lock_descriptor(descriptor, blocking=False)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            ours = True
        if not ours:
            raise InputError(
                folder, f"another process is {doing} this folder", "wait for it, or choose another"
            )
        yield
    finally:
        os.close(descriptor)
