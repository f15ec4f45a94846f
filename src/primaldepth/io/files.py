"""Opening the files that a user names: regular ones only, and none larger than what it can be.

A pipe or a device in place of a file would wait for ever or never end. So a name is checked before it is
opened, opened without waiting, and the open file is checked again: another one may have taken the name.
"""

import hashlib
import math
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from primaldepth.core.documents import DEFAULT, Limits, parse_json
from primaldepth.core.errors import (
    SHOWN,
    FileFormatError,
    InputError,
    MissingDependencyError,
    MissingFileError,
    PrimalDepthError,
)

PathLike = str | os.PathLike[str]
MAX_TEXT = 2**20  # bytes of a text file: lists, matrices, calibrations
_MAX_LINE = 2**20
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def open_file(path: PathLike, limit: int | None = None) -> BufferedReader:
    """Open a regular file for reading.

    Args:
        path: of the file; a link is followed.
        limit: bytes it may have; None for any number.

    Returns:
        the open file, which the caller closes.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is larger than the limit.
        InputError: it is a folder, a pipe or a device, or cannot be read.
    """
    try:
        _check_regular(path, os.stat(path), limit)
        descriptor = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
        file = os.fdopen(descriptor, "rb")
    except FileNotFoundError as error:
        raise MissingFileError(path, "no such file", "check the name") from error
    except (OSError, ValueError) as error:
        if isinstance(error, PrimalDepthError):
            raise
        reason = _reason(error)
        raise InputError(path, f"cannot be read ({reason})", "check the name and its rights") from error
    try:
        _check_regular(path, os.fstat(file.fileno()), limit)
    except PrimalDepthError:
        file.close()
        raise
    return file


def read_file(path: PathLike, limit: int) -> bytes:
    """Read a whole file.

    Args:
        path: of the file.
        limit: bytes it may have.

    Raises:
        InputError: as `open_file` does, or if it cannot be read to its end.
    """
    with open_file(path, limit) as file, reading(path):
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)
        if len(data) > size:  # it has grown, or the system does not know its size, as of those in /proc
            data += file.read(limit + 1 - len(data))
    if len(data) > limit:
        raise _too_large(path, len(data), limit)
    return data


def read_text(path: PathLike, limit: int = MAX_TEXT) -> str:
    """Read a text file in UTF-8, with or without a mark at its start.

    Args:
        path: of the file.
        limit: bytes it may have.

    Raises:
        InputError: as `open_file` does.
        FileFormatError: it is not UTF-8.
    """
    try:
        return read_file(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = _reason(error)
        raise FileFormatError(path, f"not a readable text file ({reason})", "save it as UTF-8") from error


def read_json(path: PathLike, *, what: str = "JSON document", limits: Limits = DEFAULT) -> Any:
    """Read a JSON file.

    Args:
        path: of the file.
        what: it should be, for errors.
        limits: on its size, its nesting and the numbers in it.

    Raises:
        InputError: as `open_file` and `parse_json` do.
    """
    return parse_json(read_file(path, limits.size), path, what=what, limits=limits)


def json_lines(path: PathLike) -> Iterator[dict[str, Any] | None]:
    """Yield the object on each line of a file, None for a line that holds none.

    A program that is killed while it writes leaves half a line. Empty lines are passed over.

    Args:
        path: of a file with an object of JSON in each line.

    Raises:
        InputError: as `open_file` does.
    """
    with open_file(path) as file, reading(path):
        while line := file.readline(_MAX_LINE):
            if line.strip():
                yield _object(line, path)


def check_unlinked(path: PathLike) -> None:
    """Raise if a file that is going to be written is a link: its content would land in another file.

    For files whose names the user has not typed. In a folder that came from someone else, a link of such a
    name can lead anywhere.

    Args:
        path: of the file, which need not exist.

    Raises:
        InputError: it is a link, a file with several names, or no regular file.
    """
    try:
        status = os.lstat(path)
    except OSError:  # there is none, or opening it will tell
        return
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise InputError(path, "is a link or no regular file, through which nothing is written", "remove it")


def open_to_append(path: PathLike) -> BinaryIO:
    """Open a file of ours to add to its end; it is made if it is missing.

    Args:
        path: of the file.

    Raises:
        InputError: as `check_unlinked` does.
    """
    check_unlinked(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "ab")


def finite_numbers(words: Sequence[object], where: object, expected: str) -> list[float]:
    """Return texts or values of JSON as finite numbers; raise if one is not.

    Args:
        words: what was found.
        where: names the file in errors.
        expected: in words, for errors.
    """
    try:
        found = [float(str(word)) for word in words]
    except ValueError as error:
        raise FileFormatError(where, f"{str(error)[:SHOWN]}", f"expected {expected}") from error
    if not all(map(math.isfinite, found)):
        raise FileFormatError(where, "NaN or an infinite number", f"expected {expected}")
    return found


def as_object(values: Any, where: object) -> dict[str, Any]:
    """Return the values of a document that must be an object.

    Args:
        values: of the document.
        where: names it in errors.

    Raises:
        FileFormatError: they are a list or a single value.
    """
    if not isinstance(values, dict):
        found = f"found a {type(values).__name__}"
        raise FileFormatError(where, found, "expected an object with named values")
    return values


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Turn an `InputError` about values of a file, raised within the block, into one that names the file.

    Args:
        where: path of the file, and perhaps where in it.

    Raises:
        FileFormatError: in its place.
    """
    try:
        yield
    except InputError as error:
        raise FileFormatError(where, f"{error}") from error


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn what the system raises while an open file is read into an error that names the file.

    Args:
        path: of the file.

    Raises:
        InputError: in place of an `OSError` within the block.
    """
    try:
        yield
    except OSError as error:
        raise InputError(path, f"cannot be read ({_reason(error)})", "copy it again") from error


def _object(line: bytes, path: PathLike) -> dict[str, Any] | None:
    try:
        found = parse_json(line, path)
    except FileFormatError:
        return None
    return found if isinstance(found, dict) else None


def _check_regular(path: PathLike, status: os.stat_result, limit: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise InputError(path, "is a directory", "give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(path, "is not a regular file", "copy its content to one first")
    if limit is not None and status.st_size > limit:
        raise _too_large(path, status.st_size, limit)


def _too_large(path: PathLike, size: int, limit: int) -> FileFormatError:
    return FileFormatError(path, f"has {size} bytes, more than the limit of {limit}", "is it the right file?")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def optional(package: str, extra: str, path: object, doing: str = "reading") -> Any:
    """Import an optional package.

    Args:
        package: its name for an import.
        extra: of ours that brings it.
        path: of the file that needs it, for errors.
        doing: what is done to the file.

    Raises:
        MissingDependencyError: it is not installed, or a library of the system that it needs is not.
    """
    name = package.split(".")[0]
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            path, f"{doing} it needs the package '{name}'", f"run: pip install 'primaldepth[{extra}]'"
        ) from error
    except ImportError as error:
        raise MissingDependencyError(
            path, f"the package '{name}' cannot be loaded: {error}", "install the library that it names"
        ) from error


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read again only if it has changed."""
    status = path.stat()
    return _file_sha256(path, status.st_mtime_ns, status.st_size)


@cache
def _file_sha256(path: Path, modified: int, size: int) -> str:
    with open_file(path) as file, reading(path):
        return sha256_of(file)


def sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 of an open file from its present place on."""
    digest = hashlib.sha256()
    while block := file.read(2**20):
        digest.update(block)
    return digest.hexdigest()
