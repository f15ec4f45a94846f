"""Samples of a time-of-flight camera in the view of the intensity camera beside it, as ToFMark does it.

Samples are lifted along their rays, projected, rounded to pixels and drawn from far to near. The frame
that methods get has the guide's size and a sample on a few per cent of its pixels.

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
    """(h w, 3): X = C + r ray / |ray| of every pixel, with P = [M p], C = -M^-1 p, ray = M^-1 (x, y, 1).

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
    """(pixels, points): flat index of each pixel hit, and the nearest of the points that fall on it.

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


def sparse_frame(distance: Map, sigma: Map, valid: Mask, P: Map, K: Map, guide: Tensor) -> Frame:
    """The samples that fall into the guide's view: z, and the standard deviation of z, where they fall.

    Args:
        distance: (h, w) along the rays.
        sigma: (h, w) standard deviation of the distance.
        valid: (h, w).
        P: (3, 4) of the ToF camera.
        K: (3, 3) of the guide's.
        guide: (1, C, H, W).
    """
    size = int(guide.shape[2]), int(guide.shape[3])
    points = lift(np.where(valid, distance, 1.0), P)
    pixels, chosen = draw(points, valid.reshape(-1), K, size)
    share = np.abs(points[:, 2]) / np.where(valid, distance, 1.0).reshape(-1)  # dz / dr, up to the baseline
    maps = torch.zeros((2, size[0] * size[1]), dtype=torch.float32)
    maps[0, pixels] = torch.from_numpy(points[chosen, 2]).float()
    maps[1, pixels] = torch.from_numpy((share * sigma.reshape(-1))[chosen]).float()
    depth, deviation = maps.view(2, 1, 1, *size)
    return Frame(depth, depth > 0, guide, sigma=deviation)


def seen_by(z: Map, K: Map, P: Map, size: tuple[int, int]) -> Mask:
    """(H, W): True where the point at z of a pixel lies in the image of the other camera.

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
