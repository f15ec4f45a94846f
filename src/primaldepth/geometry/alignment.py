"""Whether a depth map and an image show the same view.

The edges of the depth are enlarged about the middle of the image, moved, and laid over those of the image.
Such a view is scored by

    z = sum_x Re(conj(D(x)) I(x)) / sqrt(1/2 sum_x |D(x)|^2 <|I|^2>(x))

with the edge fields D of the depth and I of the image (`edge_fields`); <> is the mean around a place. For
edges that meet by chance z would be normal with a standard deviation of 1 if they were independent. Along
lines they are not, so that z is compared with what other views reach, and with what the frame as it is
reaches.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.edge_fields import depth_edges, detail, image_edges, local_mean, sampled

GRID = 192  # pixels of the longer side, about, on which edges are compared
FINE, COARSE = 0.7, 25  # pixels of it: edges are blurred by the first and freed of their mean over the second
REACH = 0.08  # of the longer side: how far views are moved, half of it where they are zoomed
RATIO, STEPS = 1.03, 18  # zooms are powers of the first, up to the second
FINE_GRID, FINE_REACH, FINE_RATIO, FINE_STEPS = 384, 0.02, 1.01, 5  # the same where a view is measured
APART = 0.03, 4  # of the longer side, and steps of zoom: views as near as this are one peak
SMALLEST = 24  # samples or pixels a side: smaller frames are not searched
FEWEST = 60.0  # pixels of the grid with a clear depth edge: fewer prove nothing
MOVED = 0.016  # of the longer side: registered cameras are up to 1 % off
ZOOMED = 0.08  # of the size, as a logarithm: 3 to 5 degrees of a usual lens
LEAST = 35.0  # z that counts; patterns of aligned rooms reach 32
CLEARLY = 1.3  # times the z of any other view
BETTER_MOVED, BETTER_ZOOMED = 1.3, 1.5  # times that of the frame as it is; a small offset leaves much of it
ABOVE = 6.0  # more than the z of the frame as it is
SAMPLES = 2.0  # an offset is seen if it is larger than so many samples
STEADY = 0.05  # of the mean overlap, added to that of each view: where hardly anything overlaps, z is noise


@dataclass(frozen=True, slots=True)
class View:
    """How the depth has to be laid over the image.

    Args:
        zoom: what the depth has to be enlarged by about the middle of the image: how much wider its view is.
        offset: (right, down): what it has to be moved by then, in pixels of the image.
        turn: radians clockwise by which it has to be turned about the middle.
    """

    zoom: float = 1.0
    offset: tuple[float, float] = (0.0, 0.0)
    turn: float = 0.0


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which view fits best, and how much better than others.

    Args:
        view: the one that fits best.
        score: its z.
        as_given: z of the frame as it is.
        rival: the largest z of any other view.
        limit: pixels of the image that an offset has to exceed to count.
        inside: whether the view lies within what was searched, and not at its border.
        degrees: horizontal field of view of the image, where its camera is known.
    """

    view: View
    score: float
    as_given: float
    rival: float
    limit: float
    inside: bool = True
    degrees: float | None = None

    @property
    def certain(self) -> bool:
        """Whether no other view fits nearly as well."""
        return self.inside and self.score >= max(LEAST, CLEARLY * self.rival)

    @property
    def differs(self) -> bool:
        """Whether the frame certainly shows two views, of another size or place."""
        moved = math.hypot(*self.view.offset) > self.limit
        better = self.score >= (BETTER_ZOOMED if self.zoomed else BETTER_MOVED) * self.as_given
        better = better and self.score >= self.as_given + ABOVE
        return self.certain and better and (self.zoomed or moved)

    @property
    def zoomed(self) -> bool:
        """Whether the depth sees more or less than the image, and not just another part."""
        return abs(math.log(self.view.zoom)) > ZOOMED

    @property
    def depth_degrees(self) -> float | None:
        """Horizontal field of view of the depth, where that of the image is known."""
        if self.degrees is None:
            return None
        return math.degrees(2.0 * math.atan(self.view.zoom * math.tan(math.radians(self.degrees) / 2.0)))

    def json(self) -> dict[str, object]:
        """Return the view as plain values."""
        return {
            "zoom": round(self.view.zoom, 4),
            "offset": [round(each, 2) for each in self.view.offset],
            "depth_degrees": self.depth_degrees,
            "certain": self.certain,
            "differs": self.differs,
        }


def alignment(
    depth: Tensor, valid: Tensor, image: Tensor, kind: str, camera: Intrinsics | None = None
) -> Alignment | None:
    """Find the view of a frame in which depth edges lie on image edges.

    Of a frame that fits as it is, and clearly better than moved, zooms are not tried.

    Args:
        depth: (B, 1, h, w); the first of a batch is used.
        valid: (B, 1, h, w) where it is measured.
        image: (B, C, H, W) in [0, 1].
        kind: of the depth; "disparity" or another.
        camera: of the image, to give fields of view in degrees.

    Returns:
        None where the depth has hardly any edges, or the image is too small.
    """
    if min(depth.shape[2:]) < SMALLEST or min(image.shape[2:]) < SMALLEST:
        return None
    edges = Edges.of(depth, valid, image, kind)
    if float(edges.depth.abs().sum()) < FEWEST or not bool(edges.image.abs().any()):
        return None
    search = Search.of(edges, REACH)
    limit = max(MOVED * max(image.shape[2:]), SAMPLES * image.shape[3] / depth.shape[3])
    moved = _judged(search, 0, limit)
    if moved.certain and math.hypot(*moved.view.offset) <= limit:
        return moved
    zoomed = _judged(replace(search, reach=max(2, search.reach // 2)), STEPS, limit)
    found = _likelier(moved, zoomed)
    if not found.differs:
        return found
    degrees = None if camera is None else 2.0 * math.degrees(math.atan(0.5 * camera.width / camera.fx))
    fine = Search.of(Edges.of(depth, valid, image, kind, FINE_GRID), FINE_REACH)
    view, inside = _refined(fine, found.view)
    return replace(found, view=view, inside=inside, degrees=degrees)


def _judged(search: "Search", steps: int, limit: float) -> Alignment:
    """Return the best of the views with zooms up to RATIO^steps, with its rivals' scores."""
    z = search.scores(View(), RATIO, steps)
    place, view = search.summit(z, View(), RATIO)
    same = z[around((steps, search.reach, search.reach), (1, 1, 1))]
    apart = round(APART[0] * max(search.edges.image.shape))
    others = z.clone()
    others[around(place, (APART[1], apart, apart))] = -torch.inf
    inside = all(0 < at < size - 1 for at, size in zip(place, z.shape, strict=True) if size > 1)
    return Alignment(view, float(z.max()), float(same.max()), float(others.max()), limit, inside)


def _likelier(moved: Alignment, zoomed: Alignment) -> Alignment:
    """Return the better of two, for which the other is a rival unless it is hardly zoomed."""
    if abs(math.log(zoomed.view.zoom)) <= ZOOMED:
        return replace(moved, rival=max(moved.rival, zoomed.rival))
    better, other = (zoomed, moved) if zoomed.score >= moved.score else (moved, zoomed)
    return replace(better, rival=max(better.rival, other.score))


def _refined(search: "Search", view: View) -> tuple[View, bool]:
    """Return the best view near another, and whether it lies inside of what was searched.

    A view that is hardly zoomed is not zoomed, and its offset, which is what is reported of it, may change by
    half of the reach only.
    """
    zoomed = abs(math.log(view.zoom)) > ZOOMED
    near = view if zoomed else View(offset=view.offset)
    search = search if zoomed else replace(search, reach=max(1, search.reach // 2))
    place, best = search.summit(
        search.scores(near, FINE_RATIO, FINE_STEPS if zoomed else 0), near, FINE_RATIO
    )
    return best, all(0 < at < 2 * search.reach for at in place[1:])


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edge fields of depth and image on one grid.

    Args:
        depth: (h, w), complex.
        image: (h, w), complex.
        pixels: of the image a side of a pixel of the grid.
    """

    depth: Tensor
    image: Tensor
    pixels: int

    @classmethod
    def of(cls, depth: Tensor, valid: Tensor, image: Tensor, kind: str, grid: int = GRID) -> "Edges":
        """Find the edges of the first map of a batch, and of its image, on about `grid` pixels a side."""
        high, wide = (int(side) for side in image.shape[2:])
        pixels = max(1, round(max(high, wide) / grid))
        small = avg_pool2d(image[:1], pixels).cpu()
        height, width = int(small.shape[2]), int(small.shape[3])
        every = max(1, depth.shape[3] // width)
        picked = (slice(0, 1), slice(None), *2 * (slice(every // 2, None, every),))
        found = depth_edges(depth[picked].cpu(), valid[picked].cpu(), kind)
        before = every // 2 + 0.5 - 0.5 * every  # samples that lie before the first one that was picked
        x = ((torch.arange(width) + 0.5) * pixels * depth.shape[3] / wide - before) / every
        y = ((torch.arange(height) + 0.5) * pixels * depth.shape[2] / high - before) / every
        on_grid = sampled(found, *torch.meshgrid(x, y, indexing="xy"))
        return cls(detail(on_grid, FINE, COARSE), detail(image_edges(small), FINE, COARSE), pixels)

    def seen(self, zooms: Tensor, view: View) -> Tensor:
        """Return (n, h, w): the depth's edges, enlarged by n zooms, and turned and moved as the view says."""
        height, width = self.depth.shape
        right, down = (each / self.pixels for each in view.offset)
        x = torch.arange(width) + 0.5 - width / 2 - right
        y = (torch.arange(height) + 0.5 - height / 2 - down)[:, None]
        cosine, sine = math.cos(view.turn), math.sin(view.turn)
        shape = len(zooms), height, width
        back_x, back_y = (
            (each / zooms[:, None, None]).expand(shape)
            for each in (cosine * x + sine * y, cosine * y - sine * x)
        )
        found = sampled(self.depth, back_x + width / 2, back_y + height / 2)
        return found * complex(math.cos(2.0 * view.turn), math.sin(2.0 * view.turn)) if view.turn else found


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Scores of all views within reach, by Fourier transforms.

    Args:
        edges: that are laid over each other.
        reach: pixels of the grid that the depth is moved each way.
        size: (rows, columns) of the transforms, with room for the reach.
        spectrum: of the image's edges.
        power: of their mean square around each place, which is what edges meet by chance.
    """

    edges: Edges
    reach: int
    size: tuple[int, int]
    spectrum: Tensor
    power: Tensor

    @classmethod
    def of(cls, edges: Edges, reach: float) -> "Search":
        """Prepare the search for these edges, moved by parts of the longer side."""
        height, width = edges.image.shape
        far = max(2, int(reach * max(height, width)))
        size = _smooth_number(height + far), _smooth_number(width + far)
        mean = local_mean(edges.image.abs().square()[None], COARSE)[0]
        return cls(edges, far, size, torch.fft.fft2(edges.image, size), torch.fft.rfft2(mean, size))

    def scores(self, view: View, ratio: float, steps: int) -> Tensor:
        """Score the views around one, which is in the middle: (zooms, 2 reach + 1, 2 reach + 1)."""
        zooms = view.zoom * ratio ** torch.arange(-steps, steps + 1.0)
        depth = self.edges.seen(zooms, view)
        met = torch.fft.ifft2(self.spectrum * torch.fft.fft2(depth, self.size).conj()).real
        chance = torch.fft.rfft2(depth.abs().square(), self.size).conj()
        chance = torch.fft.irfft2(self.power * chance, self.size).clamp_min(0.0)
        side = 2 * self.reach + 1
        met, chance = (
            torch.roll(each, (self.reach, self.reach), (-2, -1))[..., :side, :side] for each in (met, chance)
        )
        typical = chance.mean(dim=(-2, -1), keepdim=True)
        return met / (0.5 * chance + STEADY * typical + 1e-9).sqrt()

    def summit(self, z: Tensor, about: View, ratio: float) -> tuple[tuple[int, int, int], View]:
        """Return where the scores of the views around one are largest, and that view to parts of a pixel."""
        side = 2 * self.reach + 1
        top = int(z.argmax())
        place = top // side**2, top // side % side, top % side
        power, row, column = (_parabola(z, place, dim) for dim in range(3))
        zoom = about.zoom * ratio ** (power - len(z) // 2)
        moved = (column - self.reach) * self.edges.pixels, (row - self.reach) * self.edges.pixels
        return place, View(zoom, (about.offset[0] + moved[0], about.offset[1] + moved[1]), about.turn)


def around(place: tuple[int, ...], reach: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the part of an array that is no further from a place than the reach of each axis."""
    return tuple(slice(max(0, at - far), at + far + 1) for at, far in zip(place, reach, strict=True))


def _parabola(z: Tensor, place: tuple[int, ...], dim: int) -> float:
    """Return where the parabola through the largest value and its two neighbours along `dim` is highest."""
    at = place[dim]
    if not 0 < at < z.shape[dim] - 1:
        return float(at)
    line = z[tuple(slice(None) if each == dim else place[each] for each in range(z.ndim))]
    before, top, after = (float(each) for each in line[at - 1 : at + 2])
    return at + 0.5 * (before - after) / min(before - 2.0 * top + after, -1e-9)


def _smooth_number(least: int) -> int:
    """Return the next number without prime factors above 5, of which transforms are fast."""
    rest = least
    for factor in (2, 3, 5):
        while rest % factor == 0:
            rest //= factor
    return least if rest == 1 else _smooth_number(least + 1)
