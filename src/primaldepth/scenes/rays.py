"""Rays through pixel centres, and what they met as maps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.cameras import Intrinsics

Arrays = dict[str, NDArray[Any]]
Matrix = NDArray[np.float64]


def pixel_rays(camera: Intrinsics, to_guide: Matrix) -> NDArray[np.float32]:
    """(H * W, 3) unit directions through the pixels' centres, in the guide's axes."""
    rays = camera.rays()
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    return (rays.reshape(-1, 3) @ to_guide[:3, :3].T).astype(np.float32)


def maps(
    t: NDArray[Any],
    normal: NDArray[Any],
    albedo: NDArray[Any],
    number: NDArray[Any],
    directions: NDArray[np.float32],
    to_guide: Matrix,
    shape: tuple[int, int],
) -> Arrays:
    """Per-ray results as maps: z = t (d . forward), distance = t, amplitude = albedo cos / t^2.

    Args:
        t: (N,) ray length, 0 where nothing was hit.
        normal: (N, 3) towards the camera.
        albedo: (N,).
        number: (N,) object id.
        directions: (N, 3) unit.
        to_guide: (4, 4) from the camera's axes to the guide's.
        shape: rows and columns, N = rows * columns.
    """
    valid, length = number > 0, t.astype(np.float64)
    cosine = np.clip(-(normal * directions).sum(-1), 0, 1)
    found: Arrays = {
        "depth": (length * (directions.astype(np.float64) @ to_guide[:3, 2])).astype(np.float32),
        "distance": t.astype(np.float32),
        "amplitude": np.where(valid, albedo * cosine / np.maximum(t, 1e-6) ** 2, 0).astype(np.float32),
        "normals": np.where(valid[:, None], normal @ to_guide[:3, :3], 0).astype(np.float16),
        "ids": number.astype(np.uint16),
        "valid": valid,
    }
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in found.items()}
