"""Pictures of points: drawn from far to near, and a film of a camera that goes around them."""

import math

import numpy as np
from numpy.typing import NDArray

RGB = NDArray[np.uint8]
Array = NDArray[np.float64]
MOST_POINTS = 200_000
_BEHIND = np.array([24, 24, 28], np.uint8)
_HEIGHT, _WIDTH = 360, 480
_FOCAL = 1.2 * _HEIGHT
_TILT = 0.35  # radians by which the camera looks down


def draw_points(points: Array, colors: RGB, pixels: Array, size: tuple[int, int], spread: int) -> RGB:
    """Draw each point as a square, near ones over far ones.

    Args:
        points: (N, 3) in the camera's frame, before it.
        colors: (N, 3).
        pixels: (N, 2) where the camera sees them, x and y.
        size: (H, W) of the picture.
        spread: pixels of a square's side.
    """
    height, width = size
    picture = np.broadcast_to(_BEHIND, (height, width, 3)).copy()
    far_first = np.argsort(-points[:, 2])
    corner = np.clip(pixels[far_first], -1e6, 1e6).astype(np.int64)
    square = np.stack(np.meshgrid(np.arange(spread), np.arange(spread)), -1).reshape(-1, 2)
    column, row = np.moveaxis(corner[:, None] + square, -1, 0)  # (N, spread^2)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    shades = np.broadcast_to(colors[far_first][:, None], (*inside.shape, 3))
    picture[row[inside], column[inside]] = shades[inside]  # of two on one pixel the last stays
    return picture


def turntable(points: NDArray[np.float32], colors: RGB, count: int = 48) -> list[RGB]:
    """Return pictures of a camera that goes once around a cloud, looking down a little.

    Args:
        points: (N, 3), with y down.
        colors: (N, 3).
        count: of pictures.
    """
    chosen = np.random.default_rng(0).permutation(len(points))[:MOST_POINTS]  # every n-th would leave gaps
    some, shades = points[chosen].astype(np.float64), colors[chosen]
    low, high = np.percentile(some, [1, 99], axis=0) if len(some) else np.zeros((2, 3))
    radius = max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    away = 1.1 * _FOCAL * radius / (_HEIGHT / 2)
    spread = int(np.clip(math.ceil(1.5 * _HEIGHT / max(math.sqrt(len(some)), 1.0)), 1, 4)) + 1
    pictures = []
    for angle in 2 * math.pi * np.arange(count) / count:
        seen = (some - (low + high) / 2) @ _turn(angle).T + [0.0, 0.0, away]
        before = seen[:, 2] > 0.1 * away
        pixels = seen[before, :2] / seen[before, 2:] * _FOCAL + [_WIDTH / 2, _HEIGHT / 2]
        pictures.append(draw_points(seen[before], shades[before], pixels, (_HEIGHT, _WIDTH), spread))
    return pictures


def _turn(angle: float) -> Array:
    """Return the rotation (3, 3) about the vertical axis, then down."""
    c, s, d, e = math.cos(angle), math.sin(angle), math.cos(_TILT), math.sin(_TILT)
    around = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    down = np.array([[1, 0, 0], [0, d, -e], [0, e, d]])
    turned: Array = down @ around
    return turned
