"""Two cameras and how they stand to each other; points and pixels on tensors."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics

Vector = tuple[float, float, float]
Rotation = tuple[Vector, Vector, Vector]
Tensors = tuple[Tensor, Tensor, Tensor]
MetricKind = Literal["z", "radial"]


@dataclass(frozen=True, slots=True)
class Rig:
    """Two cameras: X_target = R X_source + t, in metres, x right, y down, z forward.

    Args:
        source: camera of the depth samples.
        target: camera of the view they are wanted in.
        rotation: rows of R.
        translation: t, the source's centre seen from the target.
    """

    source: Intrinsics
    target: Intrinsics
    rotation: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    translation: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        R, t = np.asarray(self.rotation, np.float64), np.asarray(self.translation, np.float64)
        if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-4) or np.linalg.det(R) < 0:
            raise InputError(f"rig: {R.tolist()} is not a rotation; expected orthonormal rows, determinant 1")
        if t.shape != (3,) or not np.isfinite(t).all():
            raise InputError(f"rig: translation {t.tolist()}, expected three finite numbers (metres)")

    @classmethod
    def from_matrix(cls, source: Intrinsics, target: Intrinsics, matrix: ArrayLike) -> "Rig":
        """From the (3, 4) or (4, 4) matrix [R t]."""
        M = np.asarray(matrix, dtype=np.float64)
        if M.shape not in ((3, 4), (4, 4)):
            raise InputError(f"rig: matrix of shape {M.shape}, expected (3, 4) or (4, 4)")
        return cls(source, target, _tuples(M[:3, :3]), _tuples(M[:3, 3]))

    def inverse(self) -> "Rig":
        """The way back: X_source = R' X_target - R' t."""
        R = np.asarray(self.rotation, np.float64)
        back = -R.T @ np.asarray(self.translation, np.float64)
        return Rig(self.target, self.source, _tuples(R.T), _tuples(back))

    def forward(self, points: Tensors) -> Tensors:
        """R X + t."""
        x, y, z = self.turn(points)
        return x + self.translation[0], y + self.translation[1], z + self.translation[2]

    def turn(self, vectors: Tensors) -> Tensors:
        """R v."""
        return _times(self.rotation, vectors)

    def turn_back(self, vectors: Tensors) -> Tensors:
        """R' v."""
        (a, b, c) = self.rotation
        return _times(((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2])), vectors)


def _tuples(values: ArrayLike) -> Any:
    array = np.asarray(values)
    return tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.tolist())


def _times(R: Rotation, v: Tensors) -> Tensors:
    rows = [row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in R]
    return rows[0], rows[1], rows[2]


def axes(camera: Intrinsics, like: Tensor, *, ends: bool = False) -> tuple[Tensor, Tensor]:
    """Ray coordinates (x - cx) / fx, (y - cy) / fy of the pixel centres: (W,) and (H, 1).

    Args:
        ends: also of the image's two ends, before and after the centres.
    """
    x, y = (_places(side, like, ends) for side in (camera.width, camera.height))
    return (x - camera.cx) / camera.fx, ((y - camera.cy) / camera.fy)[:, None]


def _places(size: int, like: Tensor, ends: bool) -> Tensor:
    centres = torch.arange(size, device=like.device, dtype=like.dtype) + 0.5
    if not ends:
        return centres
    return torch.cat([centres.new_zeros(1), centres, centres.new_full((1,), float(size))])


def z_of(depth: Tensor, camera: Intrinsics, kind: MetricKind) -> Tensor:
    """Depth along the optical axis of (B, 1, H, W) samples; z = r / |ray| if they are radial."""
    if depth.ndim != 4 or depth.shape[1:] != (1, camera.height, camera.width):
        raise InputError(
            f"depth: shape {tuple(depth.shape)}, but the camera has {camera.width}x{camera.height} pixels; "
            f"expected (B, 1, {camera.height}, {camera.width})"
        )
    return depth / ray_lengths(camera, depth) if kind == "radial" else depth


def ray_lengths(camera: Intrinsics, like: Tensor) -> Tensor:
    """(H, W): length of each pixel's ray, whose z component is 1; radial = z |ray|."""
    x, y = axes(camera, like)
    return torch.sqrt(x.square() + y.square() + 1.0)


def to_pixels(points: Tensors, camera: Intrinsics) -> tuple[Tensor, Tensor, Tensor]:
    """(x, y, in front of the camera or not) of points, in pixels."""
    z = points[2].clamp_min(1e-6)
    return camera.fx * points[0] / z + camera.cx, camera.fy * points[1] / z + camera.cy, points[2] > 0
