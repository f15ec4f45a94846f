"""Depth maps and images in one folder, told apart by a word in their names.

7-Scenes has frame-000000.depth.png, frame-000000.color.png and the pose in frame-000000.pose.txt; names
such as desk_depth_mm.png and desk_rgb.jpg are read too.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from primaldepth.io.files import read_text
from primaldepth.io.formats import CODECS
from primaldepth.io.sequences.base import Content, Recording, Shot, check_count, numbered
from primaldepth.io.sequences.poses import matrix_pose

_READABLE = tuple(extension for codec in CODECS for extension in codec.extensions)
_DEPTH = frozenset(("depth", "depthmap", "disp", "disparity"))
_IMAGE = frozenset(("color", "colour", "rgb", "image", "img", "guide"))
_UNITS = {"mm": "mm", "m": "m"}
_Key = tuple[str, ...]


def recognise(root: Path) -> bool:
    """Return whether a folder holds a depth map and an image whose names differ by such a word only."""
    if not root.is_dir():
        return False
    depths, images = _sorted(numbered(root, *_READABLE))
    return not depths.keys().isdisjoint(images)


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair depth maps with the images that are named alike."""
    depths, images = _sorted(numbered(root, *_READABLE))
    pairs = [(key, depths[key], images[key]) for key in depths if key in images]
    check_count(root, len(pairs))
    lost = len(depths) + len(images) - 2 * len(pairs)
    notes = [f"{lost} files have no partner that is named alike and are left out"] if lost else []
    shots = [_shot("_".join(key) or depth.stem, depth, image) for key, depth, image in pairs]
    return Recording("depth and images in one folder", root, shots, _unit(root, depths.values()), notes)


def _shot(name: str, depth: Path, image: Path) -> Shot:
    file = depth.with_name(f"{re.sub('depth', 'pose', depth.stem)}.txt")
    placed = file != depth and file.is_file()

    def content() -> Content:
        pose = matrix_pose(read_text(file).split(), file) if placed else None
        return Content(depth, image, pose=pose)

    return Shot(name, content, (depth, image, *([file] if placed else [])))


def _sorted(paths: Iterable[Path]) -> tuple[dict[_Key, Path], dict[_Key, Path]]:
    """Return (depth maps, images) by the words of their names, without those that tell the two apart."""
    depths: dict[_Key, Path] = {}
    images: dict[_Key, Path] = {}
    for path in paths:
        words = _words(path)
        key = tuple(word for word in words if word.lower() not in {*_DEPTH, *_IMAGE, *_UNITS})
        told = {word.lower() for word in words}
        if told & _DEPTH and not told & _IMAGE:
            depths.setdefault(key, path)
        elif told & _IMAGE and not told & _DEPTH:
            images.setdefault(key, path)
    return depths, images


def _words(path: Path) -> list[str]:
    return [word for word in re.split(r"[._\-\s]+", path.stem) if word]


def _unit(root: Path, depths: Iterable[Path]) -> str | None:
    """Return the unit that all names state, or None if none states one."""
    found = {_UNITS.get(_words(path)[-1].lower()) for path in depths}
    return found.pop() if len(found) == 1 else None
