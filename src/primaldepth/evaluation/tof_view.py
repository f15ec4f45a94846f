"""Samples of a time-of-flight camera in the view of the intensity camera beside it, as ToFMark does it.

Samples are lifted along their rays, projected, rounded to pixels and drawn from far to near. What is drawn
is averaged over square cells of the guide's pixels, about as many as the ToF camera has: the frame that
methods get has the resolution of the samples, and holes where none fell.

All lengths are millimetres, all points are in the axes of the intensity camera, and the centre of the first
pixel is (0, 0) in both camera matrices.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.frame import Frame

Map = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]


def lift(distance: Map, P: Map) -> Map:
    """Return the point X = C + r ray / |ray| of every pixel, (h w, 3); C = -M^-1 p, ray = M^-1 (x, y, 1).

    Args:
        distance: (h, w) along the rays.
        P: (3, 4) projection of the camera that measured it.
    """
    M = P[:, :3] * np.sign(np.linalg.det(P[:, :3]))  # so that rays point forwards
    y, x = np.indices(distance.shape).reshape(2, -1)
    rays = np.linalg.solve(M, np.stack([x, y, np.ones_like(x)]).astype(np.float64)).T
    centre = -np.linalg.solve(P[:, :3], P[:, 3])
    points: Map = centre + distance.reshape(-1, 1) * rays / np.linalg.norm(rays, axis=1, keepdims=True)
    return points


def draw(points: Map, usable: Mask, K: Map, size: tuple[int, int]) -> tuple[Index, Index]:
    """Return the flat index of each pixel that is hit, and the nearest of the points that fall on it.

    Args:
        points: (n, 3).
        usable: (n,) which of them to draw.
        K: (3, 3) of the camera that sees them.
        size: (H, W) of its image.
    """
    z = points[:, 2]
    usable = usable & (z > 0)
    x, y, _ = K @ (points / np.where(usable, z, 1.0)[:, None]).T
    column, row = np.floor(x + 0.5), np.floor(y + 0.5)
    inside = usable & (row >= 0) & (row < size[0]) & (column >= 0) & (column < size[1])
    chosen = np.flatnonzero(inside)
    chosen = chosen[np.argsort(z[chosen], kind="stable")]  # near to far: the first on a pixel stays
    pixels, first = np.unique((row * size[1] + column)[chosen].astype(np.int64), return_index=True)
    return pixels, chosen[first]


def cell_frame(distance: Map, sigma: Map, valid: Mask, P: Map, K: Map, guide: Tensor, cell: int) -> Frame:
    """Return the frame of samples in the guide's view: mean z of each cell and its standard deviation.

    Args:
        distance: (h, w) along the rays.
        sigma: (h, w) standard deviation of the distance.
        valid: (h, w).
        P: (3, 4) of the ToF camera.
        K: (3, 3) of the guide's.
        guide: (1, C, H, W).
        cell: pixels of the guide per side; with 1, samples stay on the pixel they fall on.
    """
    size = int(guide.shape[2]), int(guide.shape[3])
    grid = size[0] // cell, size[1] // cell
    points = lift(np.where(valid, distance, 1.0), P)
    pixels, chosen = draw(points, valid.reshape(-1), K, size)
    z = points[chosen, 2]
    deviation = z / distance.reshape(-1)[chosen] * sigma.reshape(-1)[chosen]  # dz / dr, up to the baseline
    cells = _cells(pixels, size, grid)
    count = np.bincount(cells, minlength=grid[0] * grid[1])
    mean, variance = (
        np.bincount(cells, values, minlength=count.size) / np.maximum(count, 1)
        for values in (z, deviation**2)
    )
    maps = mean, np.sqrt(variance / np.maximum(count, 1))
    depth, spread = (torch.from_numpy(each).float().view(1, 1, *grid) for each in maps)
    some = torch.from_numpy(count > 0).view(1, 1, *grid)
    return Frame(depth, some, guide, sigma=spread, registered=True)


def _cells(pixels: Index, size: tuple[int, int], grid: tuple[int, int]) -> Index:
    """Return the flat index of the cell of each pixel; cells that do not divide the image are larger."""
    row, column = np.divmod(pixels, size[1])
    return np.asarray((row * grid[0] // size[0]) * grid[1] + column * grid[1] // size[1])


def seen_by(z: Map, K: Map, P: Map, size: tuple[int, int]) -> Mask:
    """Return True, (H, W), where the point at z of a pixel lies in the image of the other camera.

    Args:
        z: (H, W) of the camera with K.
        P: (3, 4) of the other camera.
        size: (h, w) of its image.
    """
    row, column = np.indices(z.shape).reshape(2, -1)
    rays = np.linalg.solve(K, np.stack([column, row, np.ones_like(row)]).astype(np.float64))
    x, y, w = P[:, :3] @ (rays * z.reshape(-1)) + P[:, 3:]
    x, y = x / np.where(w > 0, w, 1.0), y / np.where(w > 0, w, 1.0)
    inside = (w > 0) & (x > -0.5) & (x < size[1] - 0.5) & (y > -0.5) & (y < size[0] - 0.5)
    return np.asarray(inside.reshape(z.shape))
