"""Depth kinds: z (along the optical axis), radial (along the ray), disparity (pixels between two views).

Every function reads values only where `valid` is True, writes 0 elsewhere, and leaves its arguments alone.
"""

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import expect

Map = NDArray[np.floating]
Mask = NDArray[np.bool_]


def radial_from_z(z: Map, valid: Mask, intrinsics: Intrinsics) -> Map:
    """Return the distance along the ray, r = z |ray|, ray = ((x - cx) / fx, (y - cy) / fy, 1) undistorted.

    NaN at valid pixels for which the lens model has no ray.

    Args:
        z: (H, W) along the optical axis.
        valid: (H, W).
        intrinsics: of the camera that saw this map, for H x W pixels.

    Returns:
        (H, W) in the unit of z, 0 where not valid.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> from primaldepth.geometry.conversions import radial_from_z, z_from_radial
        >>> camera = Intrinsics(fx=3, fy=3, cx=0.5, cy=0.5, width=5, height=1)
        >>> z = np.full((1, 5), 3.0)
        >>> radial = radial_from_z(z, z > 0, camera)
        >>> float(radial[0, 4])  # a triangle of 3, 4 and 5
        5.0
        >>> bool(np.allclose(z_from_radial(radial, z > 0, camera), z))
        True
    """
    check_maps(z, valid)
    return _times(z, valid, ray_lengths(z, intrinsics))


def z_from_radial(radial: Map, valid: Mask, intrinsics: Intrinsics) -> Map:
    """Return the depth along the optical axis, z = r / |ray|; the inverse of `radial_from_z`.

    Args:
        radial: (H, W) distance along the ray.
        valid: (H, W).
        intrinsics: of the camera that saw this map, for H x W pixels.

    Returns:
        (H, W); 0 where not valid, NaN where the lens model has no ray.
    """
    check_maps(radial, valid)
    return _times(radial, valid, 1.0 / ray_lengths(radial, intrinsics))


def z_from_disparity(disparity: Map, valid: Mask, baseline_focal: float) -> Map:
    """Return the depth of a rectified stereo pair, z = baseline focal / disparity, in the baseline's unit.

    Args:
        disparity: (H, W) in pixels, > 0 where valid.
        valid: (H, W).
        baseline_focal: baseline (metres, say) times focal length (pixels of the disparity's image).

    Returns:
        (H, W), 0 where not valid.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.conversions import z_from_disparity
        >>> disparity = np.array([[30.0, 60.0]])
        >>> z_from_disparity(disparity, disparity > 0, baseline_focal=0.1 * 600).tolist()
        [[2.0, 1.0]]
    """
    return _reciprocal("disparity", disparity, valid, baseline_focal)


def disparity_from_z(z: Map, valid: Mask, baseline_focal: float) -> Map:
    """Return the disparity of a rectified pair, d = baseline focal / z; the inverse of `z_from_disparity`.

    Args:
        z: (H, W) along the optical axis, > 0 where valid.
        valid: (H, W).
        baseline_focal: baseline (in the unit of z) times focal length (pixels).

    Returns:
        (H, W) in pixels, 0 where not valid.
    """
    return _reciprocal("z", z, valid, baseline_focal)


def check_maps(values: Map, valid: Mask) -> None:
    """Raise an error unless `values` is a floating (H, W) and `valid` a bool of the same shape."""
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.floating):
        raise InputError(
            "depth", f"shape {values.shape}, dtype {values.dtype}, expected a floating point (H, W)"
        )
    expect("valid", valid, values.shape, np.bool_)


def check_size(values: Map, intrinsics: Intrinsics) -> None:
    """Raise an error unless the camera's image has the size of the map."""
    height, width = values.shape
    if (width, height) != (intrinsics.width, intrinsics.height):
        raise InputError(
            "intrinsics",
            f"{intrinsics.width}x{intrinsics.height} pixels, but the depth has {width}x{height}",
            f"use intrinsics.scaled_to({width}, {height}) if both cover the same field of view",
        )


def ray_lengths(values: Map, intrinsics: Intrinsics) -> NDArray[np.float64]:
    """Return (H, W): length of the ray through each pixel centre, whose z component is 1."""
    check_size(values, intrinsics)
    rays = intrinsics.rays()
    lengths: NDArray[np.float64] = np.sqrt(rays[..., 0] ** 2 + rays[..., 1] ** 2 + 1.0)
    return lengths


def _times(values: Map, valid: Mask, factor: NDArray[np.float64]) -> Map:
    product = np.where(valid, np.where(valid, values, 0) * factor, 0)
    return product.astype(values.dtype)


def _reciprocal(name: str, values: Map, valid: Mask, baseline_focal: float) -> Map:
    check_maps(values, valid)
    if not (np.isfinite(baseline_focal) and baseline_focal > 0):
        raise InputError("baseline * focal", f"{baseline_focal}, expected a finite number > 0")
    bad = int(np.count_nonzero(~(values[valid] > 0)))
    if bad:
        raise InputError(name, f"{bad} valid pixels are not > 0", "mark them as not valid before converting")
    result = baseline_focal / np.where(valid, values, 1).astype(np.float64)
    return np.where(valid, result, 0).astype(values.dtype)
