"""Depth map and camera to a mesh of triangles, cut where the depth jumps."""

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import Mesh, PointCloud
from primaldepth.geometry.conversions import Map, Mask, check_maps, check_size

MAX_JUMP = 0.02


def depth_mesh(
    depth: Map,
    valid: Mask,
    intrinsics: Intrinsics,
    *,
    colors: NDArray[np.uint8] | None = None,
    max_jump: float = MAX_JUMP,
) -> Mesh:
    """Make two triangles of each four neighbouring pixels that are valid and have no jump between them.

    An edge jumps if |z_a - z_b| > max_jump min(z_a, z_b). The cell is split along the flatter diagonal.

    Args:
        depth: (H, W) z along the optical axis, > 0; metres if the mesh shall be in metres.
        valid: (H, W).
        intrinsics: of the camera that saw it, for H x W pixels.
        colors: (H, W, 3) sRGB of the same pixels, or None for mid-grey.
        max_jump: relative; a surface seen by pixels of a thousandth of the focal length may be steeper than
            the tangent max_jump 1000 before it is cut.

    Returns:
        The triangles, in the camera's frame.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> from primaldepth.geometry.meshing import depth_mesh
        >>> depth = np.full((2, 6), 2.0)
        >>> depth[:, 3:] = 3.0  # a step from 2 to 3 metres is cut
        >>> len(depth_mesh(depth, depth > 0, Intrinsics.guess(6, 2)).triangles)
        8
    """
    check_jump(max_jump)
    check_maps(depth, valid)
    check_size(depth, intrinsics)
    kept = valid & np.isfinite(intrinsics.rays()).all(-1)
    triangles = _triangles(np.where(kept, depth, np.nan).astype(np.float64), max_jump)
    used = np.zeros(depth.size, bool)
    used[triangles] = True
    cloud = point_cloud(depth, used.reshape(depth.shape), intrinsics, colors=colors)
    renumbered = np.cumsum(used) - 1
    return Mesh(PointCloud(cloud.points, cloud.colors), renumbered[triangles].astype(np.uint32))


def check_jump(max_jump: float) -> float:
    """Raise an error unless `max_jump` is a finite number above 0."""
    if not (np.isfinite(max_jump) and max_jump > 0):
        raise InputError("mesh jump", f"{max_jump}, expected a finite number > 0, such as {MAX_JUMP}")
    return max_jump


def _triangles(z: NDArray[np.float64], max_jump: float) -> NDArray[np.int64]:
    """Return the corners of each triangle as flat indices, (M, 3), counter-clockwise on the screen."""
    at = np.arange(z.size).reshape(z.shape)
    a, b, c, d = at[:-1, :-1].ravel(), at[:-1, 1:].ravel(), at[1:, :-1].ravel(), at[1:, 1:].ravel()
    q = z.ravel()
    rising = np.abs(q[b] - q[c]) <= np.abs(q[a] - q[d])  # False too where a corner is NaN
    rising |= np.isnan(q[a]) | np.isnan(q[d])
    split = [
        np.where(rising[:, None], np.stack([a, c, b], 1), np.stack([a, c, d], 1)),
        np.where(rising[:, None], np.stack([b, c, d], 1), np.stack([a, d, b], 1)),
    ]
    found = np.stack(split, 1).reshape(-1, 3)
    corners = q[found]
    low, high = corners.min(1), corners.max(1)
    flat: NDArray[np.int64] = found[high - low <= max_jump * low]
    return flat
