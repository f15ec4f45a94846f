"""Record3D's export as EXR and JPG: depth/N.exr in metres, rgb/N.jpg, and metadata with the camera."""

import json
from pathlib import Path
from typing import Any

from primaldepth.core.errors import FileFormatError
from primaldepth.io.pinhole import Pinhole
from primaldepth.io.sequences.base import Content, Recording, Shot, image_size, numbered

_METADATA = ("metadata.json", "metadata")


def recognise(root: Path) -> bool:
    """EXR depth beside metadata, here or in EXR_RGBD."""
    return _home(root) is not None


def read(root: Path) -> Recording:
    """Depth map N.exr with image N."""
    home = _home(root) or root
    values = _metadata(home)
    images = {path.stem: path for path in numbered(home / "rgb", ".jpg", ".jpeg", ".png")}
    depths = numbered(home / "depth", ".exr")
    pairs = [(depth, images[depth.stem]) for depth in depths if depth.stem in images]
    if not pairs:
        raise FileFormatError(
            f"{home}: {len(depths)} depth maps and {len(images)} images, but no two of the same number"
        )
    lost = len(depths) - len(pairs)
    notes = [f"{lost} of {len(depths)} depth maps have no image of the same number"] if lost else []
    shots = [_shot(depth, image, values) for depth, image in pairs]
    return Recording("Record3D", root, shots, "m", notes)


def _home(root: Path) -> Path | None:
    for folder in (root, root / "EXR_RGBD"):
        places = (folder, folder.parent)
        described = any((place / name).is_file() for place in places for name in _METADATA)
        if described and numbered(folder / "depth", ".exr"):
            return folder
    return None


def _metadata(home: Path) -> dict[str, Any]:
    path = next(p / name for p in (home, home.parent) for name in _METADATA if (p / name).is_file())
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path}: not readable JSON ({error}); export the recording again") from error
    if not isinstance(values, dict):
        raise FileFormatError(f"{path}: found a {type(values).__name__}, expected an object with 'K'")
    return values


def _shot(depth: Path, image: Path, values: dict[str, Any]) -> Shot:
    def content() -> Content:
        return Content(depth, image, None, _camera(values, depth.stem, image_size(image)))

    return Shot(depth.stem, content, (depth, image))


def _camera(values: dict[str, Any], number: str, size: tuple[int, int]) -> Pinhole | None:
    """The frame's own numbers, else K (column by column), scaled to the image; None if there is neither."""
    own, K = values.get("perFrameIntrinsicCoeffs"), values.get("K")
    try:
        width, height = float(values.get("w", size[0])), float(values.get("h", size[1]))
        if own and number.isdecimal() and int(number) < len(own):
            fx, fy, cx, cy = (float(value) for value in own[int(number)])
        elif K:
            fx, fy, cx, cy = (float(K[index]) for index in (0, 4, 6, 7))
        else:
            return None
        sx, sy = size[0] / width, size[1] / height
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        raise FileFormatError(
            f"metadata of frame {number}: 'K', 'w' or 'h' is not as expected ({error})"
        ) from error
    return Pinhole(fx * sx, fy * sy, (cx + 0.5) * sx, (cy + 0.5) * sy, *size)
