"""Normals of the surface that a depth map shows."""

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.conversions import Map, Mask, check_maps, check_size
from primaldepth.geometry.intrinsics import Intrinsics


def surface_normals(depth: Map, valid: Mask, intrinsics: Intrinsics) -> NDArray[np.float32]:
    """Return n = (P_y x P_x) / |P_y x P_x|, with P_x and P_y the steps to the next point in a row and column.

    Of the points on either side the one nearer in depth is taken, so that no normal bridges an edge.

    Args:
        depth: (H, W) z along the optical axis, > 0.
        valid: (H, W).
        intrinsics: of the camera that saw it, for H x W pixels.

    Returns:
        (H, W, 3) of length 1 in the camera's frame (x right, y down, z forward), turned to the camera; NaN
        where a pixel or its neighbours in a row or column are not valid.
    """
    check_maps(depth, valid)
    check_size(depth, intrinsics)
    points = intrinsics.rays().astype(np.float32)
    points *= np.where(valid, depth, np.nan).astype(np.float32)[..., None]
    normals = np.cross(_steps(points, 0), _steps(points, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[np.einsum("ijk,ijk->ij", normals, points) > 0] *= -1.0
    return normals


def _steps(points: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Return the step to the next point or from the one before, whichever is nearer in depth, (H, W, 3)."""
    steps = np.diff(points, axis=axis)
    edge = np.full_like(np.take(points, [0], axis), np.nan)
    after, before = np.concatenate([steps, edge], axis), np.concatenate([edge, steps], axis)
    near = [np.nan_to_num(np.abs(each[..., 2]), nan=np.inf) for each in (after, before)]
    return np.where((near[0] <= near[1])[..., None], after, before)
