"""Triangle meshes: the type, and the few ways in which every shape is put together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ShapeMesh:
    """A triangle mesh with texture coordinates.

    Args:
        vertices: (V, 3).
        faces: (F, 3) indices of vertices.
        uv: (V, 2) in [0, 1].
        weld: (V,) vertices of equal number share one normal; that makes a seam or a pole smooth.
    """

    vertices: Floats
    faces: Ints
    uv: Floats
    weld: Ints


def grid(points: ArrayLike, *, wrap: tuple[bool, bool] = (False, False)) -> ShapeMesh:
    """Make a surface through (n, m, 3) points; texture coordinates run from 0 to 1 along m and n.

    Args:
        points: (n, m, 3).
        wrap: whether the first and the last row, and column, are one line (their normals are shared).
    """
    p = np.asarray(points, dtype=np.float64)
    n, m = p.shape[:2]
    faces, uv = _sheet(n, m)
    weld = np.arange(n * m).reshape(n, m)
    if wrap[0]:
        weld[-1] = weld[0]
    if wrap[1]:
        weld[:, -1] = weld[:, 0]
    for row in (0, -1):  # a row that is one point is a pole
        if np.ptp(p[row], axis=0).max() < 1e-9:
            weld[row] = weld[row, 0]
    return ShapeMesh(p.reshape(-1, 3), faces, uv, weld.ravel())


@cache
def _sheet(n: int, m: int) -> tuple[Ints, Floats]:
    """Return faces and texture coordinates of n x m points; cached, so they must not be written to."""
    index = np.arange(n * m).reshape(n, m)
    a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    u, v = np.meshgrid(np.linspace(0, 1, m), np.linspace(0, 1, n))
    uv = np.stack([u, v], -1).reshape(-1, 2)
    faces.flags.writeable = uv.flags.writeable = False
    return faces, uv


def facets(points: ArrayLike) -> ShapeMesh:
    """Make flat polygons of equal corner count, each with the whole texture on it.

    Args:
        points: (n, k, 3) corners in order, k = 3 or 4.
    """
    p = np.asarray(points, dtype=np.float64)
    faces, uv, index = _fans(*p.shape[:2])
    return ShapeMesh(p.reshape(-1, 3), faces, uv, index)


@cache
def _fans(n: int, k: int) -> tuple[Ints, Floats, Ints]:
    """Return faces, texture coordinates and numbers of the corners of n polygons with k of them each.

    They are cached, so they must not be written to.
    """
    first = k * np.arange(n)[:, None]
    fan = np.array([[0, i, i + 1] for i in range(1, k - 1)])
    faces = (first[:, :, None] + fan).reshape(-1, 3)
    uv = np.tile(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])[:k], (n, 1))
    index = np.arange(n * k)
    faces.flags.writeable = uv.flags.writeable = index.flags.writeable = False
    return faces, uv, index


def merge(parts: Sequence[ShapeMesh]) -> ShapeMesh:
    """Return the parts joined into one mesh."""
    offsets = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return ShapeMesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, offsets, strict=False)]),
        np.concatenate([part.uv for part in parts]),
        np.concatenate([part.weld + start for part, start in zip(parts, offsets, strict=False)]),
    )


def block(low: ArrayLike, high: ArrayLike) -> ShapeMesh:
    """Make the box between two corners."""
    corners = np.stack([np.asarray(low, float), np.asarray(high, float)])
    return facets(corners[_CUBE, np.arange(3)])


def _cube() -> Ints:
    """Return at which end of each axis the corners of a box's six sides lie, (6, 4, 3)."""
    sides = np.empty((6, 4, 3), np.int64)
    for axis in range(3):
        for end in (0, 1):
            quad = sides[2 * axis + end]
            quad[:, axis] = end
            quad[:, (axis + 1) % 3] = (0, 1, 1, 0) if end else (1, 0, 0, 1)
            quad[:, (axis + 2) % 3] = (0, 0, 1, 1)
    return sides


_CUBE = _cube()


def tube(path: ArrayLike, radius: ArrayLike, *, sides: int = 10, closed: bool = False) -> ShapeMesh:
    """Make a round tube along a path, open at its ends; `closed` if its last point is its first.

    Args:
        path: (n, 3).
        radius: (n,) or one number.
        sides: of its cross-section.
        closed: whether it is a ring.
    """
    p = np.asarray(path, dtype=np.float64)
    along = np.gradient(p, axis=0)
    if closed:
        along[0] = along[-1] = p[1] - p[-2]
    along /= np.linalg.norm(along, axis=1, keepdims=True) + 1e-12
    # One fixed direction, the axis the path extends least in, makes frames without twist.
    fixed = np.eye(3)[np.argmin(np.ptp(p, axis=0))]
    side = np.cross(along, fixed)
    side /= np.linalg.norm(side, axis=1, keepdims=True) + 1e-12
    other = np.cross(along, side)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    ring = np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * other[:, None]
    r = np.broadcast_to(np.asarray(radius, float), len(p))
    return grid(p[:, None] + r[:, None, None] * ring, wrap=(closed, True))


def lathe(pieces: Sequence[ArrayLike], *, segments: int = 32) -> ShapeMesh:
    """Turn profiles around the y axis; between pieces the surface has a crease.

    Args:
        pieces: each (n, 2) of (radius, height).
        segments: around the axis.
    """
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    angle[-1] = 0.0  # the seam closes exactly
    turned = []
    for piece in pieces:
        profile = np.asarray(piece, dtype=np.float64)
        r, y = profile[:, :1], profile[:, 1:]
        points = np.stack(
            [r * np.cos(angle), np.broadcast_to(y, (len(y), len(angle))), r * np.sin(angle)], -1
        )
        turned.append(grid(points, wrap=(False, True)))
    return merge(turned)


def fitted(mesh: ShapeMesh, size: ArrayLike) -> ShapeMesh:
    """Return the mesh stretched and moved so that it fills the box of `size` around the origin."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    extent = np.maximum(high - low, 1e-9)
    vertices = (mesh.vertices - (low + high) / 2) / extent * np.asarray(size, float)
    return replace(mesh, vertices=vertices)


def normals(mesh: ShapeMesh) -> Floats:
    """Return unit normals of the vertices, (V, 3): means of the faces around them, weighted by area."""
    first, second, third = (mesh.vertices[corner].T for corner in mesh.faces.T)
    a, b = second - first, third - first
    face = [a[k - 2] * b[k - 1] - a[k - 1] * b[k - 2] for k in range(3)]  # a x b
    slots = mesh.weld[mesh.faces].ravel()
    count = len(mesh.vertices)
    total = np.stack([np.bincount(slots, np.repeat(each, 3), count) for each in face], axis=1)
    chosen = total[mesh.weld]
    length = np.linalg.norm(chosen, axis=1, keepdims=True)
    return np.where(length > 1e-20, chosen / np.maximum(length, 1e-20), [0.0, 0.0, 1.0])
