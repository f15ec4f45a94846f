"""Depth samples of one camera in the view of another: where they fall, and the surface between them.

Samples are lifted along their rays, moved, and projected. `project_samples` gives the sparse map
of where they fall, `project_surface` the dense one. What the source cannot have measured - behind
something nearer, between two surfaces, outside its image - is not valid. Everything is batched and runs
on the device of the depth without waiting for the host.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.rig import MetricKind, Rig, axes, to_pixels, z_of
from primaldepth.geometry.surface import Layers, draw_layers, in_image

_STRETCH = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Depth in a camera's view: (B, 1, H, W), 0 where not valid."""

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
) -> View:
    """The dense map of z in the target's view: the surface between neighbouring samples, nearest first.

    On a plane it is exact. At the border of the source's image the surface goes on for the half pixel
    that the outermost samples stand for. Not valid: what no triangle of samples covers, for there the
    source measured nothing or two surfaces part, and what the nearer of two such surfaces may hide.

    Args:
        depth: (B, 1, h, w) of the source, metres.
        valid: (B, 1, h, w).
        kind: z, or radial as ToF cameras give it.
        max_slope: neighbours lie on one surface unless the line between them is steeper: the tangent
            of its angle to the image plane.
        stretch: by how much a triangle may be larger in the target than the focal lengths say; what
            is larger is cut off.
    """
    layers = draw_layers(depth, valid, rig, kind, max_slope=max_slope, stretch=stretch)
    measured = torch.isfinite(layers.surface) & (layers.surface <= _front_limit(layers, rig, max_slope))
    return View(torch.where(measured, layers.surface, 0.0), measured)


def _front_limit(layers: Layers, rig: Rig, max_slope: float) -> Tensor:
    """How deep a surface may lie before the front of a gap counts as another one that hides it."""
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
) -> View:
    """The sparse map in the target's view: the mean of the samples that fall on one pixel.

    Args:
        depth: (B, 1, h, w) of the source, metres.
        valid: (B, 1, h, w).
        kind: z, or radial as ToF cameras give it.
        result: z, or radial to see through a ToF camera.
        occlusion: leave out samples that the target does not see, because the surface between other
            samples or another sample on the pixel is nearer; False takes the mean of all on a pixel.
        max_slope: as in `project_surface`; a sample is hidden if it lies deeper than such a slope
            reaches within one pixel.
    """
    z = z_of(torch.where(valid, depth, 1.0), rig.source, kind)
    x, y = axes(rig.source, z)
    moved = rig.forward((x * z, y * z, z))
    index, inside = _pixels(*to_pixels(moved, rig.target), rig.target)
    inside = inside & valid.flatten(1)
    if occlusion:
        layers = draw_layers(depth, valid, rig, kind, max_slope=max_slope, stretch=_STRETCH)
        nearest = torch.minimum(layers.surface, _front_limit(layers, rig, max_slope)).flatten(1)
        inside = inside & _visible(moved[2].flatten(1), index, inside, nearest, rig.target, max_slope)
    values = torch.stack(moved).norm(dim=0) if result == "radial" else moved[2]
    return _mean(values.flatten(1), index, inside, rig.target)


def _pixels(column: Tensor, row: Tensor, front: Tensor, camera: Intrinsics) -> tuple[Tensor, Tensor]:
    """(flat index of the pixel, whether it lies in the image), each (B, h w)."""
    i, j = row.floor().flatten(1), column.floor().flatten(1)
    inside = in_image(i, j, camera) & front.flatten(1)
    return torch.where(inside, i * camera.width + j, 0.0).long(), inside


def _visible(
    z: Tensor, index: Tensor, inside: Tensor, nearest: Tensor, camera: Intrinsics, max_slope: float
) -> Tensor:
    """True for samples not deeper than `nearest` or another sample on the pixel, up to a tolerance."""
    nearest = nearest.scatter_reduce(1, index, torch.where(inside, z, torch.inf), "amin")
    return z <= nearest.gather(1, index) * (1.0 + max_slope / min(camera.fx, camera.fy))


def _mean(values: Tensor, index: Tensor, inside: Tensor, camera: Intrinsics) -> View:
    """Mean on each pixel; in float64, where sums of a few float32 are exact and so have no order."""
    wide = torch.where(inside, values, 0.0).double()
    total = wide.new_zeros((len(wide), camera.height * camera.width)).scatter_add(1, index, wide)
    count = torch.zeros_like(total).scatter_add(1, index, inside.double())
    mean = (total / count.clamp_min(1.0)).to(values.dtype).view(-1, 1, camera.height, camera.width)
    return View(mean, count.view(mean.shape) > 0)
