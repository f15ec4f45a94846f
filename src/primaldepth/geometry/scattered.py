"""Points of a scanner in the view of a camera: where each falls, without those that a surface hides."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.rig import Rig, to_pixels

NEARER = 0.05  # of the depth: what is nearer by more hides what lies behind
REACH = 2.5  # times the distance of the points: how far around a hidden point those before it are
SIDES = 3  # of the four quarters around a point that have a nearer one before it counts as hidden


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
    points of a nearer surface. A point is hidden if nearer ones lie in three of the four quarters around it,
    within a few times the distance of the points. Beside the edge of a surface they lie in two.

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
    """Return True for points of a sparse map (1, 1, H, W) with nearer ones in three quarters around them."""
    reach = max(1, round(REACH * _spacing(valid)))
    inverse = torch.where(valid, 1.0 / depth.clamp_min(1e-6), 0.0)
    limit = inverse * (1.0 + NEARER)
    quarters = sum((_quarter(inverse, reach, *side) > limit).int() for side in _QUARTERS)
    return valid & (torch.as_tensor(quarters) >= SIDES)


_QUARTERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def _quarter(inverse: Tensor, reach: int, down: int, right: int) -> Tensor:
    """Return the largest inverse depth in one quarter of each pixel's window, such as up and left of it."""
    rows = (reach, 0) if down < 0 else (0, reach)
    columns = (reach, 0) if right < 0 else (0, reach)
    return max_pool2d(pad(inverse, (*columns, *rows)), reach + 1, stride=1)


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
