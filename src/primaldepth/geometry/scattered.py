"""Points of a scanner in the view of a camera: where each falls, without those that a surface hides."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, max_pool2d, one_hot

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.rig import Rig, Tensors, axes, to_pixels
from primaldepth.geometry.scanner_view import ScannerView

NEARER = 0.05  # of the depth: what is nearer by more hides what lies behind
REACH = 1.8  # times the distance of the points: how far around a hidden point those before it are
SECTORS, OPEN = 24, 15  # of a turn; so many in a row without a nearer point, 225 degrees, and a point is seen
AT_ONCE = 2**20  # pairs of a point and a pixel
FINEST = 2.0  # pixels: places on a ray are no closer, as the scanner sees them
GAP = 0.8  # times the distance of the points: how far from all of them a background is assumed
LONGEST = 3.0  # a background this many times farther than where the ray enters the shadow is not assumed


@dataclass(frozen=True, slots=True, eq=False)
class Scattered:
    """z of the points that the camera sees, (1, 1, H, W), 0 on pixels without one.

    Args:
        hidden: how many pixels had only points that a nearer surface hides.
        uncertain: (1, 1, H, W) points before which the ray runs through a shadow of the scanner: what stands
            there may hide them from the camera.
        background: (1, 1, H, W) z of what the scanner saw beside a shadow, on some pixels of the shadow; 0
            elsewhere.
    """

    depth: Tensor
    valid: Tensor
    hidden: int
    uncertain: Tensor
    background: Tensor

    def without(self, hidden: Tensor) -> "Scattered":
        """Leave out more points.

        Args:
            hidden: (1, 1, H, W) True where a point is hidden.
        """
        kept = self.valid & ~hidden
        count = self.hidden + int((self.valid & hidden).sum())
        depth = torch.where(kept, self.depth, 0.0)
        return replace(self, depth=depth, valid=kept, hidden=count, uncertain=self.uncertain & kept)

    def gaps(self) -> Tensor:
        """Return the background on pixels that no point is near, (1, 1, H, W); 0 elsewhere."""
        radius = max(1, round(GAP * _spacing(self.valid)))
        near = max_pool2d(self.valid.float(), 2 * radius + 1, stride=1, padding=radius) > 0
        return torch.where(near, 0.0, self.background)


def scattered(points: Tensor, cameras: Cameras, size: tuple[int, int]) -> Scattered:
    """Project points into the guide's view; on a pixel the nearest counts.

    A scanner that stands beside the camera sees what the camera does not. A point is left out if the ray to
    it goes through a surface between the beams. It is uncertain if the ray runs through a shadow of the
    scanner, or if there are points of a nearer surface all around it. The scanner stands where the points'
    axes begin. If that is where the camera is, the points were moved there before, from a place that is not
    known, and those among nearer ones are left out.

    Args:
        points: (N, 3) in metres, in axes of their own: X_guide = R X + t.
        cameras: with the guide's camera, R and t.
        size: (H, W) of the guide.

    Raises:
        InputError: if no point falls into the view.
    """
    camera = cameras.guide.scaled_to(size[1], size[0])
    rig = Rig(camera, camera, cameras.rotation, cameras.translation)
    moved = rig.forward((points[:, 0], points[:, 1], points[:, 2]))
    z = _nearest(moved, camera)
    valid = torch.isfinite(z)
    among = hidden_points(z, valid)
    if not any(cameras.translation):
        none = torch.zeros_like(z)
        return _kept(z, valid, among, none > 0, none)
    view = ScannerView.of(moved, cameras.translation, FINEST / max(camera.fx, camera.fy))
    crossed, behind = _on_the_way(view, camera, z, valid)
    return _kept(z, valid, crossed, among | behind, _beside_shadows(view, camera, z, valid))


def _nearest(points: Tensors, camera: Intrinsics) -> Tensor:
    """Return z of the nearest point on each pixel, (1, 1, H, W), infinite where there is none."""
    x, y, seen = to_pixels(points, camera)
    inside = seen & (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)
    if not bool(inside.any()):
        raise InputError(
            "cameras",
            "no point of the cloud falls into the guide's view",
            "check 'depth_to_guide' "
            "(X_guide = R X_cloud + t; z forward, x right, y down) and the unit of the cloud",
        )
    index = y[inside].long() * camera.width + x[inside].long()
    nearest = points[2].new_full((camera.height * camera.width,), torch.inf)
    nearest = nearest.scatter_reduce(0, index, points[2][inside], "amin")
    return nearest.view(1, 1, camera.height, camera.width)


def _kept(z: Tensor, valid: Tensor, hidden: Tensor, uncertain: Tensor, background: Tensor) -> Scattered:
    kept = valid & ~hidden
    depth = torch.where(kept, z, 0.0).float()
    return Scattered(depth, kept, int((valid & hidden).sum()), kept & uncertain, background.float())


def _on_the_way(view: ScannerView, camera: Intrinsics, z: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether the rays to points go through a surface, and behind one: (1, 1, H, W) each."""
    found = view.follow(_rays(camera, z, valid), z[valid] / (1.0 + NEARER))
    none = torch.zeros_like(valid)
    return none.masked_scatter(valid, found.crossed), none.masked_scatter(valid, found.behind)


def _beside_shadows(view: ScannerView, camera: Intrinsics, z: Tensor, valid: Tensor) -> Tensor:
    """Return z of the background on a lattice of pixels as far apart as points, 0 outside of shadows."""
    lattice, side = torch.zeros_like(valid), max(1, round(_spacing(valid)))
    lattice[..., side // 2 :: side, side // 2 :: side] = True
    rays = _rays(camera, z, lattice)
    found = view.follow(rays, z[valid].amax().expand(len(rays[0])))
    short = found.background < LONGEST * found.entry
    depth = torch.where(short, torch.maximum(found.background, found.entry), 0.0)
    return torch.zeros_like(z).masked_scatter(lattice, depth)


def _rays(camera: Intrinsics, like: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """Return x / z and y / z of the rays of some pixels, (N,) each."""
    x, y = (each.expand(like.shape)[where] for each in axes(camera, like))
    return x, y


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


def view_note(found: Scattered, cameras: Cameras, points: int, unit: str | None = None) -> str:
    """Return a sentence that says how many points the guide's camera sees, and what was assumed.

    Args:
        found: what the camera sees.
        cameras: the guide's, and where the scanner stood.
        points: how many the file has.
        unit: of the points as the user gave it; None if metres were assumed.
    """
    _, _, height, width = found.valid.shape
    assumed = ["metres"] if unit is None else []
    assumed += ["the scanner where their axes begin"] if any(cameras.translation) else []
    end = f"; assumed: {', '.join(assumed)}" if assumed else ""
    return (
        f"{points} points seen from the guide ({width}x{height}): {int(found.valid.sum())} "
        f"pixels have one, {found.hidden} were left out as hidden by a nearer surface{end}"
    )
