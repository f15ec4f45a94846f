"""One camera: pinhole, lens distortion, and the rays of its pixels."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self

from primaldepth.core.errors import InputError, shortened
from primaldepth.geometry.distortion import Distortion

PixelCentres = Literal["integer", "half"]
SHIFT: dict[PixelCentres, float] = {"integer": 0.5, "half": 0.0}
_BLOCK = 16384  # pixels
_MOST_PIXELS = 2**20  # a side
_FIELDS = 1000.0  # width over focal length, or the inverse, at most


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """A camera: x = fx X' + cx, y = fy Y' + cy, pixel centres at half-integers.

    (X', Y') is where the lens puts the ray (X / Z, Y / Z, 1); without distortion, there itself.

    Args:
        fx: focal length in pixel widths.
        fy: focal length in pixel heights.
        cx: principal point, x; width / 2 is the middle of the image.
        cy: principal point, y; height / 2 is the middle of the image.
        width: columns of the image.
        height: rows of the image.
        distortion: of the lens, or None for a pinhole.

    Example:
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> camera = Intrinsics(fx=600, fy=600, cx=320, cy=240, width=640, height=480)
        >>> camera.scaled_to(320, 240).fx
        300.0
        >>> camera.project([0.0, 0.0, 2.0]).tolist()  # the point two metres ahead
        [320.0, 240.0]
    """

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int
    distortion: Distortion | None = None

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_PIXELS:
                raise InputError(
                    "intrinsics", f"{name} is {value!r:.40}, expected whole pixels, 1 to {_MOST_PIXELS}"
                )
        for name in ("fx", "fy", "cx", "cy"):
            if not math.isfinite(getattr(self, name)):
                raise InputError("intrinsics", f"{name} is {getattr(self, name)}, expected a finite number")
        for name, pixels in (("fx", self.width), ("fy", self.height)):
            if getattr(self, name) <= 0:
                raise InputError("intrinsics", f"{name} is {getattr(self, name)}, expected > 0 (pixels)")
            if not 1 / _FIELDS <= getattr(self, name) / pixels <= _FIELDS:
                raise InputError(
                    "intrinsics",
                    f"{name} is {getattr(self, name)} for {pixels} pixels, which no lens has",
                    "it is expected in pixels",
                )

    @classmethod
    def guess(cls, width: int, height: int, fov_degrees: float = 60.0) -> Self:
        """Return a guess for an unknown camera: fx = fy = (width / 2) / tan(fov / 2), centre in the middle.

        Args:
            width: columns of the image.
            height: rows of the image.
            fov_degrees: horizontal field of view, in (0, 180).
        """
        if not 0 < fov_degrees < 180:
            raise InputError("field of view", f"{fov_degrees} degrees, expected between 0 and 180")
        focal = width / 2 / math.tan(math.radians(fov_degrees) / 2)
        return cls(focal, focal, width / 2, height / 2, width, height)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        width: int,
        height: int,
        *,
        pixel_centres: PixelCentres,
        distortion: Distortion | None = None,
    ) -> Self:
        """Make a camera from its matrix K = [[fx, 0, cx], [0, fy, cy], [0, 0, 1]].

        Args:
            matrix: (3, 3).
            width: columns of the image K was calibrated on.
            height: rows of that image.
            pixel_centres: "integer" (OpenCV: the first pixel's centre is (0, 0); 0.5 is added to cx and cy)
                or "half" (it is (0.5, 0.5), as here).
            distortion: of the lens.
        """
        K = np.asarray(matrix, dtype=np.float64)
        if K.shape != (3, 3):
            raise InputError("camera matrix", f"shape {K.shape}, expected (3, 3)")
        if pixel_centres not in SHIFT:
            raise InputError(
                "camera matrix", f"pixel centres {pixel_centres!r}, expected 'integer' or 'half'"
            )
        if K[0, 1] != 0 or K[1, 0] != 0 or K[2].tolist() != [0, 0, 1]:
            raise InputError(
                "camera matrix",
                f"{shortened(K.tolist())} is not [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]",
                "skewed or rotated pixels are not supported",
            )
        (fx, _, cx), (_, fy, cy) = K[0].tolist(), K[1].tolist()
        shift = SHIFT[pixel_centres]
        return cls(fx, fy, cx + shift, cy + shift, width, height, distortion)

    def scaled_to(self, width: int, height: int) -> "Intrinsics":
        """Return the same camera with width x height pixels over the same field of view."""
        sx, sy = width / self.width, height / self.height
        return Intrinsics(
            self.fx * sx, self.fy * sy, self.cx * sx, self.cy * sy, width, height, self.distortion
        )

    def rays(self, *, ends: bool = False) -> NDArray[np.float64]:
        """Return the ray (X, Y, 1) through each pixel centre, (height, width, 3), with distortion undone.

        Without distortion X = (x - cx) / fx, Y = (y - cy) / fy. NaN where the lens model has no ray.

        Args:
            ends: also through the image's border, a row and a column before and after the centres.
        """
        x, y = (_places(side, ends) for side in (self.width, self.height))
        rays = np.ones((len(y), len(x), 3))
        rays[..., 0] = (x - self.cx) / self.fx
        rays[..., 1] = ((y - self.cy) / self.fy)[:, None]
        if self.distortion is not None:
            rays[..., :2] = _undistorted(self, self.distortion, ends)
        return rays

    def project(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the pixels (x, y) of points (..., 3) in this camera's axes; NaN where it cannot see them."""
        X = np.asarray(points, dtype=np.float64)
        front = X[..., 2] > 0
        plane = X[..., :2] / np.where(front, X[..., 2], 1.0)[..., None]
        if self.distortion is not None:
            front &= np.hypot(plane[..., 0], plane[..., 1]) <= self.distortion.limit
            bent = self.distortion.distort(torch.from_numpy(plane[..., 0]), torch.from_numpy(plane[..., 1]))
            plane = torch.stack(bent, dim=-1).numpy()
        plane = plane * [self.fx, self.fy] + [self.cx, self.cy]
        return np.asarray(np.where(front[..., None], plane, np.nan), np.float64)


def _places(size: int, ends: bool) -> NDArray[np.float64]:
    centres = np.arange(size, dtype=np.float64) + 0.5
    return np.pad(centres, 1, constant_values=(0.0, size)) if ends else centres


@lru_cache(maxsize=4)
def _undistorted(camera: Intrinsics, lens: Distortion, ends: bool) -> NDArray[np.float64]:
    """Return X, Y of each pixel's ray, (H, W, 2); cached, since every frame of a camera needs the same."""
    x = torch.from_numpy((_places(camera.width, ends) - camera.cx) / camera.fx)
    y = torch.from_numpy((_places(camera.height, ends) - camera.cy) / camera.fy)
    rays = np.empty((len(y), len(x), 2))
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(y), step):
        rows = y[start : start + step, None]
        block = lens.undistort(x.expand(len(rows), -1), rows.expand(-1, len(x)))
        rays[start : start + step] = torch.stack(block, dim=-1).numpy()
    rays.setflags(write=False)
    return rays
