"""Many depth maps of known pose become one surface: a truncated signed distance on a sparse grid.

Each voxel x keeps the weighted mean of what the views say of its distance to the surface. A view with depth
z(.) sees x at depth z_x on the pixel p and says

    d = min((z(p) - z_x) / tau, 1)   where  z(p) - z_x >= -tau,

with the truncation tau = 4 voxels; of what lies deeper behind the surface it says nothing. Its weight is
h^2 / (h^2 + sigma^2) with the voxel's size h, so that a sample much finer than the grid counts 1 and one that
may be off by more counts less. Only blocks of 8x8x8 voxels within tau of a sample exist.
"""

import itertools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError, Worded
from primaldepth.geometry.clouds import Mesh
from primaldepth.geometry.conversions import Mask
from primaldepth.geometry.surface_nets import SIDE, Blocks, packed, surface_nets, unpacked
from primaldepth.geometry.views import PosedView

TRUNCATION: Final = 4.0  # voxels
MOST_BLOCKS: Final = 2**17  # 1.6 GB
_MOST_STEP: Final = 8  # pixels between the samples that decide which blocks exist
_BATCH: Final = 1024  # blocks that are worked on at a time
_CORNERS: Final = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
_CENTRES: Final = np.stack(np.meshgrid(*[np.arange(SIDE) + 0.5] * 3, indexing="ij"), -1).reshape(-1, 3)


class Volume:
    """A surface that grows with every view.

    Args:
        voxel: size of a voxel in metres.

    Raises:
        InputError: if the size is not positive and finite.
    """

    def __init__(self, voxel: float) -> None:
        if not (np.isfinite(voxel) and voxel > 0):
            raise InputError(Worded("--voxel", "voxel"), f"{voxel:g} m", "give a positive number")
        self.voxel, self.tau = voxel, TRUNCATION * voxel
        self._rows: dict[
            tuple[int, ...], int
        ] = {}  # of each block in the arrays, in the order they were made
        self._distance = np.zeros((0, SIDE**3), np.float32)
        self._weight = np.zeros((0, SIDE**3), np.float32)
        self._color = np.zeros((0, SIDE**3, 4), np.float32)  # sums of red, green, blue and of their weights

    def add(self, view: PosedView) -> None:
        """Let one view say what it sees; samples whose sigma is above tau are left out.

        Raises:
            InputError: if the grid becomes too large.
        """
        used = view.valid & np.isfinite(view.depth) & (view.depth > 0)
        weight = np.ones(used.shape, np.float32)
        if view.sigma is not None:
            used &= view.sigma <= self.tau
            variance = np.where(used, view.sigma, 0.0) ** 2
            weight = (self.voxel**2 / (self.voxel**2 + variance)).astype(np.float32)
        if used.any():
            keys, rows = self._near(view, used)
            for start in range(0, len(rows), _BATCH):
                part = slice(start, start + _BATCH)
                self._update(keys[part], rows[part], view, np.where(used, weight, 0.0))

    def mesh(self) -> Mesh:
        """Return the surface where the mean distance is 0, in the world's frame; it may have no triangle."""
        count, grid = len(self._rows), (-1, SIDE, SIDE, SIDE)
        keys = np.array(list(self._rows), np.int64).reshape(-1, 3)
        distance = np.where(self._weight[:count] > 0, self._distance[:count], np.nan)
        color, weight = self._color[:count, :, :3], self._color[:count, :, 3:]
        mean = np.divide(color, weight, out=np.full_like(color, 128.0), where=weight > 0)
        return surface_nets(Blocks(keys, distance.reshape(grid), mean.reshape(*grid, 3)), self.voxel)

    def _near(self, view: PosedView, used: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return keys and rows of all blocks within tau of a sample; those that are missing are made."""
        side, focal = SIDE * self.voxel, min(view.camera.fx, view.camera.fy)
        step = int(np.clip(0.5 * side * focal / float(view.depth[used].max()), 1, _MOST_STEP))
        some = used[::step, ::step]
        rays, z = view.camera.rays()[::step, ::step][some], view.depth[::step, ::step][some]
        points = view.pose.to_world(rays * z[:, None])
        points = points[np.isfinite(points).all(-1)]
        cells = np.floor((points[:, None] + self.tau * _CORNERS) / side).astype(np.int64)
        keys = unpacked(np.unique(packed(cells.reshape(-1, 3))))
        rows = [self._rows.setdefault(tuple(key), len(self._rows)) for key in keys.tolist()]
        self._make_room()
        return keys, np.array(rows, np.int64)

    def _make_room(self) -> None:
        """Lengthen the arrays to hold every block, twofold so that this is rare."""
        wanted, there = len(self._rows), len(self._distance)
        if wanted > MOST_BLOCKS:
            raise InputError(
                Worded("--voxel", "voxel"),
                f"{self.voxel:g} m makes more than {MOST_BLOCKS} blocks of {SIDE}x{SIDE}x{SIDE} voxels",
                "give a larger one, or leave out what is far away by --max-depth",
            )
        if wanted > there:
            more = max(wanted, min(2 * there, MOST_BLOCKS)) - there
            for name in ("_distance", "_weight", "_color"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), np.float32)]))

    def _update(
        self,
        keys: NDArray[np.int64],
        rows: NDArray[np.int64],
        view: PosedView,
        weights: NDArray[np.float32],
    ) -> None:
        """Update the voxels of these blocks with what the view shows; pixels of weight 0 show nothing."""
        centres = (keys[:, None] * SIDE + _CENTRES) * self.voxel
        seen = view.pose.to_camera(centres.reshape(-1, 3))
        pixel = view.camera.project(seen)
        height, width = view.depth.shape
        with np.errstate(invalid="ignore"):
            inside = (pixel >= 0).all(-1) & (pixel[:, 0] < width) & (pixel[:, 1] < height)
        (at,) = np.nonzero(inside)  # voxels of these blocks, one after the other
        column, row = pixel[at].astype(np.int64).T
        gap = (view.depth[row, column] - seen[at, 2]) / self.tau
        known = (weights[row, column] > 0) & (gap >= -1.0)
        at, row, column, d = at[known], row[known], column[known], np.minimum(gap[known], 1.0)
        voxel, w = rows[at // SIDE**3] * SIDE**3 + at % SIDE**3, weights[row, column]
        distance, weight = self._distance.reshape(-1), self._weight.reshape(-1)  # views
        weight[voxel] += w
        distance[voxel] += (w * (d - distance[voxel]) / weight[voxel]).astype(np.float32)
        (near,) = np.nonzero(d < 1.0)  # free space in front of a surface has no colour
        color = np.ones((len(near), 4), np.float32)
        color[:, :3] = view.colors[row[near], column[near]]
        share = (w * (1.0 - np.abs(d)))[near, None].astype(np.float32)
        self._color.reshape(-1, 4)[voxel[near]] += share * color
