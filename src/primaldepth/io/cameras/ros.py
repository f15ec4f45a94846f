"""Calibrations in ROS: camera_info messages, and the files of camera_calibration, as YAML or JSON.

How the depth camera stands to the guide's is not part of them; it is a transform of the guide's optical frame
(parent) and the depth camera's (child): X_guide = R X_depth + t.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.motion import as_tuples, rotation
from primaldepth.geometry.pinhole import Pinhole, Region
from primaldepth.io.cameras.calibration_values import count, item, number, numbers, part, read_object
from primaldepth.io.files import PathLike
from primaldepth.io.sequences.base import Content


def read_ros(guide: PathLike, depth: PathLike | None = None, transform: PathLike | None = None) -> Cameras:
    """Read the guide's camera, and with `depth` and `transform` the depth camera beside it.

    Args:
        guide: camera_info of the image.
        depth: camera_info of the depth map.
        transform: translation (x, y, z in metres) and rotation (quaternion x, y, z, w), as a Transform or
            TransformStamped message.

    Returns:
        The cameras, and the motion between them.

    Raises:
        FileFormatError: if a file is damaged or no such message.
    """
    if (depth is None) != (transform is None):
        raise InputError("ros", "a depth camera needs its transform to the guide's, and the other way round")
    camera = read_camera_info(guide)
    if depth is None or transform is None:
        return Cameras(camera)
    values = read_object(transform)
    keys = part(values, ("transform",), str(transform)) if "transform" in values else values
    shift = part(keys, ("translation",), str(transform))
    turn = part(keys, ("rotation",), str(transform))
    t = [number(shift, (axis,), f"{transform}: translation") for axis in "xyz"]
    q = [number(turn, (axis,), f"{transform}: rotation") for axis in "xyzw"]
    length = math.sqrt(sum(each * each for each in q))
    if abs(length - 1.0) > 1e-3:
        raise FileFormatError(transform, f"rotation {q} has length {length:.4f}, expected a unit quaternion")
    return Cameras(camera, read_camera_info(depth), as_tuples(rotation(q)), as_tuples(t))


def read_camera_info(path: PathLike) -> Intrinsics:
    """Read one camera from a ROS camera_info; region of interest and binning are applied.

    P and R, which describe the rectified image, are not used.

    Args:
        path: YAML or JSON.

    Returns:
        The camera of the image.

    Raises:
        FileFormatError: if the file is damaged or no camera_info.
    """
    values, where = read_object(path), str(path)
    width = count(values, ("width", "image_width"), where)
    height = count(values, ("height", "image_height"), where)
    matrix = np.reshape(_matrix(values, ("k", "K", "camera_matrix"), where, 9), (3, 3))
    coefficients = _matrix(values, ("d", "D", "distortion_coefficients"), where)
    model = str(item(values, ("distortion_model",), where))
    try:
        if not matrix.any():
            raise InputError("", "K is all 0, which means that this camera was not calibrated")
        whole = Intrinsics.from_matrix(matrix, width, height, pixel_centres="integer")
        lens = model, tuple(coefficients)
        sensor = Pinhole(whole.fx, whole.fy, whole.cx, whole.cy, width, height, lens)
        return intrinsics_of(_region(values, where, sensor).image_of(sensor))
    except FileFormatError:
        raise  # it names the file already
    except InputError as error:
        raise FileFormatError(where, f"{error}") from error


def _region(values: Mapping[str, Any], where: str, sensor: Pinhole) -> Region:
    """The whole sensor where nothing is said."""
    roi = part(values, ("roi",), where) if "roi" in values else {}
    names = ("x_offset", "y_offset", "width", "height")
    window = [count(roi, (name,), f"{where}: roi") if name in roi else 0 for name in names]
    binning = [count(values, (name,), where) if name in values else 0 for name in ("binning_x", "binning_y")]
    if min(*window, *binning) < 0:
        raise FileFormatError(where, f"roi {window} or binning {binning} is below 0")
    region = Region(*window, *binning)
    fits = region.x + region.width <= sensor.width and region.y + region.height <= sensor.height
    if not fits or (any(window) and not (region.width and region.height)):
        raise FileFormatError(where, f"roi {window} is no part of {sensor.width}x{sensor.height} pixels")
    return region


def _matrix(
    values: Mapping[str, Any], names: tuple[str, ...], where: str, length: int | None = None
) -> list[float]:
    """Plain numbers in a message, {rows, cols, data} in a file."""
    if isinstance(item(values, names, where), dict):
        return numbers(part(values, names, where), ("data",), f"{where}: {names[-1]}", length)
    return numbers(values, names, where, length)


def intrinsics_of(camera: Pinhole) -> Intrinsics:
    """The camera with the lens that ROS names."""
    lens = None if camera.lens is None else lens_of(*camera.lens)
    return Intrinsics(*camera[:6], lens)


def recorded_cameras(content: Content) -> Cameras | None:
    """The cameras that a shot of a recording says; None if it says none."""
    if content.camera is None:
        return None
    guide, beside = intrinsics_of(content.camera), content.beside
    if beside is None:
        return Cameras(guide)
    rotation, translation = as_tuples(beside.rotation), as_tuples(beside.translation)
    return Cameras(guide, intrinsics_of(beside.camera), rotation, translation)


def lens_of(model: str, coefficients: Sequence[float]) -> Distortion | None:
    """distortion_model and D of a camera_info; None if all of D are 0."""
    if not any(coefficients):
        return None
    if model in ("equidistant", "fisheye"):
        return Distortion("fisheye", tuple(coefficients))
    if model == "modified_plumb_bob":
        return Distortion("modified_plumb_bob", tuple(coefficients))
    if model in ("plumb_bob", "rational_polynomial"):
        return Distortion.opencv(coefficients)
    raise InputError(
        "",
        f"distortion_model {shortened(model)}, expected plumb_bob, rational_polynomial or equidistant, "
        "or coefficients that are all 0",
    )
