"""What every recording gives: shots with depth, guide, confidence and camera, each read when it is needed."""

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.poses import Pose
from primaldepth.io.cameras.calibration_values import check_central
from primaldepth.io.files import finite_numbers, read_file
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
    """What was read of one shot: depth, image, confidence, camera and pose.

    Args:
        depth: file in the recording's unit, or (h, w) metres.
        guide: file, or (H, W, 3) or (H, W).
        confidence: file or array in [0, 1], of the depth's size, or None.
        cameras: of the guide, and of the depth map if it has its own; None if the recording does not say.
        pose: where the guide's camera stood, or None if the recording does not say.
    """

    depth: Map
    guide: Picture
    confidence: Map | None = None
    cameras: Cameras | None = None
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
    """Return the files of a folder with these extensions that are not hidden; 2.png before 10.png."""
    found = folder.iterdir() if folder.is_dir() else ()
    shown = [path for path in found if path.suffix.lower() in extensions and path.name[0] != "."]
    return sorted(shown, key=natural_order)


def natural_order(path: Path) -> tuple[Any, ...]:
    """Return a sorting key: 2.png before 10.png and 1.25.png before 1.5.png, in folders of such names too."""
    return (*(_pieces(folder) for folder in path.parent.parts), _pieces(path.stem)), path


def number(path: Path) -> Number:
    """Return what the files of a pair share: the numbers in the name, or the name where it has none."""
    return tuple(_pieces(path.stem)[1::2]) or (path.stem,)


def ends(ours: Sequence[Path], theirs: Sequence[Path]) -> str:
    """Return the first and the last pair in words, for the user to see whether they belong together."""
    pairs = list(zip(ours, theirs, strict=True))
    return ", ".join(f"{one.name} with {other.name}" for one, other in dict.fromkeys((pairs[0], pairs[-1])))


def time_stamp(path: Path) -> float | None:
    """Return the seconds since 1970 in a name, such as 1305031102.175304, or in ms, us or ns; else None.

    Since 2001 the whole seconds have ten digits; decimals follow, with a point or without.
    """
    found = _STAMP.fullmatch(path.stem)
    return None if found is None else float(f"{found[1]}.{found[2].lstrip('.')}")


def missing_numbers(paths: Sequence[Path]) -> list[str]:
    """Return a note for files that are to go with the frames of a video in order, but skip a number."""
    for path, following in itertools.pairwise(paths):
        here, there = number(path), number(following)
        if isinstance(here[-1], int) and isinstance(there[-1], int) and there[-1] != here[-1] + 1:
            return [
                f"{following.name} comes after {path.name}, and both go with frames of the video in order"
            ]
    return []


def _pieces(text: str) -> list[int | str]:
    """Split a name into text and whole numbers in turns, text first; decimals stay text."""
    pieces: list[int | str] = list(re.split(r"(\d+)", text))
    for index in range(1, len(pieces), 2):
        if index == 1 or pieces[index - 1] != ".":
            pieces[index] = int(pieces[index])
    return pieces


def image_size(path: Path) -> tuple[int, int]:
    """Return (width, height) of a PNG or JPEG from its header."""
    return picture_size(read_file(path, MAX_FILE_BYTES), path)


def inside(root: Path, name: str, where: Path) -> Path:
    """Return the file that a list in a recording names, which must lie in the recording's folder.

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


def scaled_camera(
    where: object, numbers: Sequence[float], said: tuple[float, float], size: tuple[int, int]
) -> Cameras:
    """Return the camera of an image that may be smaller than the one that its file describes.

    Args:
        where: names the file in errors.
        numbers: fx, fy, cx, cy, pixel centres at whole numbers.
        said: (width, height) that they are for.
        size: (width, height) of the image.
    """
    if min(said) < 1:
        raise FileFormatError(where, f"an image of {said[0]:g}x{said[1]:g} pixels, expected at least 1")
    across, down = size[0] / said[0], size[1] / said[1]
    fx, fy, cx, cy = numbers
    camera = Intrinsics(fx * across, fy * down, (cx + 0.5) * across, (cy + 0.5) * down, *size)
    return Cameras(camera)


def matrix_camera(where: object, K: Sequence[float], size: tuple[int, int]) -> Cameras:
    """Return the camera of an image by its 3x3 matrix; raise if that is of another resolution.

    Args:
        where: names the file in errors.
        K: nine numbers, row by row, pixel centres at whole numbers.
        size: (width, height) of the image.
    """
    check_central(
        where,
        K[2] + 0.5,
        K[5] + 0.5,
        size,
        "the matrix is of another resolution: scale it as the images were",
    )
    return scaled_camera(where, (K[0], K[4], K[2], K[5]), size, size)


def listed_numbers(path: Path, name: str, found: object, count: int) -> list[float]:
    """Return the value of a key as `count` finite numbers; raise if it is no such list.

    Args:
        path: of the file.
        name: of the key.
        found: its value.
        count: expected.
    """
    if not isinstance(found, list) or len(found) != count:
        raise FileFormatError(path, f"'{name}' is {shortened(found)}, expected {count} numbers")
    return finite_numbers(found, f"{path}: '{name}'", f"{count} numbers")


def check_count(root: Path, count: int) -> None:
    """Raise an error if a recording has more shots than are taken."""
    if count > MOST_SHOTS:
        raise FileFormatError(root, f"more than {MOST_SHOTS} shots", "split the recording")


def same_number(root: Path, depths: Collection[str], images: Collection[str]) -> tuple[list[str], list[str]]:
    """Pair depth maps and images by the numbers that are their names.

    Args:
        root: of the recording, for errors.
        depths: names of the depth maps.
        images: names of the images.

    Returns:
        The names that both have, and a note if depth maps are left out.

    Raises:
        FileFormatError: no name or too many are common.
    """
    names = [name for name in depths if name in images]
    if not names:
        found = f"{len(depths)} depth maps and {len(images)} images, but no two of the same number"
        raise FileFormatError(root, found)
    check_count(root, len(names))
    lost = len(depths) - len(names)
    return names, [f"{lost} of {len(depths)} depth maps have no image of the same number"] if lost else []


def same_time(
    root: Path, times: Sequence[float], others: Sequence[float], within: float
) -> tuple[list[tuple[int, int]], list[str]]:
    """Pair depth maps with the image nearest in time.

    Args:
        root: of the recording, for errors.
        times: of the depth maps in seconds.
        others: of the images, in order.
        within: seconds that the two may be apart.

    Returns:
        Indices of each depth map and its image, and a note if depth maps are left out.

    Raises:
        FileFormatError: none are near enough, or there are too many.
    """
    check_count(root, max(len(times), len(others)))
    partners = nearest_in_time(times, others, within) if others else []
    pairs = [(index, partner) for index, partner in enumerate(partners) if partner is not None]
    if not pairs:
        gaps = [abs(one - other) for one in times[:1000] for other in others[:1000]]
        nearest = f", the nearest {min(gaps):.3f} s" if gaps else ""
        found = f"{len(times)} depth maps and {len(others)} images, none within {within:g} s of each other"
        raise FileFormatError(root, f"{found}{nearest}", "give --time-apart, or check the time stamps")
    lost = len(times) - len(pairs)
    return pairs, [f"{lost} of {len(times)} depth maps have no image within {within:g} s"] if lost else []


def nearest_in_time(times: Sequence[float], others: Sequence[float], within: float) -> list[int | None]:
    """Return for each time the index of the nearest of `others` (sorted, not empty), None if none is near."""
    there = np.asarray(others)
    right = np.clip(np.searchsorted(there, times), 1, max(len(there) - 1, 1))
    found: list[int | None] = []
    for time, index in zip(times, right.tolist(), strict=True):
        best = min((i for i in (index - 1, index) if i < len(there)), key=lambda i: abs(there[i] - time))
        found.append(best if abs(there[best] - time) <= within else None)
    return found
