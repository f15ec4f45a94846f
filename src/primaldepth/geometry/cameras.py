"""Pinhole cameras: intrinsics, their rays, and the files they come from.

Inside this package pixel centres lie at half-integers: pixel (row i, column j) has its centre at
x = j + 0.5, y = i + 0.5, and the image covers [0, width] x [0, height]. OpenCV and most calibration
tools put the centre of the first pixel at (0, 0); `PixelCentres` names which of the two a matrix uses.

The camera file is JSON::

    {"guide": {"fx": 600.0, "fy": 600.0, "cx": 320.0, "cy": 240.0, "width": 640, "height": 480}}
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.core.settings import Settings
from primaldepth.io.atomic import write_bytes

PixelCentres = Literal["integer", "half"]
_SHIFT: dict[PixelCentres, float] = {"integer": 0.5, "half": 0.0}


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """A pinhole camera: x = fx X / Z + cx, y = fy Y / Z + cy, pixel centres at half-integers.

    Args:
        fx: focal length in pixel widths.
        fy: focal length in pixel heights.
        cx: principal point, x; width / 2 is the middle of the image.
        cy: principal point, y; height / 2 is the middle of the image.
        width: columns of the image.
        height: rows of the image.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"intrinsics: {name} is {value!r}, expected a whole number of pixels >= 1")
        for name in ("fx", "fy", "cx", "cy"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"intrinsics: {name} is {getattr(self, name)}, expected a finite number")
        for name in ("fx", "fy"):
            if getattr(self, name) <= 0:
                raise InputError(f"intrinsics: {name} is {getattr(self, name)}, expected > 0 (pixels)")

    @classmethod
    def guess(cls, width: int, height: int, fov_degrees: float = 60.0) -> Self:
        """A stand-in where no camera is known: fx = fy = (width / 2) / tan(fov / 2), centre in the middle.

        Args:
            width: columns of the image.
            height: rows of the image.
            fov_degrees: horizontal field of view, in (0, 180).
        """
        if not 0 < fov_degrees < 180:
            raise InputError(f"field of view: {fov_degrees} degrees, expected between 0 and 180")
        focal = width / 2 / math.tan(math.radians(fov_degrees) / 2)
        return cls(focal, focal, width / 2, height / 2, width, height)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, width: int, height: int, *, pixel_centres: PixelCentres) -> Self:
        """From K = [[fx, 0, cx], [0, fy, cy], [0, 0, 1]].

        Args:
            matrix: (3, 3).
            width: columns of the image K was calibrated on.
            height: rows of that image.
            pixel_centres: "integer" (OpenCV: the first pixel's centre is (0, 0); 0.5 is added to cx and cy)
                or "half" (it is (0.5, 0.5), as here).
        """
        K = np.asarray(matrix, dtype=np.float64)
        if K.shape != (3, 3):
            raise InputError(f"camera matrix: shape {K.shape}, expected (3, 3)")
        if pixel_centres not in _SHIFT:
            raise InputError(f"camera matrix: pixel centres {pixel_centres!r}, expected 'integer' or 'half'")
        if K[0, 1] != 0 or K[1, 0] != 0 or K[2].tolist() != [0, 0, 1]:
            raise InputError(
                f"camera matrix: {K.tolist()} is not [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]; "
                "skewed or rotated pixels are not supported"
            )
        shift = _SHIFT[pixel_centres]
        return cls(
            float(K[0, 0]), float(K[1, 1]), float(K[0, 2]) + shift, float(K[1, 2]) + shift, width, height
        )

    def scaled_to(self, width: int, height: int) -> "Intrinsics":
        """The same camera sampled with width x height pixels over the same field of view."""
        sx, sy = width / self.width, height / self.height
        return Intrinsics(self.fx * sx, self.fy * sy, self.cx * sx, self.cy * sy, width, height)

    def rays(self) -> NDArray[np.float64]:
        """(height, width, 3): ((x - cx) / fx, (y - cy) / fy, 1) through each pixel centre."""
        x = (np.arange(self.width) + 0.5 - self.cx) / self.fx
        y = (np.arange(self.height) + 0.5 - self.cy) / self.fy
        rays = np.ones((self.height, self.width, 3))
        rays[..., 0] = x
        rays[..., 1] = y[:, None]
        return rays


@dataclass(frozen=True, slots=True)
class Cameras:
    """The cameras of one recording; the guide's is the one the result is seen from."""

    guide: Intrinsics


_Number = Annotated[float, Field(strict=True)]
_Count = Annotated[int, Field(strict=True)]


class _IntrinsicsKeys(Settings):
    fx: _Number
    fy: _Number
    cx: _Number
    cy: _Number
    width: _Count
    height: _Count


class _CamerasKeys(Settings):
    guide: dict[str, Any]


def read_cameras(path: str | os.PathLike[str]) -> Cameras:
    """Read a camera file (JSON, see the top of this module); unknown keys are errors."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path}: not a readable JSON camera file ({error})") from error
    if not isinstance(values, dict):
        raise FileFormatError(
            f'{path}: found a {type(values).__name__}, expected an object such as {{"guide": ...}}'
        )
    keys = _CamerasKeys.parse(values, str(path))
    guide = _IntrinsicsKeys.parse(keys.guide, f"{path}: guide")
    try:
        return Cameras(guide=Intrinsics(**guide.model_dump()))
    except InputError as error:
        raise FileFormatError(f"{path}: guide: {error}") from error


def write_cameras(path: str | Path, cameras: Cameras) -> None:
    """Write what `read_cameras` reads."""
    text = json.dumps(asdict(cameras), indent=2) + "\n"
    write_bytes(path, text.encode("utf-8"))


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
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: not a readable text file ({error})") from error
    text = " ".join(line.split("#")[0] for line in lines)
    words = text.translate(str.maketrans(",;[]", "    ")).split()
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise FileFormatError(f"{path}: {error}; expected the nine numbers of a 3x3 camera matrix") from error
    if len(numbers) != 9:
        raise FileFormatError(f"{path}: {len(numbers)} numbers, expected the nine of a 3x3 camera matrix")
    matrix = np.reshape(numbers, (3, 3))
    try:
        return Intrinsics.from_matrix(matrix, width, height, pixel_centres=pixel_centres)
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error
