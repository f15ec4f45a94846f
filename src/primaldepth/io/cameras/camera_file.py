"""The camera file: JSON that describes the cameras of a recording.

The guide's camera is enough where depth and image share one::

    {"guide": {"fx": 600.0, "fy": 600.0, "cx": 320.0, "cy": 240.0, "width": 640, "height": 480}}

Everything else may be left out: `distortion` of a camera, a `depth` camera with `depth_to_guide`
(X_guide = R X_depth + t; without `depth` it is that of a point cloud), the `units` of its translation (m or
mm), the `pixel_centres` of cx and cy (half or integer).
"""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from primaldepth.core.documents import parse_json
from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.core.settings import Settings
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.distortion import Distortion, Model
from primaldepth.geometry.intrinsics import SHIFT, Intrinsics, PixelCentres
from primaldepth.geometry.motion import as_tuples
from primaldepth.io.atomic import write_bytes
from primaldepth.io.cameras.calibration_values import MAX_CALIBRATION, check_central
from primaldepth.io.files import PathLike, as_object, finite_numbers, naming, read_text

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


def read_cameras(
    path: PathLike,
    guide_size: tuple[int, int] | None = None,
    depth_size: tuple[int, int] | None = None,
) -> Cameras:
    """Read a camera file: JSON as at the top of this module, a camera_info of ROS, or a maker's export.

    Exports are the text of `rs-enumerate-devices -c` or the SDK's values as JSON (RealSense), and the
    device's calibration (Azure Kinect); the sizes choose among the modes of the camera that they list.

    Args:
        path: of the camera file.
        guide_size: (width, height); then the file may also hold just the 3x3 matrix of a guide of that size.
        depth_size: (width, height) of the depth map.

    Returns:
        The cameras of guide and, if the file has one, of the depth.

    Raises:
        InputError: if the file is missing, damaged, or does not describe such cameras.

    Example:
        >>> from primaldepth.geometry.cameras import Cameras, Intrinsics
        >>> from primaldepth.io.cameras.camera_file import read_cameras, write_cameras
        >>> color, depth = Intrinsics.guess(640, 480), Intrinsics.guess(160, 120)
        >>> write_cameras("cameras.json", Cameras(color, depth, translation=(0.05, 0.0, 0.0)))
        >>> read_cameras("cameras.json").translation
        (0.05, 0.0, 0.0)
    """
    if Path(path).is_dir():
        raise FileFormatError(path, "a folder, expected one camera file, which holds for every frame")
    text = read_text(path, MAX_CALIBRATION)
    if is_export(text):
        return _from_export(path, text, guide_size, depth_size)
    if _is_camera_info(Path(path), text):
        from primaldepth.io.cameras.ros import read_ros

        return read_ros(path)
    if guide_size is not None and not text.lstrip().startswith("{"):
        camera = read_matrix(path, *guide_size)
        hint = "is the matrix that of another resolution? If it is not, give a JSON camera file"
        check_central(path, camera.cx, camera.cy, guide_size, hint)
        return Cameras(camera)
    return _from_keys(parse_json(text, path, what="readable JSON camera file"), path)


def is_export(text: str) -> bool:
    """Return whether a text is a maker's export of both cameras, which may list several modes."""
    words = ('"CalibrationInformation"', '"extrinsics"', '"depth_to_color"')
    return "Intrinsic of " in text or (text.lstrip().startswith("{") and any(each in text for each in words))


def _from_export(
    path: PathLike,
    text: str,
    guide_size: tuple[int, int] | None,
    depth_size: tuple[int, int] | None,
) -> Cameras:
    from primaldepth.io.cameras.azure_kinect import read_azure_kinect
    from primaldepth.io.cameras.realsense import read_realsense

    if '"CalibrationInformation"' not in text:
        return read_realsense(path, depth_size=depth_size, guide_size=guide_size)
    if depth_size is None or guide_size is None:
        return read_azure_kinect(path)
    return read_azure_kinect(path, depth_size=depth_size, guide_size=guide_size)


def needs_sizes(path: Path) -> bool:
    """Return whether a file needs the sizes of the images to say its cameras: a matrix, or an export."""
    if path.suffix.lower() != ".json":
        return True
    text = read_text(path, MAX_CALIBRATION)
    return text.lstrip().startswith("[") or is_export(text)


def _is_camera_info(path: Path, text: str) -> bool:
    """Return whether this is a CameraInfo: JSON by the key for the lens, YAML by its name or by any key."""
    if text.lstrip().startswith("{"):
        return '"distortion_model"' in text
    return path.suffix.lower() in (".yaml", ".yml") or _YAML_KEY.search(text) is not None


def _from_keys(values: Any, path: PathLike) -> Cameras:
    """Return the cameras of a JSON file; raise if keys are missing or wrong."""
    found = as_object(values, path)
    if "fx" in found:
        raise FileFormatError(
            path, "the numbers of a camera, but not of which", 'put them in {"guide": {...}}'
        )
    if found and not any(key in _CamerasKeys.model_fields or isinstance(found[key], dict) for key in found):
        raise FileFormatError(
            path,
            f"found the keys {shortened(', '.join(found))}, those of another program",
            'expected {"guide": {...}} with fx, fy, cx, cy, width and height',
        )
    keys = _CamerasKeys.parse(values, str(path))
    guide = _camera(keys.guide, f"{path}: guide", keys.pixel_centres)
    if keys.depth_to_guide is None:
        if keys.depth is not None:
            raise FileFormatError(path, "found 'depth' without 'depth_to_guide'", "give both or neither")
        return Cameras(guide)
    depth = None if keys.depth is None else _camera(keys.depth, f"{path}: depth", keys.pixel_centres)
    motion = _MotionKeys.parse(keys.depth_to_guide, f"{path}: depth_to_guide")
    scale = {"m": 1.0, "mm": 1e-3}[keys.units]
    with naming(f"{path}: depth_to_guide"):
        return Cameras(
            guide, depth, as_tuples(motion.rotation), as_tuples(scale * np.array(motion.translation))
        )


def _camera(values: dict[str, Any], where: str, centres: PixelCentres) -> Intrinsics:
    keys = _IntrinsicsKeys.parse(values, where)
    shift = SHIFT[centres]
    with naming(where):
        lens = None if keys.distortion is None else _lens(keys.distortion)
        return Intrinsics(keys.fx, keys.fy, keys.cx + shift, keys.cy + shift, keys.width, keys.height, lens)


def _lens(values: dict[str, Any]) -> Distortion | None:
    keys = _LensKeys.parse(values, "distortion")
    if keys.model != "none":
        return Distortion(cast("Model", keys.model), keys.coefficients)
    if any(keys.coefficients):
        found = shortened(keys.coefficients)
        raise InputError("distortion", f"model 'none' with coefficients {found}", "name it")
    return None


def write_cameras(path: str | Path, cameras: Cameras | Intrinsics) -> None:
    """Write cameras as a JSON file that `read_cameras` reads.

    Args:
        path: of the file.
        cameras: both cameras, or the guide's alone.
    """
    cameras = Cameras(cameras) if isinstance(cameras, Intrinsics) else cameras
    values: dict[str, Any] = {"guide": _plain(cameras.guide)}
    if cameras.depth is not None:
        values["depth"] = _plain(cameras.depth)
    if cameras.depth is not None or cameras.moved:
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
    path: PathLike, width: int, height: int, *, pixel_centres: PixelCentres = "integer"
) -> Intrinsics:
    """Read a text file with the nine numbers of a 3x3 camera matrix, row by row.

    Args:
        path: numbers separated by white space, commas or semicolons; brackets and lines after # are ignored.
        width: columns of the image the matrix was calibrated on.
        height: rows of that image.
        pixel_centres: the file's convention; such files come from OpenCV-like tools, hence "integer".

    Returns:
        The camera, without distortion.

    Raises:
        FileFormatError: if the file does not hold such a matrix.

    Example:
        >>> from pathlib import Path
        >>> from primaldepth.io.cameras.camera_file import read_matrix
        >>> _ = Path("K.txt").write_text("600 0 319.5, 0 600 239.5, 0 0 1")
        >>> read_matrix("K.txt", 640, 480).cx  # OpenCV's pixel centres are half a pixel lower
        320.0
    """
    matrix = np.reshape(matrix_numbers(path), (3, 3))
    with naming(path):
        return Intrinsics.from_matrix(matrix, width, height, pixel_centres=pixel_centres)


def matrix_numbers(path: PathLike) -> list[float]:
    """Return the nine numbers of a 3x3 matrix in a text file, row by row; raise if there are others."""
    lines = read_text(path, _MOST_MATRIX).splitlines()
    text = " ".join(line.split("#")[0] for line in lines)
    words = text.translate(str.maketrans(",;[]", "    ")).split()
    numbers = finite_numbers(words, path, "the nine numbers of a 3x3 camera matrix")
    if len(numbers) != 9:
        raise FileFormatError(path, f"{len(numbers)} numbers, expected the nine of a 3x3 camera matrix")
    return numbers
