"""Triangles between the samples of one camera, drawn into the view of another with a z-buffer.

1 / z is affine on a plane, in either view, so a triangle carries a plane over without error: with
n . X = 1 in the source's frame, 1 / z = R n . ray / (1 + R n . t) in the target's. Rays are those of the
pinhole, with the distortion of both lenses undone, so this holds behind any lens.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.rig import MetricKind, Rig, Tensors, axes, magnification, to_pixels, z_of

_OVERLAP = 1e-3  # of a triangle's legs, so that no pixel falls between two neighbours
_FRONT_OVERLAP = 0.1  # wider, for a front lies at another depth than the surface it continues


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Depth of surfaces and of fronts of gaps in the target's view: (B, 1, H, W), infinite where none is.

    Args:
        surface: z of the nearest surface between samples.
        front: z of the nearer side wherever two surfaces part: it may reach anywhere between the samples,
            so what lies behind it may be hidden.
    """

    surface: Tensor
    front: Tensor


def draw_layers(
    depth: Tensor, valid: Tensor, rig: Rig, kind: MetricKind, *, max_slope: float, stretch: float
) -> Layers:
    """Draw every triangle of neighbouring samples, as part of a surface or as the front of a gap."""
    z = z_of(torch.where(valid, depth, 1.0), rig.source, kind)
    grid = _vertices(1.0 / z[:, 0], valid[:, 0], rig)
    shape = z.shape[0], 1, rig.target.height, rig.target.width
    layers = Layers(z.new_full(shape, torch.inf), z.new_full(shape, torch.inf))
    for corners in _triples(grid):
        known = corners[0].known & corners[1].known & corners[2].known
        joined = _flat_leg(*corners[:2], max_slope) & _flat_leg(*corners[::2], max_slope)
        _draw(_triangles(*corners, known & joined, rig), layers.surface, rig, stretch, _OVERLAP)
        front = torch.stack([each.near for each in corners]).amax(0)
        a, b, c = (replace(each, q=front) for each in corners)
        _draw(_triangles(a, b, c, known & ~joined, rig), layers.front, rig, stretch, _FRONT_OVERLAP)
    return layers


@dataclass(frozen=True, slots=True, eq=False)
class _Vertices:
    """Samples of the source, each (B, h, w).

    Args:
        x: ray coordinate.
        y: ray coordinate.
        q: inverse depth.
        near: largest q of the sample and its neighbours: a sample that mixes two surfaces lies between
            them, and only its neighbour has the depth of the front.
        known: valid, and in front of the camera.
    """

    x: Tensor
    y: Tensor
    q: Tensor
    near: Tensor
    known: Tensor

    def part(self, rows: slice, columns: slice) -> "_Vertices":
        at = (slice(None), rows, columns)
        return _Vertices(self.x[at], self.y[at], self.q[at], self.near[at], self.known[at])


def _vertices(q: Tensor, valid: Tensor, rig: Rig) -> _Vertices:
    """Return the samples, with one more row and column at each end of the image, where 1 / z is continued."""
    q, valid = _continued(*_continued(q, valid, 2), 1)
    x, y = axes(rig.source, q, ends=True)
    valid = valid & (q > 0) & torch.isfinite(x + y)
    x, y = x.nan_to_num(0.0), y.nan_to_num(0.0)
    near = max_pool2d(torch.where(valid, q, 0.0), 3, 1, 1)
    return _Vertices(x.expand_as(q), y.expand_as(q), torch.where(valid, q, 1.0), near, valid)


def _continued(q: Tensor, valid: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return an axis with one value more at each end, half a step out: 1.5 q_0 - 0.5 q_1."""
    n = q.shape[dim]
    values, masks = [q], [valid]
    for at, inner, place in ((0, min(1, n - 1), 0), (n - 1, max(n - 2, 0), 2)):
        values.insert(place, 1.5 * q.narrow(dim, at, 1) - 0.5 * q.narrow(dim, inner, 1))
        masks.insert(place, valid.narrow(dim, at, 1) & valid.narrow(dim, inner, 1))
    return torch.cat(values, dim), torch.cat(masks, dim)


def _triples(grid: _Vertices) -> list[tuple[_Vertices, _Vertices, _Vertices]]:
    """Return corner, horizontal and vertical neighbour of the two triangles in each cell of four samples."""
    before, after = slice(None, -1), slice(1, None)
    upper_right, lower_left = grid.part(before, after), grid.part(after, before)
    return [
        (grid.part(before, before), upper_right, lower_left),
        (grid.part(after, after), lower_left, upper_right),
    ]


def _flat_leg(a: _Vertices, b: _Vertices, max_slope: float) -> Tensor:
    """Return True where |z_a - z_b| <= max_slope min(z_a, z_b) |ray_a - ray_b|."""
    return (b.q - a.q).abs() <= max_slope * torch.minimum(a.q, b.q) * torch.hypot(b.x - a.x, b.y - a.y)


@dataclass(frozen=True, slots=True, eq=False)
class _Triangles:
    """Triangles, each (B, N, 1).

    Args:
        corner: ray coordinates of the corner between the legs.
        inverse: rows of the matrix that takes a ray coordinate, seen from the corner, to parts of the legs.
        plane: m with 1 / z = m . ray in the target's view.
        start: column and row of the target's first pixel centre in the bounding box.
        drawn: the others are left out.
    """

    corner: tuple[Tensor, Tensor]
    inverse: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]
    plane: Tensors
    start: tuple[Tensor, Tensor]
    drawn: Tensor


def _triangles(a: _Vertices, b: _Vertices, c: _Vertices, drawn: Tensor, rig: Rig) -> _Triangles:
    """Return planes and bounding boxes in the target's view, without triangles that face away from it."""
    (ux, uy), (vx, vy) = _inverse((b.x - a.x, b.y - a.y), (c.x - a.x, c.y - a.y))
    slope_x = (b.q - a.q) * ux + (c.q - a.q) * vx
    slope_y = (b.q - a.q) * uy + (c.q - a.q) * vy
    turned = rig.turn((slope_x, slope_y, a.q - slope_x * a.x - slope_y * a.y))
    facing = 1.0 + sum(n * t for n, t in zip(turned, rig.translation, strict=True))
    drawn = drawn & (facing > 0)
    columns, rows = [], []
    for v in (a, b, c):
        column, row, front = to_pixels(rig.forward((v.x / v.q, v.y / v.q, 1.0 / v.q)), rig.target)
        drawn = drawn & front
        columns.append((column - 0.5).ceil())
        rows.append((row - 0.5).ceil())
    return _Triangles(
        (_flat(a.x), _flat(a.y)),
        ((_flat(ux), _flat(uy)), (_flat(vx), _flat(vy))),
        (_flat(turned[0] / facing), _flat(turned[1] / facing), _flat(turned[2] / facing)),
        (_flat(torch.stack(columns).amin(0)), _flat(torch.stack(rows).amin(0))),
        _flat(drawn),
    )


def _inverse(
    first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the rows of the inverse of the 2x2 matrix whose columns are the triangle's legs."""
    det = first[0] * second[1] - first[1] * second[0]
    return (second[1] / det, -second[0] / det), (-first[1] / det, first[0] / det)


def _flat(values: Tensor) -> Tensor:
    """Return (B, h, w) as (B, h w, 1)."""
    return values.flatten(1)[..., None]


def _draw(triangles: _Triangles, buffer: Tensor, rig: Rig, stretch: float, overlap: float) -> None:
    """Lower the buffer to z wherever a triangle covers a pixel's centre and is nearer."""
    wide, high = magnification(rig).largest
    margin = 0 if rig.target.distortion is None else 1  # the edges of a triangle are bent
    columns, rows = math.ceil(stretch * wide) + 1, math.ceil(stretch * high) + 1
    across = torch.arange(-margin, columns + margin, device=buffer.device)
    rays = None if rig.target.distortion is None else axes(rig.target, buffer)
    for row in range(-margin, rows + margin):
        index, z = _cover(triangles, row, across, rays, rig, overlap)
        buffer.view(len(buffer), -1).scatter_reduce_(1, index, z, "amin")


def _cover(
    triangles: _Triangles,
    row: int,
    across: Tensor,
    rays: tuple[Tensor, Tensor] | None,
    rig: Rig,
    overlap: float,
) -> tuple[Tensor, Tensor]:
    """Return flat index and z of the pixels in a row of each bounding box; infinite off the triangle."""
    camera, t, m = rig.target, rig.translation, triangles.plane
    j, i = triangles.start[0] + across, triangles.start[1] + row
    exists = in_image(i, j, camera) & triangles.drawn
    index = torch.where(exists, i * camera.width + j, 0.0).long()
    if rays is None:
        ray = (j + 0.5 - camera.cx) / camera.fx, (i + 0.5 - camera.cy) / camera.fy
    else:
        ray = rays[0].reshape(-1)[index], rays[1].reshape(-1)[index]
    q = m[0] * ray[0] + m[1] * ray[1] + m[2]
    back = rig.turn_back((ray[0] - q * t[0], ray[1] - q * t[1], 1.0 - q * t[2]))
    x, y = (back[k] / back[2] - triangles.corner[k] for k in (0, 1))
    u, v = (part[0] * x + part[1] * y for part in triangles.inverse)
    inside = (u >= -overlap) & (v >= -overlap) & (u + v <= 1.0 + overlap) & (q > 0) & (back[2] > 0) & exists
    return torch.where(inside, index, 0).flatten(1), torch.where(inside, 1.0 / q, torch.inf).flatten(1)


def in_image(i: Tensor, j: Tensor, camera: Intrinsics) -> Tensor:
    """Return True where row i and column j lie in the camera's image."""
    return (i >= 0) & (i < camera.height) & (j >= 0) & (j < camera.width)
