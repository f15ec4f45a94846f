"""TUM RGB-D: depth.txt and rgb.txt list `timestamp file`; depth in 5000 per metre, on the image's grid."""

from pathlib import Path

from primaldepth.core.errors import FileFormatError
from primaldepth.io.sequences.base import Content, Recording, Shot, nearest_in_time

MAX_DIFFERENCE = 0.02  # seconds between depth and image


def recognise(root: Path) -> bool:
    """Both lists are there."""
    return (root / "depth.txt").is_file() and (root / "rgb.txt").is_file()


def read(root: Path) -> Recording:
    """Each depth map with the image nearest in time; those farther than 0.02 s are left out."""
    depths, images = _listed(root / "depth.txt"), _listed(root / "rgb.txt")
    partners = nearest_in_time([t for t, _ in depths], [t for t, _ in images], MAX_DIFFERENCE)
    pairs = [
        (depth, images[index][1])
        for (_, depth), index in zip(depths, partners, strict=True)
        if index is not None
    ]
    lost = len(depths) - len(pairs)
    if not pairs:
        raise FileFormatError(
            f"{root}: {len(depths)} depth maps and {len(images)} images, but none within {MAX_DIFFERENCE} s "
            "of each other; check the time stamps in depth.txt and rgb.txt"
        )
    notes = [f"{lost} of {len(depths)} depth maps have no image within {MAX_DIFFERENCE} s"] if lost else []
    shots = [_shot(root / depth, root / image) for depth, image in pairs]
    return Recording("TUM RGB-D", root, shots, "5000", notes)


def _shot(depth: Path, image: Path) -> Shot:
    return Shot(depth.stem, lambda: Content(depth, image), (depth, image))


def _listed(path: Path) -> list[tuple[float, str]]:
    """(seconds, file), by time."""
    rows: list[tuple[float, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            rows.append((float(words[0]), words[1]))
        except (ValueError, IndexError) as error:
            raise FileFormatError(f"{path}: line {number} is not 'timestamp file': {line[:60]!r}") from error
    if not rows:
        raise FileFormatError(f"{path}: lists no file; record or export the sequence again")
    return sorted(rows)
