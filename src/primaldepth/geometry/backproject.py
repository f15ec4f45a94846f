"""Depth map and camera to a cloud of points in the camera's frame: x right, y down, z forward."""

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud, expect
from primaldepth.geometry.conversions import Map, Mask, check_maps, check_size


def backproject(depth: Map, valid: Mask, intrinsics: Intrinsics) -> NDArray[np.float32]:
    """Return the point z (X, Y, 1) of each valid pixel, with (X, Y, 1) its ray, distortion undone.

    Args:
        depth: (H, W) z along the optical axis, any unit.
        valid: (H, W).
        intrinsics: of the camera that saw it, for H x W pixels.

    Returns:
        (N, 3) in the depth's unit; row by row, N the number of valid pixels that have a ray.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.backproject import backproject
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> camera = Intrinsics(fx=2, fy=2, cx=0.5, cy=0.5, width=2, height=1)
        >>> depth = np.array([[4.0, 4.0]])
        >>> backproject(depth, depth > 0, camera).tolist()
        [[0.0, 0.0, 4.0], [2.0, 0.0, 4.0]]
    """
    check_maps(depth, valid)
    check_size(depth, intrinsics)
    bad = int(np.count_nonzero(~np.isfinite(depth[valid])))
    if bad:
        raise InputError("depth", f"{bad} valid pixels are NaN or infinite", "mark them as not valid")
    rays = intrinsics.rays()
    kept = valid & np.isfinite(rays).all(-1)
    points = rays[kept] * depth[kept].astype(np.float64)[:, None]
    return points.astype(np.float32)


def point_cloud(
    depth: Map,
    valid: Mask,
    intrinsics: Intrinsics,
    *,
    colors: NDArray[np.uint8] | None = None,
    measured: Mask | None = None,
) -> PointCloud:
    """Return the valid pixels as coloured points in the camera's frame, ready to be written.

    Args:
        depth: (H, W) z along the optical axis; metres if the cloud shall be in metres.
        valid: (H, W).
        intrinsics: of the camera that saw it, for H x W pixels.
        colors: (H, W, 3) sRGB of the same pixels, or None for mid-grey points.
        measured: (H, W) False where the depth was filled in, or None if unknown.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.backproject import point_cloud
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> depth = np.array([[2.0, 0.0, 2.0]])
        >>> point_cloud(depth, depth > 0, Intrinsics.guess(3, 1)).points.shape  # a hole is no point
        (2, 3)
    """
    points = backproject(depth, valid, intrinsics)
    kept = valid & np.isfinite(intrinsics.rays()).all(-1)
    if colors is not None:
        expect("colours", colors, (*depth.shape, 3), np.uint8)
    if measured is not None:
        expect("measured", measured, depth.shape, np.bool_)
    picked = np.full((len(points), 3), 128, np.uint8) if colors is None else colors[kept]
    return PointCloud(points, picked, None if measured is None else measured[kept])
