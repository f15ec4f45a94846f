"""One process at a time in a folder."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from primaldepth.core.errors import InputError

_WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of some network file systems


@contextmanager
def held(folder: Path, doing: str, name: str = ".lock") -> Iterator[None]:
    """The folder for this process alone; the system lets go of it when the process ends, however it ends.

    Where a file system knows no locks, nothing is held.

    Args:
        folder: made if it is missing.
        doing: what a process does that holds it, for the message to another.
        name: of the file in it that is locked, made if it is missing; empty for the folder itself, which
            leaves no file behind, but is not possible on some network file systems.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        how = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) if name else os.O_RDONLY
        descriptor = os.open(folder / name, how, 0o644)
    except OSError as error:
        raise InputError(
            folder, f"cannot be written to ({error.strerror})", "choose another folder"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{folder}: another process is {doing} this folder; wait for it, or choose another"
            raise InputError(message) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
        yield
    finally:
        os.close(descriptor)
