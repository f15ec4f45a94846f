"""Cameras as recordings describe them: pinhole, region of the sensor, and a depth camera beside."""

from typing import NamedTuple

from primaldepth.core.errors import FileFormatError

OFF_CENTRE = 0.1  # of the image: lenses stay nearer, a matrix for 3/4 of the pixels does not


def check_central(where: object, cx: float, cy: float, size: tuple[int, int], hint: str) -> None:
    """Raise an error if the principal point is so far off the middle that K must be of another resolution."""
    width, height = size
    if max(abs(cx / width - 0.5), abs(cy / height - 0.5)) > OFF_CENTRE:
        raise FileFormatError(
            where,
            f"the principal point ({cx:.1f}, {cy:.1f}) is far from the middle of an image of "
            f"{width}x{height}",
            hint,
        )


class Pinhole(NamedTuple):
    """fx, fy, cx, cy of a camera in pixels of a width x height image; pixel centres at half-integers.

    `lens` is distortion_model and coefficients as ROS writes them, or None where lines stay straight.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int
    lens: tuple[str, tuple[float, ...]] | None = None


class Beside(NamedTuple):
    """A depth camera beside the guide's: X_guide = R X_depth + t, rows of R, metres."""

    camera: Pinhole
    rotation: tuple[tuple[float, float, float], ...]
    translation: tuple[float, float, float]


class Region(NamedTuple):
    """Region of interest and binning of a ROS camera_info, in sensor pixels; no size means the whole sensor.

    Binning says how many pixels are joined to one; 0 means 1.
    """

    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    binning_x: int = 0
    binning_y: int = 0

    def image_of(self, sensor: Pinhole) -> Pinhole:
        """Return the camera of the image that this region of the sensor gives."""
        x, y, width, height = self[:4] if self.width and self.height else (0, 0, sensor.width, sensor.height)
        across, down = max(self.binning_x, 1), max(self.binning_y, 1)
        return sensor._replace(
            fx=sensor.fx / across,
            fy=sensor.fy / down,
            cx=(sensor.cx - x) / across,
            cy=(sensor.cy - y) / down,
            width=width // across,
            height=height // down,
        )
