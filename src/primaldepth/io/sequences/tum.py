"""TUM RGB-D: depth.txt and rgb.txt list `timestamp file`; depth in 5000 per metre, on the image's grid.

groundtruth.txt, where it is there, lists `timestamp tx ty tz qx qy qz qw`: the poses, in a world with z up.
"""

from collections.abc import Sequence
from pathlib import Path

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.poses import Z_UP
from primaldepth.io.files import finite_numbers, read_file
from primaldepth.io.sequences.base import (
    MOST_SHOTS,
    Content,
    Recording,
    Shot,
    check_inside,
    inside,
    nearest_in_time,
    same_time,
)
from primaldepth.io.sequences.poses import quaternion_pose

MAX_DIFFERENCE = 0.02  # seconds between depth and image


def recognise(root: Path) -> bool:
    """Return whether a folder has both lists."""
    return (root / "depth.txt").is_file() and (root / "rgb.txt").is_file()


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair each depth map with the image nearest in time, 0.02 s off or as asked; leave out the others."""
    within = MAX_DIFFERENCE if time_apart is None else time_apart
    lists = root / "depth.txt", root / "rgb.txt"
    check_inside(root, *lists)
    depths, images = map(_listed, lists)
    pairs, notes = same_time(root, [t for t, _ in depths], [t for t, _ in images], within)
    times = [images[image][0] for _, image in pairs]
    shots = [
        _shot(root, inside(root, depths[i][1], lists[0]), inside(root, images[j][1], lists[1]), place)
        for (i, j), place in zip(pairs, _places(root, times), strict=True)
    ]
    return Recording("TUM RGB-D", root, shots, "5000", notes)


def _shot(root: Path, depth: Path, image: Path, place: Sequence[str] | None) -> Shot:
    def content() -> Content:
        pose = None if place is None else quaternion_pose(place, root / "groundtruth.txt", Z_UP)
        return Content(depth, image, pose=pose)

    return Shot(depth.stem, content, (depth, image))


def _places(root: Path, times: Sequence[float]) -> list[Sequence[str] | None]:
    """Return place and quaternion nearest in time to each image; None where the list has none near enough."""
    path = root / "groundtruth.txt"
    if not path.is_file():
        return [None] * len(times)
    check_inside(root, path)
    rows = _rows(path, "pose", "timestamp tx ty tz qx qy qz qw")
    indices = nearest_in_time(times, [time for time, _ in rows], MAX_DIFFERENCE)
    return [None if index is None else rows[index][1] for index in indices]


def _listed(path: Path) -> list[tuple[float, str]]:
    """Return the lines of a list as (seconds, file), sorted by time."""
    return [(time, words[0]) for time, words in _rows(path, "file", "timestamp file")]


def _rows(path: Path, what: str, form: str) -> list[tuple[float, list[str]]]:
    """Return the lines of a list as (seconds, the other words), sorted by time."""
    rows: list[tuple[float, list[str]]] = []
    count = len(form.split())
    text = read_file(path, RECORDED.size).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) < count:
            raise FileFormatError(path, f"line {number} is not '{form}': {shortened(line)}")
        (time,) = finite_numbers(words[:1], f"{path}: line {number} is not '{form}'", "seconds")
        rows.append((time, words[1:count]))
        if len(rows) > MOST_SHOTS:
            raise FileFormatError(path, f"lists more than {MOST_SHOTS} {what}s", "split the recording")
    if not rows:
        raise FileFormatError(path, f"lists no {what}", "record or export the sequence again")
    return sorted(rows)
