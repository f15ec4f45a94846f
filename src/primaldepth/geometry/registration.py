"""Depth samples of one camera in the view of another: where they fall, and the surface between them.

Samples are lifted along their rays, moved, and projected. `project_samples` gives the sparse map
of where they fall, `project_surface` the dense one. What the source cannot have measured - behind
something nearer, between two surfaces, outside its image - is not valid. `register` makes of it what methods
take: samples averaged over cells of the target's pixels. Everything is batched and runs on the device of the
depth, for cameras without distortion without waiting for the host. Lenses that distort are undone in the
source; the target's image stays as it is, and samples fall where its lens puts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.rig import MetricKind, Rig, Tensors, axes, magnification, to_pixels, z_of
from primaldepth.geometry.surface import Layers, draw_layers, in_image

_STRETCH = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredDepth:
    """Depth as seen by another camera: (B, 1, H, W), 0 where not valid."""

    depth: Tensor
    valid: Tensor


def project_surface(
    depth: Tensor,
    valid: Tensor,
    rig: Rig,
    kind: MetricKind = "radial",
    *,
    max_slope: float = 10.0,
    stretch: float = _STRETCH,
) -> RegisteredDepth:
    """Return the dense depth in the target's view: the surface through the samples, nearest first.

    On a plane it is exact. At the border of the source's image the surface goes on for the half pixel
    that the outermost samples stand for. Not valid: what no triangle of samples covers, for there the
    source measured nothing or two surfaces part, and what the nearer of two such surfaces may hide.

    Args:
        depth: (B, 1, h, w) of the source, metres.
        valid: (B, 1, h, w).
        rig: from the camera of the depth to that of the view.
        kind: z, or radial as ToF cameras give it.
        max_slope: neighbours lie on one surface unless the line between them is steeper: the tangent
            of its angle to the image plane.
        stretch: by how much a triangle may be larger in the target than the focal lengths say; what
            is larger is cut off.
    """
    layers = draw_layers(depth, valid, rig, kind, max_slope=max_slope, stretch=stretch)
    measured = torch.isfinite(layers.surface) & (layers.surface <= _front_limit(layers, rig, max_slope))
    return RegisteredDepth(torch.where(measured, layers.surface, 0.0), measured)


def _front_limit(layers: Layers, rig: Rig, max_slope: float) -> Tensor:
    """Return the depth beyond which the front of a gap hides a surface."""
    return layers.front * (1.0 + max_slope / min(rig.source.fx, rig.source.fy))


def project_samples(
    depth: Tensor,
    valid: Tensor,
    rig: Rig,
    kind: MetricKind = "radial",
    *,
    result: MetricKind = "z",
    occlusion: bool = True,
    max_slope: float = 10.0,
) -> RegisteredDepth:
    """Return the sparse depth in the target's view: the mean of the samples that fall on each pixel.

    Args:
        depth: (B, 1, h, w) of the source, metres.
        valid: (B, 1, h, w).
        rig: from the camera of the depth to that of the view.
        kind: z, or radial as ToF cameras give it.
        result: z, or radial to see through a ToF camera.
        occlusion: leave out samples that the target does not see, because the surface between other
            samples or another sample on the pixel is nearer; False takes the mean of all on a pixel.
        max_slope: as in `project_surface`; a sample is hidden if it lies deeper than such a slope
            reaches within one pixel.
    """
    points, where, seen = _samples(depth, valid, rig, kind, max_slope if occlusion else None)
    values = torch.stack(points).norm(dim=0) if result == "radial" else points[2]
    return _mean(values, where, seen, rig.target)


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A depth camera's samples on cells of the guide's image, (B, 1, rows, columns), 0 where not valid.

    Args:
        depth: mean z of the samples of a cell.
        valid: whether a sample that the guide sees fell into the cell.
        maps: means of the other maps of the depth camera, in the order they were given.
        cell: (height, width) of a cell in pixels of the guide.
    """

    depth: Tensor
    valid: Tensor
    maps: tuple[Tensor, ...]
    cell: tuple[float, float]


def register(
    depth: Tensor,
    valid: Tensor,
    rig: Rig,
    kind: MetricKind = "z",
    *,
    maps: Sequence[Tensor] = (),
    cell: int | None = None,
    max_slope: float = 10.0,
) -> Registered:
    """Return the samples that the guide sees, averaged over square cells of its pixels.

    Of the samples in one cell those that lie on a surface behind the nearest are left out.

    Args:
        depth: (B, 1, h, w) of the source, in the unit of the rig's translation.
        valid: (B, 1, h, w).
        rig: from the camera of the depth to the guide's.
        kind: z, or radial as ToF cameras give it.
        maps: other (B, 1, h, w) maps of the source, such as a confidence.
        cell: pixels of the target per side; None for as many as a pixel of the source covers. With 1,
            samples stay on the pixel they fall on. Cells that do not divide the image are a little larger.
        max_slope: as in `project_samples`.

    Example:
        >>> import torch
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> from primaldepth.geometry.registration import register
        >>> from primaldepth.geometry.rig import Rig
        >>> color, camera = Intrinsics.guess(64, 48), Intrinsics.guess(32, 24)
        >>> depth = torch.full((1, 1, 24, 32), 2.0)
        >>> seen = register(depth, depth > 0, Rig(camera, color, translation=(0.1, 0.0, 0.0)))
        >>> bool(seen.valid.any()), bool(seen.valid.all())  # a border is seen by one camera alone
        (True, False)
    """
    if cell is None:
        cell = max(1, round(min(magnification(rig).typical)))
    if cell < 1 or cell > min(rig.target.height, rig.target.width):
        raise InputError(
            "cell", f"{cell} pixels, expected 1 to the guide's {min(rig.target.height, rig.target.width)}"
        )
    grid = rig.target.scaled_to(rig.target.width // cell, rig.target.height // cell)
    points, where, seen = _samples(depth, valid, rig, kind, max_slope)
    where = _cells(where, rig.target, grid)
    empty = points[2].new_full((len(depth), grid.height * grid.width), torch.inf)
    seen = seen & _visible(points[2], where, seen, empty, grid, max_slope)
    view = _mean(points[2], where, seen, grid)
    others = tuple(_mean(each.flatten(1), where, seen, grid).depth for each in maps)
    size = rig.target.height / grid.height, rig.target.width / grid.width
    return Registered(view.depth, view.valid, others, size)


def _samples(
    depth: Tensor, valid: Tensor, rig: Rig, kind: MetricKind, max_slope: float | None
) -> tuple[Tensors, Tensor, Tensor]:
    """Return points, flat index of the target's pixel, and whether the target sees each; all (B, h w).

    Args:
        max_slope: None to see through surfaces.
    """
    z = z_of(torch.where(valid, depth, 1.0), rig.source, kind)
    x, y = axes(rig.source, z)
    moved = rig.forward((x * z, y * z, z))
    index, seen = _pixels(*to_pixels(moved, rig.target), rig.target)
    seen = seen & valid.flatten(1)
    points = moved[0].flatten(1), moved[1].flatten(1), moved[2].flatten(1)
    if max_slope is not None:
        layers = draw_layers(depth, valid, rig, kind, max_slope=max_slope, stretch=_STRETCH)
        nearest = torch.minimum(layers.surface, _front_limit(layers, rig, max_slope)).flatten(1)
        seen = seen & _visible(points[2], index, seen, nearest, rig.target, max_slope)
    return points, index, seen


def _cells(index: Tensor, image: Intrinsics, grid: Intrinsics) -> Tensor:
    """Return the flat index of the cell that each pixel lies in."""
    row, column = index // image.width, index % image.width
    return (row * grid.height // image.height) * grid.width + column * grid.width // image.width


def _pixels(column: Tensor, row: Tensor, front: Tensor, camera: Intrinsics) -> tuple[Tensor, Tensor]:
    """Return the flat index of each point's pixel and whether it lies in the image; both (B, h w)."""
    i, j = row.floor().flatten(1), column.floor().flatten(1)
    inside = in_image(i, j, camera) & front.flatten(1)
    return torch.where(inside, i * camera.width + j, 0.0).long(), inside


def _visible(
    z: Tensor, index: Tensor, inside: Tensor, nearest: Tensor, camera: Intrinsics, max_slope: float
) -> Tensor:
    """Return True for samples not deeper than `nearest` or another sample on the pixel, up to a tolerance."""
    nearest = nearest.scatter_reduce(1, index, torch.where(inside, z, torch.inf), "amin")
    return z <= nearest.gather(1, index) * (1.0 + max_slope / min(camera.fx, camera.fy))


def _mean(values: Tensor, index: Tensor, inside: Tensor, camera: Intrinsics) -> RegisteredDepth:
    """Return the mean of the samples on each pixel; float64 makes the sum independent of their order."""
    wide = torch.where(inside, values, 0.0).double()
    total = wide.new_zeros((len(wide), camera.height * camera.width)).scatter_add(1, index, wide)
    count = torch.zeros_like(total).scatter_add(1, index, inside.double())
    mean = (total / count.clamp_min(1.0)).to(values.dtype).view(-1, 1, camera.height, camera.width)
    return RegisteredDepth(mean, count.view(mean.shape) > 0)
