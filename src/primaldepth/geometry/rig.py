"""Two cameras and how they stand to each other; points and pixels on tensors."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.motion import (
    NO_SHIFT,
    NO_TURN,
    Rotation,
    Vector,
    as_tuples,
    check_motion,
    inverse,
)

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
    rotation: Rotation = NO_TURN
    translation: Vector = NO_SHIFT

    def __post_init__(self) -> None:
        check_motion(self.rotation, self.translation)

    @classmethod
    def of(cls, cameras: Cameras) -> "Rig":
        """Make the rig from the depth camera to the guide's camera."""
        if cameras.depth is None:
            raise InputError("rig", "the cameras have no depth camera of their own", "give 'depth'")
        return cls(cameras.depth, cameras.guide, cameras.rotation, cameras.translation)

    @classmethod
    def from_matrix(cls, source: Intrinsics, target: Intrinsics, matrix: ArrayLike) -> "Rig":
        """Make a rig from the (3, 4) or (4, 4) matrix [R t]."""
        M = np.asarray(matrix, dtype=np.float64)
        if M.shape not in ((3, 4), (4, 4)):
            raise InputError("rig", f"matrix of shape {M.shape}, expected (3, 4) or (4, 4)")
        return cls(source, target, as_tuples(M[:3, :3]), as_tuples(M[:3, 3]))

    def inverse(self) -> "Rig":
        """Return the rig from target to source: X_source = R' X_target - R' t."""
        return Rig(self.target, self.source, *inverse(self.rotation, self.translation))

    def scaled(self, length: float) -> "Rig":
        """Return the same rig with its translation multiplied by `length`, for another unit."""
        return replace(self, translation=as_tuples(length * np.asarray(self.translation)))

    def forward(self, points: Tensors) -> Tensors:
        """Move points from the source's frame to the target's: R X + t."""
        x, y, z = self.turn(points)
        return x + self.translation[0], y + self.translation[1], z + self.translation[2]

    def turn(self, vectors: Tensors) -> Tensors:
        """Turn directions from the source's frame to the target's: R v."""
        return _times(self.rotation, vectors)

    def turn_back(self, vectors: Tensors) -> Tensors:
        """Turn directions from the target's frame to the source's: R' v."""
        (a, b, c) = self.rotation
        return _times(((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2])), vectors)


def _times(R: Rotation, v: Tensors) -> Tensors:
    rows = [row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in R]
    return rows[0], rows[1], rows[2]


def axes(camera: Intrinsics, like: Tensor, *, ends: bool = False) -> tuple[Tensor, Tensor]:
    """Return the ray coordinates X, Y of the pixel centres: (W,) and (H, 1), or (H, W) if the lens distorts.

    Without distortion (x - cx) / fx, (y - cy) / fy; with it NaN where the lens model has no ray.

    Args:
        ends: also of the image's two ends, before and after the centres.
    """
    if camera.distortion is not None:
        rays = torch.from_numpy(camera.rays(ends=ends)).to(like)
        return rays[..., 0], rays[..., 1]
    x, y = (_places(side, like, ends) for side in (camera.width, camera.height))
    return (x - camera.cx) / camera.fx, ((y - camera.cy) / camera.fy)[:, None]


def _places(size: int, like: Tensor, ends: bool) -> Tensor:
    centres = torch.arange(size, device=like.device, dtype=like.dtype) + 0.5
    if not ends:
        return centres
    return torch.cat([centres.new_zeros(1), centres, centres.new_full((1,), float(size))])


@dataclass(frozen=True, slots=True)
class Magnification:
    """How many columns and rows of the target one pixel of the source covers, for things far away."""

    typical: tuple[float, float]
    largest: tuple[float, float]


@lru_cache(maxsize=64)
def magnification(rig: Rig) -> Magnification:
    """Return the ratio of the focal lengths or, for lenses that distort, what all pixels measure."""
    source, target = rig.source, rig.target
    plain = target.fx / source.fx, target.fy / source.fy
    if source.distortion is None and target.distortion is None:
        return Magnification(plain, plain)
    places = target.project(source.rays() @ np.asarray(rig.rotation).T)
    places[~((places >= 0) & (places <= [target.width, target.height])).all(-1)] = np.nan
    corners = np.stack([places[:-1, :-1], places[:-1, 1:], places[1:, :-1], places[1:, 1:]])
    spans = np.ptp(corners, axis=0)
    spans = spans[np.isfinite(spans).all(-1)]
    if len(spans) == 0:
        return Magnification(plain, plain)
    return Magnification(as_tuples(np.median(spans, axis=0)), as_tuples(spans.max(axis=0)))


def z_of(depth: Tensor, camera: Intrinsics, kind: MetricKind) -> Tensor:
    """Return depth along the optical axis of (B, 1, H, W) samples; z = r / |ray| if they are radial."""
    if depth.ndim != 4 or depth.shape[1:] != (1, camera.height, camera.width):
        raise InputError(
            "depth",
            f"shape {tuple(depth.shape)}, but the camera has {camera.width}x{camera.height} pixels",
            f"expected (B, 1, {camera.height}, {camera.width})",
        )
    return depth / ray_lengths(camera, depth) if kind == "radial" else depth


def ray_lengths(camera: Intrinsics, like: Tensor) -> Tensor:
    """Return the length of each pixel's ray, (H, W), whose z component is 1; radial = z |ray|."""
    x, y = axes(camera, like)
    return torch.sqrt(x.square() + y.square() + 1.0)


def to_pixels(points: Tensors, camera: Intrinsics) -> tuple[Tensor, Tensor, Tensor]:
    """Return x and y of points in pixels, and whether the camera can see them."""
    z = points[2].clamp_min(1e-6)
    x, y, seen = points[0] / z, points[1] / z, points[2] > 0
    if camera.distortion is not None:
        seen = seen & (x.square() + y.square() <= camera.distortion.limit**2)
        x, y = camera.distortion.distort(x, y)
    return camera.fx * x + camera.cx, camera.fy * y + camera.cy, seen
