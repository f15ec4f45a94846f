"""Writing that is either complete or did not happen."""

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from primaldepth.core.errors import InputError

_TEMPORARY = re.compile(r"^\.(.+)\.(\d+)-[0-9a-f]{8}(\.\w+)$")  # the names that `atomic_path` makes


@contextmanager
def atomic_path(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is synced and takes the place of `path`.

    The name keeps the extension, is unique to this process and call, and is gone after an exception, with
    the old file untouched. A missing parent folder is made. A link is followed, not replaced. Without
    `sync` a file outlives its process, but perhaps not the machine's power.

    Args:
        path: of the file to write.
        sync: wait until the file is on the disk.

    Example:
        >>> from pathlib import Path
        >>> from primaldepth.io import atomic_path
        >>> with atomic_path("table.csv") as path:
        ...     _ = path.write_text("scene,rmse")
        ...     Path("table.csv").exists()
        False
        >>> Path("table.csv").read_text()
        'scene,rmse'
    """
    target = _checked_target(Path(path))
    name = f".{_short_stem(target)}.{os.getpid()}-{secrets.token_hex(4)}{target.suffix}"
    temporary = target.with_name(name)
    try:
        yield temporary
        _publish(temporary, target, sync)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` as the whole of `path`, atomically.

    Args:
        path: of the file, which is replaced.
        data: its content.

    Raises:
        InputError: if it cannot be written; the old file is untouched then.
    """
    with atomic_path(path) as temporary:
        try:
            temporary.write_bytes(data)
        except OSError as error:
            raise _cannot_write(Path(path), error) from error


def remove_leftovers(paths: Iterable[Path], *, locked: bool = False) -> None:
    """Delete the half-written files that killed processes have left beside these files.

    Args:
        paths: files that are written by `atomic_path`.
        locked: no other process writes them now; else the files of processes that still run are kept.
    """
    ours = {Path(os.path.realpath(path)) for path in paths}
    names = {(place.parent, _short_stem(place), place.suffix) for place in ours}
    for folder in {place.parent for place in ours if place.parent.is_dir()}:
        for path in folder.iterdir():
            match = _TEMPORARY.match(path.name)
            if match and (folder, match[1], match[3]) in names and (locked or not _alive(int(match[2]))):
                with suppress(OSError):
                    path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it is another user's
    return True


def _short_stem(path: Path) -> str:
    """Return as much of the name as fits beside the suffix of a temporary file; file systems count bytes."""
    return os.fsencode(path.stem)[:80].decode(errors="ignore")


def check_extension(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Raise unless the extension is one that `option` can be written as."""
    where = f"{option} {path}"
    if path.is_dir():
        raise InputError(where, "is a directory", "give the name of a file to write")
    if path.suffix.lower() not in suffixes:
        found = f"extension '{path.suffix}' cannot be written" if path.suffix else "no extension"
        raise InputError(where, found, f"use {' or '.join(suffixes)}")


def check_place(option: str, path: Path) -> None:
    """Raise unless `path` can be made or replaced; nothing is touched, so that no long run ends in vain."""
    _check_target(f"{option} {path}", path)


def _check_target(where: object, path: Path) -> None:
    if path.exists() and not path.is_file():
        what = "is a directory" if path.is_dir() else "is not a regular file"
        raise InputError(where, what, "give the name of a file to write")
    folder = path.absolute().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(
            where, f"cannot be written, {folder} is a file, not a folder", "choose another place"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(where, f"the folder {folder} is not writable", "choose another or change its rights")


def _checked_target(path: Path) -> Path:
    try:
        target = path.resolve()
        _check_target(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _cannot_write(path, error) from error
    return target


def _publish(temporary: Path, target: Path, sync: bool) -> None:
    try:
        if sync:
            _sync(temporary)
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    if not sync:
        return
    with suppress(OSError):  # some file systems refuse to sync a folder; the rename is done
        _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(path: Path, error: Exception) -> InputError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(
        path, f"cannot be written ({reason})", "check the folder, its rights and the free space"
    )
