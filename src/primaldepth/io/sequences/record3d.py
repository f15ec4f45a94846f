"""Record3D's export as EXR and JPG: depth/N.exr in metres, rgb/N.jpg, and metadata with camera and poses."""

from pathlib import Path
from typing import Any

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.pinhole import Pinhole
from primaldepth.geometry.poses import Pose
from primaldepth.io.files import read_json
from primaldepth.io.sequences.base import (
    Content,
    Recording,
    Shot,
    check_inside,
    finite_numbers,
    image_size,
    numbered,
)
from primaldepth.io.sequences.poses import arkit_quaternion

_METADATA = ("metadata.json", "metadata")


def recognise(root: Path) -> bool:
    """EXR depth beside metadata, here or in EXR_RGBD."""
    return _home(root) is not None


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Depth map N.exr with image N."""
    home = _home(root) or root
    path, values = _metadata(home)
    images = {path.stem: path for path in numbered(home / "rgb", ".jpg", ".jpeg", ".png")}
    depths = numbered(home / "depth", ".exr")
    pairs = [(depth, images[depth.stem]) for depth in depths if depth.stem in images]
    if not pairs:
        raise FileFormatError(
            home, f"{len(depths)} depth maps and {len(images)} images, but no two of the same number"
        )
    lost = len(depths) - len(pairs)
    notes = [f"{lost} of {len(depths)} depth maps have no image of the same number"] if lost else []
    shots = [_shot(depth, image, path, values) for depth, image in pairs]
    return Recording("Record3D", root, shots, "m", notes)


def _home(root: Path) -> Path | None:
    for folder in (root, root / "EXR_RGBD"):
        places = (folder, folder.parent)
        described = any((place / name).is_file() for place in places for name in _METADATA)
        if described and numbered(folder / "depth", ".exr"):
            return folder
    return None


def _metadata(home: Path) -> tuple[Path, dict[str, Any]]:
    """Where the metadata lies, and what it holds."""
    path = next(p / name for p in (home, home.parent) for name in _METADATA if (p / name).is_file())
    check_inside(path.parent, path)
    values = read_json(path, what="readable JSON file of metadata", limits=RECORDED)
    if not isinstance(values, dict):
        raise FileFormatError(path, f"found a {type(values).__name__}, expected an object with 'K'")
    return path, values


def _shot(depth: Path, image: Path, path: Path, values: dict[str, Any]) -> Shot:
    def content() -> Content:
        camera = camera_of(path, values, depth.stem, image_size(image))
        return Content(depth, image, None, camera, pose=pose_of(path, values, depth.stem))

    return Shot(depth.stem, content, (depth, image))


def pose_of(path: Path, values: dict[str, Any], number: str) -> Pose | None:
    """Return where the camera stood for the image of that number; None if the metadata do not say."""
    found = _own(_rows(path, values, "poses"), number)
    return arkit_quaternion(found[0], path) if found else None


def camera_of(path: Path, values: dict[str, Any], number: str, size: tuple[int, int]) -> Pinhole | None:
    """The frame's own numbers, else K (column by column), scaled to the image; None if there is neither."""
    found = _own(_rows(path, values, "perFrameIntrinsicCoeffs"), number)
    K = _rows(path, values, "K")
    if found:
        fx, fy, cx, cy = _numbers(path, "perFrameIntrinsicCoeffs", found[0], 4)
    elif K:
        matrix = _numbers(path, "K", K, 9)
        fx, fy, cx, cy = matrix[0], matrix[4], matrix[6], matrix[7]
    else:
        return None
    width, height = _numbers(path, "w and h", [values.get("w", size[0]), values.get("h", size[1])], 2)
    if min(width, height) < 1:
        raise FileFormatError(path, f"'w' and 'h' are {width:g} and {height:g}, expected at least 1")
    sx, sy = size[0] / width, size[1] / height
    return Pinhole(fx * sx, fy * sy, (cx + 0.5) * sx, (cy + 0.5) * sy, *size)


def _own(rows: list[Any], number: str) -> list[Any]:
    """Return the entry for this frame in a list that has one for each; an empty list if there is none."""
    return rows[int(number) : int(number) + 1] if number.isdecimal() else []


def _rows(path: Path, values: dict[str, Any], name: str) -> list[Any]:
    found = values.get(name) or []
    if not isinstance(found, list):
        raise FileFormatError(path, f"'{name}' is {shortened(found)}, expected a list")
    return found


def _numbers(path: Path, name: str, found: Any, count: int) -> list[float]:
    if not isinstance(found, list) or len(found) != count:
        raise FileFormatError(path, f"'{name}' is {shortened(found)}, expected {count} numbers")
    return finite_numbers(found, f"{path}: '{name}'", f"{count} numbers")
