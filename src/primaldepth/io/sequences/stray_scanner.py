"""StrayScanner: depth/*.png in mm, confidence/*.png, rgb.mp4 or rgb/*, camera_matrix.csv, odometry.csv."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError
from primaldepth.geometry.poses import Y_UP
from primaldepth.io.cameras.camera_file import matrix_numbers
from primaldepth.io.files import finite_numbers, read_file
from primaldepth.io.sequences.base import (
    Content,
    Picture,
    Recording,
    Shot,
    check_inside,
    ends,
    image_size,
    matrix_camera,
    missing_numbers,
    number,
    numbered,
)
from primaldepth.io.sequences.poses import quaternion_pose
from primaldepth.io.sequences.video import Video

IMAGES = (".png", ".jpg", ".jpeg")
_ODOMETRY = ("x", "y", "z", "qx", "qy", "qz", "qw")
SPARE = 2  # frames a device may add after the last depth map


def recognise(root: Path) -> bool:
    """Return whether a folder has depth maps beside a camera matrix."""
    return (root / "depth").is_dir() and (root / "camera_matrix.csv").is_file()


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair depth maps and images by number, in order where numbers do not help; confidence by name."""
    depths = numbered(root / "depth", ".png", ".npy")
    if not depths:
        raise FileFormatError(root / "depth", "no .png or .npy depth map", "export the recording again")
    depths, guides, files, notes = _paired(root, depths)
    check_inside(root, root / "camera_matrix.csv")
    numbers, poses = matrix_numbers(root / "camera_matrix.csv"), _odometry(root)
    shots = [
        _shot(root, depth, guide, numbers, source, poses.get(number(depth)[-1]))
        for depth, guide, source in zip(depths, guides, files, strict=True)
    ]
    return Recording("StrayScanner", root, shots, "mm", notes)


def _paired(
    root: Path, depths: list[Path]
) -> tuple[list[Path], list[Callable[[], Picture]], list[Path], list[str]]:
    """Return (depth maps, a function that gives the image of each, the file each comes from, notes)."""
    images = numbered(root / "rgb", *IMAGES)
    if images:
        depths, images, notes = _by_number(depths, images)
        readers: list[Callable[[], Picture]] = [lambda path=path: path for path in images]  # type: ignore[misc]
        return depths, readers, images, notes
    films = [path for path in sorted(root.glob("rgb.*")) if path.is_file()]
    if not films:
        found = ", ".join(sorted(path.name for path in root.iterdir())[:12])
        raise FileFormatError(root, "neither rgb.mp4 nor images in rgb/", f"found {found}")
    check_inside(root, films[0])
    film = Video(films[0])
    indices, notes = _frames(depths, film)
    return depths, [film.reader(index) for index in indices], [films[0]] * len(depths), notes


def _frames(depths: list[Path], film: Video) -> tuple[Sequence[int], list[str]]:
    """Return the frame of each depth map: that of its number where there are more frames, else in order."""
    frames, count = film.count(), len(depths)
    if frames <= count:
        return range(count), missing_numbers(depths)
    numbers = [found for path in depths if isinstance(found := number(path)[-1], int)]
    counts = f"{count} depth maps but {frames} frames"
    if len(set(numbers)) == count and 0 < frames - max(numbers) <= SPARE + 1:
        return numbers, [f"{counts}: each goes with the frame of its number"]
    if frames - count > SPARE:
        raise film.unpaired(frames, count)
    return range(count), [f"{counts}: the first {count} are used, in order", *missing_numbers(depths)]


def _by_number(depths: list[Path], images: list[Path]) -> tuple[list[Path], list[Path], list[str]]:
    """Pair files of one number; in order where none fits, or few do and there are as many of both."""
    as_many, ours = len(depths) == len(images), {number(path) for path in depths}
    found = {number(path): path for path in images}
    pairs = [(path, found[number(path)]) for path in depths if number(path) in found]
    unique = len(ours) == len(depths) and len(found) == len(images)
    if as_many and (2 * len(pairs) <= len(depths) or not unique or _in_step(depths, images)):
        return depths, images, [] if ours == found.keys() else [f"paired in order, {ends(depths, images)}"]
    counts = f"{len(depths)} depth maps {'and' if as_many else 'but'} {len(images)} images"
    if not pairs:
        few = min(len(depths), len(images))
        return depths[:few], images[:few], [f"{counts}: the first {few} are used, in order"]
    left_out = len(pairs) < max(len(depths), len(images))
    notes = [f"{counts}: the {len(pairs)} of one number are used"] if left_out else []
    return [path for path, _ in pairs], [path for _, path in pairs], notes


def _in_step(depths: list[Path], images: list[Path]) -> bool:
    """Return whether all pairs differ by the same number, such as 1 if one counts from 0 and one from 1."""
    steps: set[int | None] = set()
    for depth, image in zip(depths, images, strict=True):
        here, there = number(depth)[-1], number(image)[-1]
        steps.add(there - here if isinstance(here, int) and isinstance(there, int) else None)
    return len(steps) == 1 and None not in steps


def _shot(
    root: Path,
    depth: Path,
    guide: Callable[[], Picture],
    K: list[float],
    source: Path,
    place: list[str] | None,
) -> Shot:
    trust = root / "confidence" / f"{depth.stem}.png"
    confidence = trust if trust.is_file() else None

    def content() -> Content:
        image = guide()
        width, height = image_size(image) if isinstance(image, Path) else (image.shape[1], image.shape[0])
        cameras = matrix_camera(root / "camera_matrix.csv", K, (width, height))
        pose = None if place is None else quaternion_pose(place, root / "odometry.csv", Y_UP)
        return Content(depth, image, confidence, cameras, pose=pose)

    return Shot(depth.stem, content, (depth, source, *([confidence] if confidence else [])))


def _odometry(root: Path) -> Mapping[int | str, list[str]]:
    """Return position and quaternion by the number of the frame; the camera has y down, its world y up."""
    path = root / "odometry.csv"
    if not path.is_file():
        return {}
    check_inside(root, path)
    text = read_file(path, RECORDED.size).decode(errors="replace")
    lines = [[word.strip() for word in line.split(",")] for line in text.splitlines() if line.strip()]
    head, rows = (lines or [[]])[0], lines[1:]
    if not {"frame", *_ODOMETRY} <= set(head):
        hint = "export the recording again, or remove the file"
        raise FileFormatError(path, f"the first line does not name frame, {', '.join(_ODOMETRY)}", hint)
    if any(len(row) != len(head) for row in rows):
        raise FileFormatError(path, "a line is longer or shorter than the first", "export it again")
    frames = finite_numbers([row[head.index("frame")] for row in rows], path, "the number of a frame")
    columns = [head.index(name) for name in _ODOMETRY]
    return {int(at): [row[i] for i in columns] for at, row in zip(frames, rows, strict=True)}
