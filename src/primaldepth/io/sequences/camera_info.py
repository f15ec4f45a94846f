"""The camera that a CameraInfo message describes, of ROS 1 or 2."""

from collections.abc import Iterable
from typing import Any

from primaldepth.core.errors import shortened
from primaldepth.geometry.pinhole import Pinhole, Region

_LENSES = {  # how many coefficients each may have
    "plumb_bob": (4, 5),
    "rational_polynomial": (5, 8, 12, 14),
    "equidistant": (4,),
    "fisheye": (4,),
}


def cameras_of(info: Any, *, rectified: bool) -> tuple[list[Pinhole], str | None]:
    """Return the cameras that a message may mean.

    It describes the sensor, of which the image may be a part. Some drivers describe the image itself: its
    size tells which is meant, see `camera_for`.

    Args:
        info: a CameraInfo message.
        rectified: whether the image was rectified, so that P describes it and lines are straight.

    Returns:
        The camera of the part that is read and that of the whole, and what lens was left out because it is
        not known, or None.
    """
    sensor, unknown = _sensor(info, rectified), None
    if sensor.lens is not None and len(sensor.lens[1]) not in _LENSES.get(sensor.lens[0], ()):
        model, coefficients = sensor.lens
        unknown = f"{shortened(model)} with {len(coefficients)} coefficients"
        sensor = sensor._replace(lens=None)
    return [_region(info).image_of(sensor), sensor], unknown


def camera_for(cameras: Iterable[Pinhole], size: tuple[int, ...]) -> Pinhole | None:
    """Return the first camera whose image has this (height, width), or None."""
    return next((camera for camera in cameras if size == (camera.height, camera.width)), None)


def _sensor(info: Any, rectified: bool) -> Pinhole:
    """The camera of a CameraInfo: of P if the image is rectified, else of K with its lens."""
    K, D, P = (_numbers(info, letter) for letter in "KDP")
    fx, fy, cx, cy = (P[0], P[5], P[2], P[6]) if rectified and P[0] > 0 else (K[0], K[4], K[2], K[5])
    lens = (str(info.distortion_model), tuple(D)) if any(D) and not rectified else None
    return Pinhole(fx, fy, cx + 0.5, cy + 0.5, int(info.width), int(info.height), lens)


def _region(info: Any) -> Region:
    roi = info.roi
    numbers = (roi.x_offset, roi.y_offset, roi.width, roi.height, info.binning_x, info.binning_y)
    return Region(*map(int, numbers))


def _numbers(info: Any, letter: str) -> list[float]:
    """A matrix of a CameraInfo: K in ROS 1, k in ROS 2."""
    values = getattr(info, letter) if hasattr(info, letter) else getattr(info, letter.lower())
    return [float(value) for value in values]
