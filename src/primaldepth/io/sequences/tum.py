"""TUM RGB-D: depth.txt and rgb.txt list `timestamp file`; depth in 5000 per metre, on the image's grid."""

from pathlib import Path

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.io.files import read_file
from primaldepth.io.sequences.base import (
    MOST_SHOTS,
    Content,
    Recording,
    Shot,
    check_inside,
    finite_numbers,
    inside,
    nearest_in_time,
)

MAX_DIFFERENCE = 0.02  # seconds between depth and image


def recognise(root: Path) -> bool:
    """Both lists are there."""
    return (root / "depth.txt").is_file() and (root / "rgb.txt").is_file()


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Each depth map with the image nearest in time; those farther than 0.02 s or as asked are left out."""
    within = MAX_DIFFERENCE if time_apart is None else time_apart
    check_inside(root, root / "depth.txt", root / "rgb.txt")
    depths, images = _listed(root / "depth.txt"), _listed(root / "rgb.txt")
    partners = nearest_in_time([t for t, _ in depths], [t for t, _ in images], within)
    pairs = [
        (depth, images[index][1])
        for (_, depth), index in zip(depths, partners, strict=True)
        if index is not None
    ]
    lost = len(depths) - len(pairs)
    if not pairs:
        raise FileFormatError(
            root,
            f"{len(depths)} depth maps and {len(images)} images, but none within {within:g} s of each other",
            "check the time stamps in depth.txt and rgb.txt, or give --time-apart",
        )
    notes = [f"{lost} of {len(depths)} depth maps have no image within {within:g} s"] if lost else []
    shots = [
        _shot(inside(root, depth, root / "depth.txt"), inside(root, image, root / "rgb.txt"))
        for depth, image in pairs
    ]
    return Recording("TUM RGB-D", root, shots, "5000", notes)


def _shot(depth: Path, image: Path) -> Shot:
    return Shot(depth.stem, lambda: Content(depth, image), (depth, image))


def _listed(path: Path) -> list[tuple[float, str]]:
    """(seconds, file), by time."""
    rows: list[tuple[float, str]] = []
    text = read_file(path, RECORDED.size).decode(errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) < 2:
            raise FileFormatError(path, f"line {number} is not 'timestamp file': {shortened(line)}")
        (time,) = finite_numbers(words[:1], f"{path}: line {number} is not 'timestamp file'", "seconds")
        rows.append((time, words[1]))
        if len(rows) > MOST_SHOTS:
            raise FileFormatError(path, f"lists more than {MOST_SHOTS} files", "split the recording")
    if not rows:
        raise FileFormatError(path, "lists no file", "record or export the sequence again")
    return sorted(rows)
