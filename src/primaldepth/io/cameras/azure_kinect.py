"""Calibrations of the Azure Kinect: the JSON that the device and its recordings hold.

cx, cy, fx, fy are fractions of the whole sensor's size, measured from its corner. A mode of the camera bins
the sensor and crops it, so the size of the images names the mode. Rotation and translation take points of the
depth camera to each camera, in metres.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.motion import as_tuples
from primaldepth.io.cameras.calibration_values import Keys, read_keys
from primaldepth.io.files import PathLike, naming

Size = tuple[int, int]
# size of the images -> (size of the binned sensor, first column and row of the crop)
_DEPTH: dict[Size, tuple[Size, Size]] = {
    (320, 288): ((512, 512), (96, 90)),
    (640, 576): ((1024, 1024), (192, 180)),
    (512, 512): ((512, 512), (0, 0)),
    (1024, 1024): ((1024, 1024), (0, 0)),
}
_COLOR: dict[Size, tuple[Size, Size]] = {
    (1280, 720): ((1280, 960), (0, 120)),
    (1920, 1080): ((1920, 1440), (0, 180)),
    (2560, 1440): ((2560, 1920), (0, 240)),
    (2048, 1536): ((2048, 1536), (0, 0)),
    (3840, 2160): ((3840, 2880), (0, 360)),
    (4096, 3072): ((4096, 3072), (0, 0)),
}
_RATIONAL = "CALIBRATION_LensDistortionModelRational6KT"
_BROWN = "CALIBRATION_LensDistortionModelBrownConrady"


def read_azure_kinect(
    path: PathLike, *, depth_size: Size = (640, 576), guide_size: Size = (1280, 720)
) -> Cameras:
    """Read the depth and the colour camera of an Azure Kinect's calibration.

    Args:
        path: JSON with CalibrationInformation.
        depth_size: (width, height) of the depth images; names the mode, such as 640x576 for NFOV unbinned.
        guide_size: (width, height) of the colour images.

    Returns:
        The cameras, and the motion between them.

    Raises:
        FileFormatError: if the file is no such calibration, or a size is of no mode.
    """
    information = read_keys(path).part("CalibrationInformation")
    cameras = information.item("Cameras")
    if not isinstance(cameras, list) or not all(isinstance(each, dict) for each in cameras):
        raise FileFormatError(information.where, "'Cameras' is not a list of objects")
    by_location = {str(each.get("Location")): each for each in cameras}
    placed = Keys(by_location, f"{information.where}.Cameras, by Location")
    depth_keys = Keys(placed.part("CALIBRATION_CameraLocationD0").values, f"{path}: D0")
    color_keys = Keys(placed.part("CALIBRATION_CameraLocationPV0").values, f"{path}: PV0")
    depth, guide = _camera(depth_keys, depth_size, _DEPTH), _camera(color_keys, guide_size, _COLOR)
    (Rd, td), (Rg, tg) = _motion(depth_keys), _motion(color_keys)
    R = Rg @ Rd.T
    with naming(f"{path}: Rt"):
        return Cameras(guide, depth, as_tuples(R), as_tuples(tg - R @ td))


def _camera(keys: Keys, size: Size, modes: Mapping[Size, tuple[Size, Size]]) -> Intrinsics:
    if size not in modes:
        known = ", ".join(f"{width}x{height}" for width, height in modes)
        raise InputError(keys.where, f"no mode has images of {size[0]}x{size[1]}", f"expected one of {known}")
    inner = keys.part("Intrinsics")
    values = inner.numbers("ModelParameters", length=14)
    lens = _lens(str(inner.item("ModelType")), values, keys.where)
    (width, height), (left, top) = modes[size]
    cx, cy, fx, fy = values[:4]
    with naming(keys.where):
        return Intrinsics(fx * width, fy * height, cx * width - left, cy * height - top, *size, lens)


def _lens(model: str, values: list[float], where: str) -> Distortion | None:
    """Return lens coefficients in OpenCV's order; the early Rational6KT has no 2 in tangential terms."""
    k1, k2, k3, k4, k5, k6, centre_x, centre_y, p2, p1 = values[4:]
    if model not in (_BROWN, _RATIONAL):
        raise FileFormatError(where, f"ModelType {shortened(model)}, expected {_BROWN} or {_RATIONAL}")
    if centre_x or centre_y or (model == _RATIONAL and (p1 or p2)):
        raise FileFormatError(
            where,
            f"{model} with centre ({centre_x}, {centre_y}), p1 {p1}, p2 {p2} is not one of OpenCV's models",
            "calibrate the camera anew",
        )
    return Distortion.opencv((k1, k2, p1, p2, k3, k4, k5, k6))


def _motion(keys: Keys) -> tuple[Any, Any]:
    motion = keys.part("Rt")
    R = np.reshape(motion.numbers("Rotation", length=9), (3, 3))
    return R, np.array(motion.numbers("Translation", length=3))
