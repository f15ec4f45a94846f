"""Cameras in ROS: camera_info messages, also as YAML or JSON, and the files of camera_calibration.

How the depth camera stands to the guide's is not part of them; it is a transform of the guide's optical frame
(parent) and the depth camera's (child): X_guide = R X_depth + t.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.motion import as_tuples, rotation
from primaldepth.io.cameras.calibration_values import Keys, read_keys
from primaldepth.io.files import PathLike, naming


class Region(NamedTuple):
    """Region of interest and binning of a camera_info, in sensor pixels; no size means the whole sensor.

    Binning says how many pixels are joined to one; 0 means 1.
    """

    x: int
    y: int
    width: int
    height: int
    binning_x: int
    binning_y: int

    def image_of(self, sensor: Intrinsics) -> Intrinsics:
        """Return the camera of the image that this region of the sensor gives."""
        x, y, width, height = self[:4] if self.width and self.height else (0, 0, sensor.width, sensor.height)
        across, down = max(self.binning_x, 1), max(self.binning_y, 1)
        return replace(
            sensor,
            fx=sensor.fx / across,
            fy=sensor.fy / down,
            cx=(sensor.cx - x) / across,
            cy=(sensor.cy - y) / down,
            width=width // across,
            height=height // down,
        )


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
    keys = read_keys(transform)
    keys = keys.part("transform") if "transform" in keys else keys
    shift, turn = keys.part("translation"), keys.part("rotation")
    t, q = [shift.number(axis) for axis in "xyz"], [turn.number(axis) for axis in "xyzw"]
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
    keys = read_keys(path)
    width, height = keys.count("width", "image_width"), keys.count("height", "image_height")
    matrix = np.reshape(_matrix(keys, "k", "K", "camera_matrix", length=9), (3, 3))
    coefficients = _matrix(keys, "d", "D", "distortion_coefficients")
    model = str(keys.item("distortion_model"))
    with naming(path):
        if not matrix.any():
            raise InputError("", "K is all 0, which means that this camera was not calibrated")
        lens = lens_of(model, coefficients)
        sensor = Intrinsics.from_matrix(matrix, width, height, pixel_centres="integer", distortion=lens)
    region = _region(keys, sensor)
    with naming(path):
        return region.image_of(sensor)


def _region(keys: Keys, sensor: Intrinsics) -> Region:
    """Return the region of the sensor that is used: all of it if the message does not say."""
    roi = keys.part("roi") if "roi" in keys else Keys({}, keys.where)
    names = ("x_offset", "y_offset", "width", "height")
    window = [roi.count(name) if name in roi else 0 for name in names]
    binning = [keys.count(name) if name in keys else 0 for name in ("binning_x", "binning_y")]
    if min(*window, *binning) < 0:
        raise FileFormatError(keys.where, f"roi {window} or binning {binning} is below 0")
    region = Region(*window, *binning)
    fits = region.x + region.width <= sensor.width and region.y + region.height <= sensor.height
    if not fits or (any(window) and not (region.width and region.height)):
        raise FileFormatError(keys.where, f"roi {window} is no part of {sensor.width}x{sensor.height} pixels")
    return region


def _matrix(keys: Keys, *names: str, length: int | None = None) -> list[float]:
    """Return the numbers of a matrix: plain in a message, {rows, cols, data} in a file."""
    if isinstance(keys.item(*names), dict):
        return keys.part(*names).numbers("data", length=length)
    return keys.numbers(*names, length=length)


def camera_of(info: Any, size: tuple[int, ...], *, rectified: bool) -> Intrinsics | None:
    """Return the camera of an image, from its message; None if that is of another size or uncalibrated.

    The message describes the sensor, of which the image may be a part. Some drivers describe the image
    itself: its size tells which is meant. A lens that is not known is left out, see `unknown_lens`.

    Args:
        info: a CameraInfo message of ROS 1 or 2.
        size: (height, width) of the image.
        rectified: whether the image was rectified, so that P describes it and lines are straight.
    """
    K, P, D = (_message_numbers(info, letter) for letter in "KPD")
    fx, fy, cx, cy = (P[0], P[5], P[2], P[6]) if rectified and P[0] > 0 else (K[0], K[4], K[2], K[5])
    if fx <= 0:  # K of cameras without calibration is 0
        return None
    lens = None if rectified or unknown_lens(info) else lens_of(str(info.distortion_model), D)
    sensor = Intrinsics(fx, fy, cx + 0.5, cy + 0.5, int(info.width), int(info.height), lens)
    roi = info.roi
    region = (roi.x_offset, roi.y_offset, roi.width, roi.height, info.binning_x, info.binning_y)
    cameras = (Region(*map(int, region)).image_of(sensor), sensor)
    return next((camera for camera in cameras if size == (camera.height, camera.width)), None)


def unknown_lens(info: Any) -> str | None:
    """Return in words the lens of a CameraInfo message if it is not known, else None."""
    coefficients = _message_numbers(info, "D")
    try:
        lens_of(str(info.distortion_model), coefficients)
    except InputError:
        return f"{shortened(str(info.distortion_model))} with {len(coefficients)} coefficients"
    return None


def _message_numbers(info: Any, letter: str) -> list[float]:
    """Return the numbers of a matrix of a CameraInfo: K in ROS 1, k in ROS 2."""
    values = getattr(info, letter) if hasattr(info, letter) else getattr(info, letter.lower())
    return [float(value) for value in values]


def lens_of(model: str, coefficients: Sequence[float]) -> Distortion | None:
    """Return the lens that ROS calls `model`; None if all coefficients are 0.

    Raises:
        InputError: if the model is not known, or has another number of coefficients.
    """
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
