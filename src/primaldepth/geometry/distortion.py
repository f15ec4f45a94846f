"""Lens distortion as OpenCV models it: where on the image plane a ray arrives, and the way back.

A ray (x, y, 1) of the pinhole arrives at (x', y'), and the pixel is (fx x' + cx, fy y' + cy). With
r^2 = x^2 + y^2 and the coefficients in OpenCV's order k1 k2 p1 p2 k3 k4 k5 k6 s1 s2 s3 s4 tau_x tau_y,

    x' = x f + 2 p1 x y + p2 (r^2 + 2 x^2) + s1 r^2 + s2 r^4
    y' = y f + p1 (r^2 + 2 y^2) + 2 p2 x y + s3 r^2 + s4 r^4
    f  = (1 + k1 r^2 + k2 r^4 + k3 r^6) / (1 + k4 r^2 + k5 r^4 + k6 r^6)

followed by the tilt of the sensor. `plumb_bob` has the first 5 of them, `rational` 8, `thin_prism` 12,
`tilted` 14. `modified_plumb_bob` puts x f and y f in place of x and y in the terms with p1 and p2, as
RealSense cameras do. `fisheye` has k1 to k4: x' = x theta' / r with r = tan(theta) and
theta' = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor

from primaldepth.core.errors import InputError, shortened

Model = Literal["plumb_bob", "rational", "thin_prism", "tilted", "modified_plumb_bob", "fisheye"]
_COUNT: dict[Model, int] = {
    "plumb_bob": 5,
    "rational": 8,
    "thin_prism": 12,
    "tilted": 14,
    "modified_plumb_bob": 5,
    "fisheye": 4,
}
_WIDEST = math.radians(89.5)  # rays have z = 1, so a field of view of 180 degrees is out of reach
_NEWTON_STEPS = 50
_DIFFERENCE = 1e-6
_RESIDUAL = 1e-8  # on the image plane at distance 1: 1e-5 pixels at a focal length of 1000


@dataclass(frozen=True, slots=True)
class Distortion:
    """A lens model and its coefficients, see the top of this module."""

    model: Model
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.model not in get_args(Model):
            raise InputError(
                "distortion", f"model {shortened(self.model)}, expected one of {', '.join(get_args(Model))}"
            )
        expected = _COUNT[self.model]
        if len(self.coefficients) != expected:
            raise InputError(
                "distortion", f"{len(self.coefficients)} coefficients, but '{self.model}' has {expected}"
            )
        for index, value in enumerate(self.coefficients):
            if not math.isfinite(value):
                raise InputError("distortion", f"coefficient {index} is {value}, expected a finite number")

    @classmethod
    def opencv(cls, coefficients: Sequence[float]) -> "Distortion | None":
        """Make the model of OpenCV's distCoeffs, of which there are 4, 5, 8, 12 or 14; None if all are 0."""
        values = tuple(float(value) for value in coefficients)
        values = (*values, 0.0) if len(values) == 4 else values
        models: dict[int, Model] = {5: "plumb_bob", 8: "rational", 12: "thin_prism", 14: "tilted"}
        if values and len(values) not in models:
            raise InputError("distortion", f"{len(values)} coefficients, expected 0, 4, 5, 8, 12 or 14")
        return cls(models[len(values)], values) if any(values) else None

    @property
    def limit(self) -> float:
        """Largest radius of a ray that the model holds for; beyond it rays fold back into the image."""
        return _limit(self)

    def distort(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return where rays (x, y, 1) arrive on the image plane, as x', y'; meaningless beyond `limit`."""
        return _fisheye(self, x, y) if self.model == "fisheye" else _brown(self, x, y)

    def undistort(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rays (x, y, 1) that arrive at x', y', in float64; NaN if none within `limit` does."""
        target = x.double(), y.double()
        ray = _fisheye_ray(self, *target) if self.model == "fisheye" else _newton(self, *target)
        there = self.distort(*ray)
        missed = torch.hypot(there[0] - target[0], there[1] - target[1])
        good = (missed < _RESIDUAL) & (torch.hypot(*ray) <= self.limit)
        return torch.where(good, ray[0], torch.nan), torch.where(good, ray[1], torch.nan)


def _brown(lens: Distortion, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4, tau_x, tau_y = _padded(lens)
    r2 = x.square() + y.square()
    f = (1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1.0 + r2 * (k4 + r2 * (k5 + r2 * k6)))
    u, v = (x * f, y * f) if lens.model == "modified_plumb_bob" else (x, y)
    there_x = x * f + 2.0 * p1 * u * v + p2 * (r2 + 2.0 * u * u)
    there_y = y * f + p1 * (r2 + 2.0 * v * v) + 2.0 * p2 * u * v
    if any((s1, s2, s3, s4)):
        there_x, there_y = there_x + r2 * (s1 + r2 * s2), there_y + r2 * (s3 + r2 * s4)
    return _tilt(there_x, there_y, tau_x, tau_y) if tau_x or tau_y else (there_x, there_y)


def _padded(lens: Distortion) -> tuple[float, ...]:
    return (*lens.coefficients, *(0.0,) * (14 - len(lens.coefficients)))


def _tilt(x: Tensor, y: Tensor, tau_x: float, tau_y: float) -> tuple[Tensor, Tensor]:
    """Tilt the sensor by R = R_y R_x: (r33 X/Z - r13, r33 Y/Z - r23), (X, Y, Z) = R (x, y, 1)."""
    cx, sx, cy, sy = math.cos(tau_x), math.sin(tau_x), math.cos(tau_y), math.sin(tau_y)
    r13, r23, r33 = -sy * cx, sx, cy * cx
    turned_x = cy * x + sy * sx * y + r13
    turned_y = cx * y + r23
    turned_z = sy * x - cy * sx * y + r33
    return r33 * turned_x / turned_z - r13, r33 * turned_y / turned_z - r23


def _fisheye(lens: Distortion, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    r = torch.hypot(x, y)
    factor = torch.where(r > 1e-8, _bent(lens, torch.atan(r)) / r.clamp_min(1e-8), 1.0)
    return x * factor, y * factor


def _bent(lens: Distortion, theta: Tensor) -> Tensor:
    """Return the fisheye's angle theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)."""
    k1, k2, k3, k4 = lens.coefficients
    s = theta.square()
    return theta * (1.0 + s * (k1 + s * (k2 + s * (k3 + s * k4))))


def _fisheye_ray(lens: Distortion, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Invert the fisheye model: Newton's method for the angle theta; the direction stays the same."""
    wanted = torch.hypot(x, y)
    theta = wanted.clamp_max(_WIDEST)
    for _ in range(_NEWTON_STEPS):
        here = _bent(lens, theta)
        slope = (_bent(lens, theta + _DIFFERENCE) - here) / _DIFFERENCE
        theta = (theta + (wanted - here) / slope).clamp(0.0, _WIDEST)
        if float((_bent(lens, theta) - wanted).abs().max()) < _RESIDUAL / 10:
            break
    factor = torch.where(wanted > 1e-8, torch.tan(theta) / wanted.clamp_min(1e-8), 1.0)
    return x * factor, y * factor


def _newton(lens: Distortion, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Invert the model by Newton's method, started at the distorted point, Jacobian by differences."""
    u, v = x, y
    h = _DIFFERENCE
    for _ in range(_NEWTON_STEPS):
        here_x, here_y = _brown(lens, u, v)
        miss_x, miss_y = x - here_x, y - here_y
        if float(torch.maximum(miss_x.abs(), miss_y.abs()).nan_to_num(torch.inf).max()) < _RESIDUAL / 10:
            break
        (ax, ay), (bx, by) = _brown(lens, u + h, v), _brown(lens, u, v + h)
        xx, xy, yx, yy = (ax - here_x) / h, (bx - here_x) / h, (ay - here_y) / h, (by - here_y) / h
        det = xx * yy - xy * yx
        u, v = u + (yy * miss_x - xy * miss_y) / det, v + (xx * miss_y - yx * miss_x) / det
    return u, v


@lru_cache(maxsize=64)
def _limit(lens: Distortion) -> float:
    angle = torch.linspace(0.0, _WIDEST, 20001, dtype=torch.float64)
    r = torch.tan(angle)
    if lens.model == "fisheye":
        there = _bent(lens, angle)
    else:
        k1, k2, _, _, k3, k4, k5, k6 = _padded(lens)[:8]
        s = r.square()
        there = r * (1.0 + s * (k1 + s * (k2 + s * k3))) / (1.0 + s * (k4 + s * (k5 + s * k6)))
    falling = torch.nonzero(there.diff() <= 0)
    return float(r[int(falling[0])] if len(falling) else r[-1])
