"""The cameras of a recording, and the file that describes them.

Inside this package pixel centres lie at half-integers: pixel (row i, column j) has its centre at
x = j + 0.5, y = i + 0.5, and the image covers [0, width] x [0, height]. OpenCV and most calibration
tools put the centre of the first pixel at (0, 0); `PixelCentres` names which of the two a matrix uses.

The camera file is JSON. The guide's camera is enough where depth and image share one::

    {"guide": {"fx": 600.0, "fy": 600.0, "cx": 320.0, "cy": 240.0, "width": 640, "height": 480}}

Everything else may be left out: `distortion` of a camera, a `depth` camera with `depth_to_guide`
(X_guide = R X_depth + t), the `units` of its translation (m or mm), the `pixel_centres` of cx and cy (half or
integer).
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from primaldepth.core.documents import parse_json
from primaldepth.core.errors import SHOWN, FileFormatError, InputError, shortened
from primaldepth.core.settings import Settings
from primaldepth.geometry.calibration_values import MAX_CALIBRATION
from primaldepth.geometry.distortion import Distortion, Model
from primaldepth.geometry.intrinsics import SHIFT, Intrinsics, PixelCentres
from primaldepth.geometry.motion import NO_SHIFT, NO_TURN, Rotation, Vector, as_tuples, check_motion
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import open_file, read_text, reading
from primaldepth.io.pinhole import check_central

__all__ = ["Cameras", "Intrinsics", "PixelCentres", "read_cameras", "read_matrix", "write_cameras"]


@dataclass(frozen=True, slots=True)
class Cameras:
    """The cameras of one recording; the guide's is the one the result is seen from.

    Args:
        guide: camera of the image.
        depth: camera of the depth map, or None where it shares the guide's, sampled more coarsely.
        rotation: rows of R in X_guide = R X_depth + t.
        translation: t in metres, the depth camera seen from the guide's.
    """

    guide: Intrinsics
    depth: Intrinsics | None = None
    rotation: Rotation = NO_TURN
    translation: Vector = NO_SHIFT

    def __post_init__(self) -> None:
        check_motion(self.rotation, self.translation)


_YAML_KEY = re.compile(r"^[\"']?\w+[\"']?:(?=\s|$)", re.MULTILINE)  # the nine numbers of a matrix have none
_MOST_MATRIX = 2**16  # bytes of a file with nine numbers and comments
_Number = Annotated[float, Field(strict=True)]
_Count = Annotated[int, Field(strict=True)]
_Numbers = Annotated[list[_Number], Field(min_length=3, max_length=3)]


class _LensKeys(Settings):
    model: str
    coefficients: tuple[_Number, ...] = ()


class _IntrinsicsKeys(Settings):
    fx: _Number
    fy: _Number
    cx: _Number
    cy: _Number
    width: _Count
    height: _Count
    distortion: dict[str, Any] | None = None


class _MotionKeys(Settings):
    rotation: Annotated[list[_Numbers], Field(min_length=3, max_length=3)]
    translation: _Numbers


class _CamerasKeys(Settings):
    guide: dict[str, Any]
    depth: dict[str, Any] | None = None
    depth_to_guide: dict[str, Any] | None = None
    units: Literal["m", "mm"] = "m"
    pixel_centres: PixelCentres = "half"


def read_cameras(path: str | os.PathLike[str], guide_size: tuple[int, int] | None = None) -> Cameras:
    """Read a camera file: JSON as at the top of this module, or a camera_info of ROS, also as .yaml.

    Args:
        guide_size: (width, height); then the file may also hold just the 3x3 matrix of a guide of that size.
    """
    if Path(path).is_dir():
        raise FileFormatError(f"{path}: a folder, expected one camera file, which holds for every frame")
    text = read_text(path, MAX_CALIBRATION)
    if _is_camera_info(Path(path), text):
        from primaldepth.geometry.ros import read_ros

        return read_ros(path)
    if guide_size is not None and not text.lstrip().startswith("{"):
        return Cameras(_central(read_matrix(Path(path), *guide_size), path))
    return _from_keys(parse_json(text, path, what="readable JSON camera file"), path)


def is_list(path: Path) -> bool:
    """Whether a JSON file holds a list: the rows of a matrix, not cameras by name."""
    with open_file(path) as file, reading(path):
        return file.read(256).lstrip()[:1] == b"["


def _is_camera_info(path: Path, text: str) -> bool:
    """JSON by the key for the lens, which nothing else here has, YAML by its name or by any key."""
    if text.lstrip().startswith("{"):
        return '"distortion_model"' in text
    return path.suffix.lower() in (".yaml", ".yml") or _YAML_KEY.search(text) is not None


def _from_keys(values: Any, path: str | os.PathLike[str]) -> Cameras:
    """What a JSON file holds."""
    if not isinstance(values, dict):
        raise FileFormatError(
            f'{path}: found a {type(values).__name__}, expected an object such as {{"guide": ...}}'
        )
    keys = _CamerasKeys.parse(values, str(path))
    guide = _camera(keys.guide, f"{path}: guide", keys.pixel_centres)
    if (keys.depth is None) != (keys.depth_to_guide is None):
        found, missing = ("depth", "depth_to_guide")[:: 1 if keys.depth is not None else -1]
        raise FileFormatError(f"{path}: found '{found}' without '{missing}'; give both or neither")
    if keys.depth is None or keys.depth_to_guide is None:
        return Cameras(guide)
    depth = _camera(keys.depth, f"{path}: depth", keys.pixel_centres)
    motion = _MotionKeys.parse(keys.depth_to_guide, f"{path}: depth_to_guide")
    scale = {"m": 1.0, "mm": 1e-3}[keys.units]
    try:
        return Cameras(
            guide, depth, as_tuples(motion.rotation), as_tuples(scale * np.array(motion.translation))
        )
    except InputError as error:
        raise FileFormatError(f"{path}: depth_to_guide: {error}") from error


def _central(camera: Intrinsics, path: str | os.PathLike[str]) -> Intrinsics:
    """Itself: a matrix alone does not say of which resolution it is, but where the middle is."""
    hint = "is the matrix that of another resolution? If it is not, give a JSON camera file"
    check_central(path, camera.cx, camera.cy, (camera.width, camera.height), hint)
    return camera


def _camera(values: dict[str, Any], where: str, centres: PixelCentres) -> Intrinsics:
    keys = _IntrinsicsKeys.parse(values, where)
    shift = SHIFT[centres]
    try:
        lens = None if keys.distortion is None else _lens(keys.distortion)
        return Intrinsics(keys.fx, keys.fy, keys.cx + shift, keys.cy + shift, keys.width, keys.height, lens)
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from error


def _lens(values: dict[str, Any]) -> Distortion | None:
    keys = _LensKeys.parse(values, "distortion")
    if keys.model != "none":
        return Distortion(cast("Model", keys.model), keys.coefficients)
    if any(keys.coefficients):
        found = shortened(keys.coefficients)
        raise InputError(f"distortion: model 'none' with coefficients {found}; name it")
    return None


def write_cameras(path: str | Path, cameras: Cameras | Intrinsics) -> None:
    """Write what `read_cameras` reads; one camera is the guide's."""
    cameras = Cameras(cameras) if isinstance(cameras, Intrinsics) else cameras
    values: dict[str, Any] = {"guide": _plain(cameras.guide)}
    if cameras.depth is not None:
        values["depth"] = _plain(cameras.depth)
        values["depth_to_guide"] = {
            "rotation": [list(row) for row in cameras.rotation],
            "translation": list(cameras.translation),
        }
        values["units"] = "m"
    write_bytes(path, (json.dumps(values, indent=2) + "\n").encode("utf-8"))


def _plain(camera: Intrinsics) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: getattr(camera, name) for name in ("fx", "fy", "cx", "cy", "width", "height")
    }
    if camera.distortion is not None:
        lens = camera.distortion
        values["distortion"] = {"model": lens.model, "coefficients": list(lens.coefficients)}
    return values


def read_matrix(
    path: str | Path, width: int, height: int, *, pixel_centres: PixelCentres = "integer"
) -> Intrinsics:
    """Read a text file with the nine numbers of a 3x3 camera matrix, row by row.

    Args:
        path: numbers separated by white space, commas or semicolons; brackets and lines after # are ignored.
        width: columns of the image the matrix was calibrated on.
        height: rows of that image.
        pixel_centres: the file's convention; such files come from OpenCV-like tools, hence "integer".
    """
    lines = read_text(path, _MOST_MATRIX).splitlines()
    text = " ".join(line.split("#")[0] for line in lines)
    words = text.translate(str.maketrans(",;[]", "    ")).split()
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise FileFormatError(
            f"{path}: {str(error)[:SHOWN]}; expected the nine numbers of a 3x3 camera matrix"
        ) from error
    if len(numbers) != 9:
        raise FileFormatError(f"{path}: {len(numbers)} numbers, expected the nine of a 3x3 camera matrix")
    matrix = np.reshape(numbers, (3, 3))
    try:
        return Intrinsics.from_matrix(matrix, width, height, pixel_centres=pixel_centres)
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error
