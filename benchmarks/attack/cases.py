"""The words of this program: a seed, what damage makes of it, and a reader that is to survive it."""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

Files = dict[str, bytes]
Span = tuple[int, int]
Promise = Literal["any", "same", "refused"]


@dataclass(frozen=True)
class Seed:
    """Valid files.

    Args:
        files: content by name, relative to the folder the reader is given.
        sealed: by name, the ranges of bytes that a checksum covers.
    """

    files: Files
    sealed: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Mutant:
    """Damaged files.

    Args:
        how: the mutations, for people.
        promise: "same" where a checksum covers the damage, so that what is read must equal the seed's values;
            "refused" where reading it at all is wrong.
        origin: number of the seed.
    """

    files: Files
    how: str
    promise: Promise = "any"
    origin: int = 0


Mutator = Callable[[random.Random, list[Seed]], Mutant]


@dataclass(frozen=True)
class Reader:
    """One way into the package.

    Args:
        share: of the inputs, relative to the other readers'.
        seeds: make the valid files; the generator decides what may vary.
        mutate: damage one of them.
        read: read the files in a folder; what it returns is compared by `digest`.
        apart: it starts processes, whose memory counts too.
    """

    name: str
    share: float
    seeds: Callable[[random.Random], list[Seed]]
    mutate: Mutator
    read: Callable[[Path], Any]
    apart: bool = False


class WrongResult(Exception):  # noqa: N818 - says what was found, and is a fault like any other exception
    """A reader has returned what it must not return."""


def whole(files: Files) -> dict[str, tuple[Span, ...]]:
    """Every byte of every file is covered by a checksum."""
    return {name: ((0, len(data)),) for name, data in files.items()}


def write_files(folder: Path, files: Files) -> None:
    """Put the files of an input into an empty folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def digest(value: Any) -> str:
    """A checksum of a result: arrays by type, shape and bytes, everything else by its parts."""
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _add(found, [getattr(value, part.name) for part in fields(value)])
    elif isinstance(value, Mapping):
        _add(found, sorted((str(key), each) for key, each in value.items()))
    elif isinstance(value, list | tuple):
        found.update(b"[")
        for each in value:
            _add(found, each)
        found.update(b"]")
    else:
        found.update(repr(value).encode("utf-8", "replace"))
