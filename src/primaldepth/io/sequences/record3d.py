"""Record3D's export as EXR and JPG: depth/N.exr in metres, rgb/N.jpg, and metadata with camera and poses."""

from pathlib import Path
from typing import Any

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.poses import Pose
from primaldepth.io.files import as_object, read_json
from primaldepth.io.sequences.base import (
    Content,
    Recording,
    Shot,
    check_inside,
    image_size,
    listed_numbers,
    numbered,
    same_number,
    scaled_camera,
)
from primaldepth.io.sequences.poses import arkit_quaternion

_METADATA = ("metadata.json", "metadata")


def recognise(root: Path) -> bool:
    """Return whether a folder has EXR depth beside metadata, itself or in EXR_RGBD."""
    return _home(root) is not None


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair depth map N.exr with image N."""
    home = _home(root) or root
    path, values = _metadata(home)
    images = {path.stem: path for path in numbered(home / "rgb", ".jpg", ".jpeg", ".png")}
    depths = {path.stem: path for path in numbered(home / "depth", ".exr")}
    names, notes = same_number(home, depths, images)
    shots = [_shot(depths[name], images[name], path, values) for name in names]
    return Recording("Record3D", root, shots, "m", notes)


def _home(root: Path) -> Path | None:
    for folder in (root, root / "EXR_RGBD"):
        places = (folder, folder.parent)
        described = any((place / name).is_file() for place in places for name in _METADATA)
        if described and numbered(folder / "depth", ".exr"):
            return folder
    return None


def _metadata(home: Path) -> tuple[Path, dict[str, Any]]:
    """Return the place of the metadata and its content."""
    path = next(p / name for p in (home, home.parent) for name in _METADATA if (p / name).is_file())
    check_inside(path.parent, path)
    return path, as_object(read_json(path, what="readable JSON file of metadata", limits=RECORDED), path)


def _shot(depth: Path, image: Path, path: Path, values: dict[str, Any]) -> Shot:
    def content() -> Content:
        cameras = cameras_of(path, values, depth.stem, image_size(image))
        return Content(depth, image, None, cameras, pose=pose_of(path, values, depth.stem))

    return Shot(depth.stem, content, (depth, image))


def pose_of(path: Path, values: dict[str, Any], number: str) -> Pose | None:
    """Return where the camera stood for the image of that number; None if the metadata do not say."""
    found = _own(_rows(path, values, "poses"), number)
    return arkit_quaternion(found[0], path) if found else None


def cameras_of(path: Path, values: dict[str, Any], number: str, size: tuple[int, int]) -> Cameras | None:
    """Return the camera of a frame's own numbers, else of K, scaled to the image; None if there is neither.

    K stands column by column.
    """
    found = _own(_rows(path, values, "perFrameIntrinsicCoeffs"), number)
    K = _rows(path, values, "K")
    if found:
        numbers = listed_numbers(path, "perFrameIntrinsicCoeffs", found[0], 4)
    elif K:
        matrix = listed_numbers(path, "K", K, 9)
        numbers = [matrix[0], matrix[4], matrix[6], matrix[7]]
    else:
        return None
    width, height = listed_numbers(path, "w and h", [values.get("w", size[0]), values.get("h", size[1])], 2)
    return scaled_camera(path, numbers, (width, height), size)


def _own(rows: list[Any], number: str) -> list[Any]:
    """Return the entry for this frame in a list that has one for each; an empty list if there is none."""
    return rows[int(number) : int(number) + 1] if number.isdecimal() else []


def _rows(path: Path, values: dict[str, Any], name: str) -> list[Any]:
    found = values.get(name) or []
    if not isinstance(found, list):
        raise FileFormatError(path, f"'{name}' is {shortened(found)}, expected a list")
    return found
