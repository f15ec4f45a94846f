"""Rays through pixel centres, and maps of what they hit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.cameras import Intrinsics

Arrays = dict[str, NDArray[Any]]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlacedCamera:
    """A camera and its place.

    Args:
        camera: its pinhole.
        to_guide: (4, 4) from its axes to the guide's.
    """

    camera: Intrinsics
    to_guide: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.camera.height, self.camera.width


def pixel_rays(camera: Intrinsics, to_guide: Matrix) -> NDArray[np.float32]:
    """Return unit directions through the pixels' centres, (3, H * W), in the guide's axes."""
    x = (np.arange(camera.width) + 0.5 - camera.cx) / camera.fx
    y = ((np.arange(camera.height) + 0.5 - camera.cy) / camera.fy)[:, None]
    length = np.sqrt(x * x + y * y + 1.0)
    axes = np.empty((3, *length.shape), np.float32)
    for axis, row in zip(axes, to_guide[:3, :3], strict=True):
        np.divide(row[0] * x + row[1] * y + row[2], length, out=axis, casting="same_kind")
    return axes.reshape(3, -1)


def maps(
    t: NDArray[Any],
    normal: NDArray[Any],
    albedo: NDArray[Any],
    number: NDArray[Any],
    directions: NDArray[np.float32],
    to_guide: Matrix,
    shape: tuple[int, int],
) -> Arrays:
    """Turn results per ray into maps: z = t (d . forward), distance = t, amplitude = albedo cos / t^2.

    Args:
        t: (N,) ray length, 0 where nothing was hit.
        normal: (3, N) towards the camera.
        albedo: (N,).
        number: (N,) object id.
        directions: (3, N) unit.
        to_guide: (4, 4) from the camera's axes to the guide's.
        shape: rows and columns, N = rows * columns.

    Returns:
        depth, distance, amplitude, ids, valid, each (H, W), and normals (H, W, 3) in the camera's axes.
    """
    valid = number > 0
    rotation = to_guide[:3, :3]
    if np.array_equal(rotation, np.eye(3)):  # of the guide: products with 0 and 1 are exact, even short ones
        rotation = np.eye(3, dtype=np.float32)
    forward = _along(directions, rotation[:, 2])
    turned = [_along(normal, axis) for axis in rotation.T]
    cosine = np.clip(-(normal * directions).sum(0), 0, 1)
    found: Arrays = {
        "depth": (t * forward).astype(np.float32),
        "distance": t.astype(np.float32),
        "amplitude": np.where(valid, albedo * cosine / np.maximum(t, 1e-6) ** 2, 0).astype(np.float32),
        "normals": np.stack([np.where(valid, axis, np.float32(0)).astype(np.float16) for axis in turned], -1),
        "ids": number.astype(np.uint16),
        "valid": valid,
    }
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in found.items()}


def _along(vectors: NDArray[Any], axis: NDArray[Any]) -> NDArray[Any]:
    """Return the scalar products of (3, N) vectors with one axis."""
    total: NDArray[Any] = axis[0] * vectors[0] + axis[1] * vectors[1] + axis[2] * vectors[2]
    return total
