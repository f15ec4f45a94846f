"""What every recording gives: shots with depth, guide, confidence and camera, each read when it is needed."""

import itertools
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import SHOWN, FileFormatError, MissingDependencyError, shortened
from primaldepth.geometry.pinhole import Beside, Pinhole
from primaldepth.geometry.poses import Pose
from primaldepth.io.files import read_file
from primaldepth.io.formats.base import MAX_FILE_BYTES
from primaldepth.io.picture_files import picture_size
from primaldepth.io.units import Unit

Picture = Path | NDArray[np.uint8]
Map = Path | NDArray[np.float32]
Number = tuple[int | str, ...]
MOST_SHOTS = 2**18
"""Of a recording: two hours of them at 30 in a second; each takes memory."""
_STAMP = re.compile(r"\D*([1-9]\d{9})(\.\d+|\d{3}|\d{6}|\d{9})\D*", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """One shot, read.

    Args:
        depth: file in the recording's unit, or (h, w) metres.
        guide: file, or (H, W, 3) or (H, W).
        confidence: file or array in [0, 1], of the depth's size, or None.
        camera: of the guide, or None if the recording does not say.
        beside: the depth map's own camera, or None if it shares the guide's.
        pose: where the guide's camera stood, or None if the recording does not say.
    """

    depth: Map
    guide: Picture
    confidence: Map | None = None
    camera: Pinhole | None = None
    beside: Beside | None = None
    pose: Pose | None = None


@dataclass(frozen=True, slots=True)
class Shot:
    """One depth map and its image.

    Args:
        name: of the results, unique in the recording.
        read: gives the content.
        files: that decide the content, to tell whether they have changed.
    """

    name: str
    read: Callable[[], Content]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """A folder or file of shots in the order they were taken.

    Args:
        layout: what it was recognised as.
        unit: of the depth files; None where depth comes in metres.
        notes: what was left out or chosen, for the user to read.
    """

    layout: str
    root: Path
    shots: Sequence[Shot]
    unit: Unit | None = None
    notes: Sequence[str] = field(default=())

    def __iter__(self) -> Iterator[Shot]:
        return iter(self.shots)

    def __len__(self) -> int:
        return len(self.shots)


def numbered(folder: Path, *extensions: str) -> list[Path]:
    """Files with one of these extensions that are not hidden; 2.png before 10.png."""
    found = folder.iterdir() if folder.is_dir() else ()
    shown = [path for path in found if path.suffix.lower() in extensions and path.name[0] != "."]
    return sorted(shown, key=natural_order)


def natural_order(path: Path) -> tuple[Any, ...]:
    """Sorts 2.png before 10.png and 1.25.png before 1.5.png, in folders of such names too."""
    return (*(_pieces(folder) for folder in path.parent.parts), _pieces(path.stem)), path


def number(path: Path) -> Number:
    """What the files of a pair have in common: the numbers in the name, or the name where it has none."""
    return tuple(_pieces(path.stem)[1::2]) or (path.stem,)


def ends(ours: Sequence[Path], theirs: Sequence[Path]) -> str:
    """The first and the last pair, for the user to see whether they belong together."""
    pairs = list(zip(ours, theirs, strict=True))
    return ", ".join(f"{one.name} with {other.name}" for one, other in dict.fromkeys((pairs[0], pairs[-1])))


def time_stamp(path: Path) -> float | None:
    """Seconds since 1970 in a file's name, such as 1305031102.175304, or in ms, us or ns; else None.

    Since 2001 the whole seconds have ten digits; decimals follow, with a point or without.
    """
    found = _STAMP.fullmatch(path.stem)
    return None if found is None else float(f"{found[1]}.{found[2].lstrip('.')}")


def missing_numbers(paths: Sequence[Path]) -> list[str]:
    """A note for files that are to go with the frames of a video in order, but skip a number."""
    for path, following in itertools.pairwise(paths):
        here, there = number(path), number(following)
        if isinstance(here[-1], int) and isinstance(there[-1], int) and there[-1] != here[-1] + 1:
            return [
                f"{following.name} comes after {path.name}, and both go with frames of the video in order"
            ]
    return []


def _pieces(text: str) -> list[int | str]:
    """Text and whole numbers in turns, text first; digits after a decimal point stay text."""
    pieces: list[int | str] = list(re.split(r"(\d+)", text))
    for index in range(1, len(pieces), 2):
        if index == 1 or pieces[index - 1] != ".":
            pieces[index] = int(pieces[index])
    return pieces


def image_size(path: Path) -> tuple[int, int]:
    """(width, height) from the file's header; it is a PNG or JPEG."""
    return picture_size(read_file(path, MAX_FILE_BYTES), path)


def inside(root: Path, name: str, where: Path) -> Path:
    """The file that a list in a recording names, which must lie in the recording's folder.

    Args:
        root: the recording's folder.
        name: as it stands in the list.
        where: the list, for the error.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise FileFormatError(
            where, f"names {shortened(name)}, which is no file in {root}", "copy it there and name it so"
        )
    return root / path


def check_inside(root: Path, *paths: Path) -> None:
    """Refuse files of a recording that are links to somewhere else.

    Args:
        root: the recording's folder, which may be a link itself.
        paths: files in it that are going to be read.

    Raises:
        FileFormatError: one of them lies elsewhere once all links are followed.
    """
    home = os.path.realpath(root)
    for path in paths:
        if not Path(os.path.realpath(path)).is_relative_to(home):
            raise FileFormatError(path, f"a link that leads out of {root}", "copy the file itself there")


def finite_numbers(words: Sequence[object], where: object, expected: str) -> list[float]:
    """Numbers of a file, of texts or of values of JSON.

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


def optional(package: str, extra: str, path: Path, doing: str = "reading") -> Any:
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


def nearest_in_time(times: Sequence[float], others: Sequence[float], within: float) -> list[int | None]:
    """For each time the index of the nearest of `others` (sorted, not empty), None if none is near enough."""
    there = np.asarray(others)
    right = np.clip(np.searchsorted(there, times), 1, max(len(there) - 1, 1))
    found: list[int | None] = []
    for time, index in zip(times, right.tolist(), strict=True):
        best = min((i for i in (index - 1, index) if i < len(there)), key=lambda i: abs(there[i] - time))
        found.append(best if abs(there[best] - time) <= within else None)
    return found
