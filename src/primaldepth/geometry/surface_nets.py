"""Signed distances on a sparse grid to a mesh, by surface nets (Gibson, 1998).

Each cell of eight voxels between which the sign changes has one vertex, the mean of where the surface
crosses its twelve edges. Each crossed edge has a quadrilateral between the vertices of the four cells
around it. So no table of cases is needed, and the triangles are even.
"""

import itertools
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.clouds import Mesh, PointCloud

SIDE: Final = 8  # voxels of a block
STEEPEST: Final = 1.0
"""Distances of neighbours that differ by more are free space and the back of something else, no surface."""
_CORNERS: Final = np.array(list(itertools.product((0, 1), repeat=3)))
_EDGES: Final = [
    (low, high)
    for low, high in itertools.combinations(range(8), 2)
    if np.abs(_CORNERS[low] - _CORNERS[high]).sum() == 1
]
_BITS: Final = 21  # of each coordinate in a packed one
_HALF: Final = 2 ** (_BITS - 1)
_BATCH: Final = 1024  # blocks that are worked on at a time


class Blocks(NamedTuple):
    """Values on blocks of 8x8x8 voxels.

    Args:
        keys: (N, 3) whole numbers; block k has the voxels 8 k to 8 k + 7.
        distance: (N, 8, 8, 8), positive before the surface, NaN where nothing is known.
        colors: (N, 8, 8, 8, 3) in 0..255.
    """

    keys: NDArray[np.int64]
    distance: NDArray[np.float32]
    colors: NDArray[np.float32]


def surface_nets(blocks: Blocks, voxel: float) -> Mesh:
    """Return the surface where the distance is 0.

    Args:
        blocks: of the grid; voxel (i, j, k) has its centre at (i + 0.5, j + 0.5, k + 0.5) voxels.
        voxel: size of a voxel.

    Returns:
        triangles whose normals point to where the distance is positive.
    """
    cells, values, colors = _crossed(blocks)
    points = (cells + 0.5 + _vertices(values)) * voxel
    triangles = _triangles(cells, values, points)
    used = np.unique(triangles)
    cloud = PointCloud(points[used].astype(np.float32), np.rint(colors[used]).astype(np.uint8))
    return Mesh(cloud, np.searchsorted(used, triangles).astype(np.uint32))


def _crossed(blocks: Blocks) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Return the cells that the surface crosses: (M, 3) first voxel, (M, 8) distances, (M, 3) colour."""
    following = np.stack([_rows(blocks.keys, blocks.keys + corner) for corner in _CORNERS], -1)
    count = len(blocks.keys)
    parts = [np.arange(start, min(start + _BATCH, count)) for start in range(0, max(count, 1), _BATCH)]
    found = [_crossed_part(blocks, following[part], part) for part in parts]
    cells, values, colors = zip(*found, strict=True)
    return np.concatenate(cells), np.concatenate(values), np.concatenate(colors)


def _crossed_part(
    blocks: Blocks, following: NDArray[np.int64], part: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    distance = _cells(blocks.distance, following)
    crossed = np.stack([_crosses(distance[..., low], distance[..., high]) for low, high in _EDGES])
    block, *inner = np.nonzero(crossed.any(axis=0))
    at = (block, *inner)
    values = distance[at]
    near = np.nan_to_num(1.0 - np.minimum(np.abs(values), 0.99))  # colour comes from close to the surface
    shades = _cells(blocks.colors, following)[at]
    color = (near[:, None] * shades).sum(-1) / near.sum(-1, keepdims=True)
    return blocks.keys[part[block]] * SIDE + np.stack(inner, -1), values, color


def _cells(values: NDArray[np.float32], following: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the values at the corners of each cell, (n, 8, 8, 8, ..., 8); NaN or 0 where no voxel is."""
    n, rest = len(following), values.shape[4:]
    padded = np.full((n, SIDE + 1, SIDE + 1, SIDE + 1, *rest), np.nan if not rest else 0.0, np.float32)
    for index, corner in enumerate(_CORNERS):
        there = following[:, index] >= 0
        into = (there, *(slice(SIDE, None) if beyond else slice(SIDE) for beyond in corner))
        of = (slice(None), *(slice(1) if beyond else slice(None) for beyond in corner))
        padded[into] = values[following[there, index]][of]
    inner = [(slice(None), *(slice(start, start + SIDE) for start in corner)) for corner in _CORNERS]
    return np.stack([padded[window] for window in inner], -1)


def _crosses(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return where the surface passes between two voxels; never where one of them is unknown."""
    return np.asarray(((low < 0) != (high < 0)) & (np.abs(low - high) <= STEEPEST))


def _vertices(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return (M, 3): the mean of where the surface crosses the edges of a cell, in voxels from its first."""
    total, count = np.zeros((len(values), 3)), np.zeros((len(values), 1))
    for low, high in _EDGES:
        a, b = values[:, low].astype(np.float64), values[:, high]
        crosses = _crosses(values[:, low], values[:, high])
        along = np.divide(a, a - b, out=np.zeros_like(a), where=crosses)[:, None]
        total += crosses[:, None] * (_CORNERS[low] + along * (_CORNERS[high] - _CORNERS[low]))
        count += crosses[:, None]
    return total / np.maximum(count, 1)


def _triangles(
    cells: NDArray[np.int64], values: NDArray[np.float32], points: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return (T, 3) rows of cells, two for each crossed edge around which all four cells have a vertex."""
    found = [np.zeros((0, 3), np.int64)]
    for axis in range(3):
        first, last = values[:, 0], values[:, 4 >> axis]
        edges = np.nonzero(_crosses(first, last))[0]
        b, c = np.eye(3, dtype=np.int64)[[(axis + 1) % 3, (axis + 2) % 3]]
        around = np.stack([_rows(cells, cells[edges] - step) for step in (0 * b, b, b + c, c)], -1)
        whole = (around >= 0).all(-1)
        quads = around[whole]
        outward = first[edges[whole]] < 0  # else the normal would point to where the distance is negative
        quads = np.where(outward[:, None], quads, quads[:, ::-1])
        p = points[quads]
        shorter = ((p[:, 0] - p[:, 2]) ** 2).sum(-1) <= ((p[:, 1] - p[:, 3]) ** 2).sum(-1)
        quads = np.where(shorter[:, None], quads, np.roll(quads, -1, axis=1))
        found += [quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]
    return np.concatenate(found)


def packed(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (M,): one number for the three of a cell, each in -2^20..2^20 - 1."""
    x, y, z = (cells + _HALF).T
    return np.asarray((x << 2 * _BITS) | (y << _BITS) | z)


def unpacked(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (M, 3): the cells that `packed` made numbers of."""
    return np.stack([numbers >> shift & 2 * _HALF - 1 for shift in (2 * _BITS, _BITS, 0)], -1) - _HALF


def _rows(known: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where cells stand in a list of others, -1 where they do not."""
    ours, theirs = packed(known), packed(wanted)
    if not len(ours):
        return np.full(len(theirs), -1)
    order = np.argsort(ours)
    place = order[np.searchsorted(ours, theirs, sorter=order).clip(max=len(ours) - 1)]
    return np.where(ours[place] == theirs, place, -1)
