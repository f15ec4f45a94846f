"""One process at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from primaldepth.core.errors import InputError


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """The folder for this process alone; the system lets go of it when the process ends, however it ends.

    Args:
        folder: made if it is missing.
        doing: what a process does that holds it, for the message to another.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written to ({error.strerror}); choose another folder"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{folder}: another process is {doing} this folder; wait for it, or choose another"
            raise InputError(message) from None
        yield
    finally:
        os.close(descriptor)
