"""What a scanner has seen of the rays of a camera: free space, surfaces, and what lies behind them.

The points of a scanner are also the ends of its beams: nothing stands between it and a point. So a map of
ranges over the directions around the scanner says of every place whether it is before or behind what was
seen. A ray of the camera is followed through that map, from near to far. Where it comes to lie behind what
was seen, it has either gone through a surface, on which neighbouring beams end at nearly one range, and the
camera sees no farther; or it has passed beside one, where ranges jump. Then it is in a shadow: the camera
may see what lies there and the scanner does not.
"""

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from primaldepth.geometry.motion import Vector
from primaldepth.geometry.rig import Tensors

COARSE = 0.035  # radians: cells of this size count as covered by the beams that hit them
PER_BEAM = 2.5  # cells of the map along the distance of two beams
REACH = 2.0  # times that distance: how far from a beam a direction counts as seen
BEHIND = 0.02  # of the range: how much farther than the beams around it a place behind them is
ONE_SURFACE = 0.15  # of the range: neighbouring directions that differ by less see one surface
NEAREST = 0.2  # of the distance between camera and scanner: rays begin no nearer to the camera than this,
BEFORE = 0.9  # nor nearer than this part of the distance of the nearest point
AT_ONCE = 2**21  # places on rays


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What rays have met on their way, (N,) each.

    Args:
        crossed: whether the ray went through a surface.
        behind: whether any place on the ray lies behind what the scanner saw.
        entry: z of the first such place; infinite where there is none.
        background: z at which the last beam before that ended, if the ray entered a shadow; infinite where
            it did not.
    """

    crossed: Tensor
    behind: Tensor
    entry: Tensor
    background: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class ScannerView:
    """Ranges over directions around a scanner, in the axes of the camera.

    Args:
        place: of the scanner, seen from the camera.
        ranges: (h, w) of the nearest beam over elevation and azimuth; infinite far from all beams.
        first: elevation and azimuth of the first cell.
        step: size of a cell in radians.
        start: distance from the camera from which on rays are followed.
    """

    place: Vector
    ranges: Tensor
    first: tuple[float, float]
    step: float
    start: float

    @classmethod
    def of(cls, points: Tensors, place: Vector, finest: float) -> "ScannerView":
        """Map the points of a scanner.

        Args:
            points: x, y, z (N,) in the axes of the camera.
            place: of the scanner.
            finest: radians; cells are not made smaller, however many points there are.
        """
        elevation, azimuth, distance = _polar(points, place)
        step = max(_beam_distance(elevation, azimuth) / PER_BEAM, finest)
        first = float(elevation.min()), float(azimuth.min())
        row, column = (
            ((a - b) / step).round().long() for a, b in zip((elevation, azimuth), first, strict=True)
        )
        size = int(row.max()) + 1, int(column.max()) + 1
        ranges = distance.new_full((size[0] * size[1],), torch.inf)
        ranges = ranges.scatter_reduce(0, row * size[1] + column, distance, "amin").view(size)
        nearest = float(torch.stack(points).norm(dim=0).min())
        start = max(NEAREST * math.hypot(*place), BEFORE * nearest)
        return cls(place, _nearest_filled(ranges, round(REACH * PER_BEAM)), first, step, start)

    def range_along(self, elevation: Tensor, azimuth: Tensor) -> Tensor:
        """Return the range of the beam next to each direction; infinite where none is.

        Args:
            elevation: radians.
            azimuth: radians.
        """
        row = ((elevation - self.first[0]) / self.step).round().long()
        column = ((azimuth - self.first[1]) / self.step).round().long()
        height, width = self.ranges.shape
        known = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        found = self.ranges[row.clamp(0, height - 1), column.clamp(0, width - 1)]
        return torch.where(known, found, torch.inf)

    def follow(self, rays: tuple[Tensor, Tensor], far: Tensor) -> Followed:
        """Follow rays of the camera from near to far.

        Args:
            rays: x / z and y / z of each, (N,).
            far: z at which each ends, (N,).
        """
        count = max(1, AT_ONCE // self._steps)
        parts = zip(*(torch.split(each, count) for each in (*rays, far)), strict=True)
        found = [self._followed(*part) for part in parts]
        names = ("crossed", "behind", "entry", "background")
        return Followed(*(torch.cat([getattr(part, name) for part in found]) for name in names))

    @property
    def _most(self) -> float:
        """Angle between the directions to the camera's place and to where rays begin, for rays across."""
        return math.atan(math.hypot(*self.place) / self.start)

    @property
    def _steps(self) -> int:
        return math.ceil(self._most / self.step) + 1

    def _followed(self, x: Tensor, y: Tensor, far: Tensor) -> Followed:
        z = self._places(x, y, far)
        elevation, azimuth, distance = _polar((x[:, None] * z, y[:, None] * z, z), self.place)
        seen = self.range_along(elevation, azimuth)
        behind = distance > seen * (1.0 + BEHIND)
        before, after = seen[:, :-1], seen[:, 1:]
        apart = ~((after - before).abs() < ONE_SURFACE * torch.minimum(before, after))
        enters = behind[:, 1:] & ~behind[:, :-1]
        first = enters.float().argmax(dim=1, keepdim=True)
        shadow = (enters & apart).gather(1, first) & ~behind[:, :1]
        depth = self._depth(elevation, azimuth, seen).gather(1, first)
        entry = z.gather(1, behind.float().argmax(dim=1, keepdim=True))
        some = behind.any(dim=1)
        return Followed(
            (enters & ~apart).any(dim=1),
            some,
            torch.where(some, entry[:, 0], torch.inf),
            torch.where(shadow, depth, torch.inf)[:, 0],
        )

    def _places(self, x: Tensor, y: Tensor, far: Tensor) -> Tensor:
        """Return z of places on each ray, (N, K) from near to far, which the scanner sees about a cell apart.

        On a ray across the line to the scanner at distance b the angle at which the scanner sees it grows
        with atan(b / distance).
        """
        length = (x * x + y * y + 1.0).sqrt()
        base = math.hypot(*self.place)
        least = torch.atan(base / (far * length))
        share = torch.linspace(1.0, 0.0, self._steps, dtype=x.dtype, device=x.device)
        most = least.clamp_min(self._most)
        angle = least[:, None] + (most - least)[:, None] * share
        return base / (angle.tan() * length[:, None])

    def _depth(self, elevation: Tensor, azimuth: Tensor, distance: Tensor) -> Tensor:
        """Return z, seen from the camera, of what lies in a direction from the scanner."""
        return distance * elevation.cos() * azimuth.cos() + self.place[2]


def _polar(points: Tensors, place: Vector) -> Tensors:
    """Return elevation, azimuth and distance from a place; the camera looks along azimuth and elevation 0."""
    x, y, z = (each - start for each, start in zip(points, place, strict=True))
    level = torch.hypot(x, z)
    return torch.atan2(y, level), torch.atan2(x, z), torch.hypot(level, y)


def _beam_distance(elevation: Tensor, azimuth: Tensor) -> float:
    """Return the mean angle between beams: the square root of the area they cover over their number."""
    cells = torch.stack([(elevation / COARSE).floor(), (azimuth / COARSE).floor()], dim=1)
    return COARSE * math.sqrt(len(torch.unique(cells, dim=0)) / len(elevation))


def _nearest_filled(values: Tensor, reach: int) -> Tensor:
    """Return a map (h, w) where each cell has the value of the nearest finite one, if one is within reach.

    By jumps: the nearest seed of a cell is that of a cell some steps away, for steps of 8, 4, 2 and 1.
    """
    height, width = values.shape
    row, column = torch.meshgrid(
        *(torch.arange(n, device=values.device) for n in values.shape), indexing="ij"
    )
    far = 4 * (height + width)
    none = ~torch.isfinite(values)
    seed = torch.where(none, -far, row), torch.where(none, -far, column)
    for jump, down, right in ((j, d, r) for j in (8, 4, 2, 1) for d, r in product((-1, 0, 1), repeat=2)):
        shift = jump * down, jump * right
        other = seed[0].roll(shift, (0, 1)), seed[1].roll(shift, (0, 1))
        nearer = _square(row, column, other) < _square(row, column, seed)
        seed = torch.where(nearer, other[0], seed[0]), torch.where(nearer, other[1], seed[1])
    found = values[seed[0].clamp(0, height - 1), seed[1].clamp(0, width - 1)]
    return torch.where(_square(row, column, seed) <= reach * reach, found, torch.inf)


def _square(row: Tensor, column: Tensor, seed: tuple[Tensor, Tensor]) -> Tensor:
    return (row - seed[0]).square() + (column - seed[1]).square()
