"""Points of a scanner in the view of a camera: where each falls, without those that a surface hides."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, max_pool2d, one_hot

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.rig import Rig, to_pixels

NEARER = 0.05  # of the depth: what is nearer by more hides what lies behind
REACH = 1.8  # times the distance of the points: how far around a hidden point those before it are
SECTORS, OPEN = 24, 15  # of a turn; so many in a row without a nearer point, 225 degrees, and a point is seen
AT_ONCE = 2**20  # pairs of a point and a pixel


@dataclass(frozen=True, slots=True, eq=False)
class Scattered:
    """z of the points that the camera sees, (1, 1, H, W), 0 on pixels without one.

    Args:
        hidden: how many pixels had only points that a nearer surface hides.
    """

    depth: Tensor
    valid: Tensor
    hidden: int


def scattered(points: Tensor, cameras: Cameras, size: tuple[int, int]) -> Scattered:
    """Project points into the guide's view; on a pixel the nearest counts.

    A scanner that stands beside the camera sees what the camera does not: those points fall between the
    points of a nearer surface, and are left out.

    Args:
        points: (N, 3) in metres, in axes of their own: X_guide = R X + t.
        cameras: with the guide's camera, R and t.
        size: (H, W) of the guide.
    """
    camera = cameras.guide.scaled_to(size[1], size[0])
    rig = Rig(camera, camera, cameras.rotation, cameras.translation)
    moved = rig.forward((points[:, 0], points[:, 1], points[:, 2]))
    x, y, seen = to_pixels(moved, camera)
    inside = seen & (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
    if not bool(inside.any()):
        raise InputError(
            "cameras",
            "no point of the cloud falls into the guide's view",
            "check 'depth_to_guide' "
            "(X_guide = R X_cloud + t; z forward, x right, y down) and the unit of the cloud",
        )
    index = y[inside].long() * size[1] + x[inside].long()
    nearest = points.new_full((size[0] * size[1],), torch.inf)
    nearest = nearest.scatter_reduce(0, index, moved[2][inside], "amin").view(1, 1, *size)
    valid = torch.isfinite(nearest)
    hidden = hidden_points(nearest, valid)
    kept = valid & ~hidden
    return Scattered(torch.where(kept, nearest, 0.0).float(), kept, int(hidden.sum()))


def hidden_points(depth: Tensor, valid: Tensor) -> Tensor:
    """Return True for points of a sparse map (1, 1, H, W) that lie among nearer ones.

    Nearer points within REACH times the distance of the points leave no gap of 225 degrees around a hidden
    point. A point that the camera sees in a corner of nearer surfaces is taken for hidden too.
    """
    down, right, sector = _disc(max(1, round(REACH * _spacing(valid))), depth.device)
    (height, width), y, x = depth.shape[2:], *valid[0, 0].nonzero(as_tuple=True)
    z, map_ = depth[valid], torch.where(valid, depth, torch.inf)[0, 0]
    found = []
    count = max(1, AT_ONCE // len(down))
    for first in range(0, len(z), count):
        part = slice(first, first + count)
        row, column = y[part, None] + down, x[part, None] + right
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        there = map_[row.clamp(0, height - 1), column.clamp(0, width - 1)]
        nearer = inside & (there * (1.0 + NEARER) < z[part, None])
        covered = (nearer.float() @ sector).clamp_max(1.0)
        turn = torch.cat([covered, covered[:, : OPEN - 1]], dim=1)
        found.append(max_pool1d(turn, OPEN, stride=1).amin(dim=1) > 0)
    hidden = torch.zeros_like(valid)
    hidden[valid] = torch.cat(found)
    return hidden


def _disc(radius: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows and columns (N,) of the pixels around one, and the sector of each, (N, SECTORS) one-hot."""
    side = torch.arange(-radius, radius + 1, device=device)
    down, right = (each.flatten() for each in torch.meshgrid(side, side, indexing="ij"))
    square = down.square() + right.square()
    use = (square > 0) & (square <= radius * radius)
    down, right = down[use], right[use]
    turn = torch.atan2(down.float(), right.float()) / (2.0 * math.pi) % 1.0
    return down, right, one_hot((turn * SECTORS).long().clamp_max(SECTORS - 1), SECTORS).float()


def _spacing(valid: Tensor) -> float:
    """Return the mean distance of points in pixels: the square root of the covered area over their number."""
    cell = 16
    weight = valid.float()
    covered = max_pool2d(weight, cell, stride=cell, ceil_mode=True)
    return float((covered.sum() * cell * cell / weight.sum()).sqrt())


def view_note(found: Scattered, camera: Intrinsics, points: int) -> str:
    """Return a sentence that says how many points the guide's camera sees, and what was assumed."""
    return (
        f"{points} points seen from the guide ({camera.width}x{camera.height}): {int(found.valid.sum())} "
        f"pixels have one, {found.hidden} were left out as hidden by a nearer surface; assumed: metres"
    )
