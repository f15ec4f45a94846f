"""The support weights of one pixel: what the guide says, what the network says, what is true."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from primaldepth.evaluation.protocol import Case
from primaldepth.methods.network_inputs import NetworkInputs, Window
from primaldepth.methods.variational import DEFAULTS
from primaldepth.networks.joint import DepthNet
from primaldepth.operators.pairwise import Offset, half_window
from primaldepth.pipeline.outputs import rgb_of
from primaldepth.report.figures import INK, drawing
from primaldepth.variational.affinities import guide_distance, proximity, support_weights

Map = NDArray[np.floating[Any]]
Pixel = tuple[int, int]
_ZOOM = 3


@dataclass(frozen=True, slots=True)
class Support:
    """The window around a pixel, (n, n) each; None where it has no meaning.

    Args:
        name: whose weights they are.
        patch: (n, n, C) or (n, n), what the pixels look like.
        affinity: Delta_a.
        nearness: Delta_d.
        weight: w = exp(-Delta_d / sigma_d - Delta_a / sigma_v).
    """

    name: str
    patch: Map
    affinity: Map
    nearness: Map | None = None
    weight: Map | None = None


def around(values: Tensor, offsets: Sequence[Offset], pixel: Pixel, centre: float) -> Map:
    """Return the (n, n) values between a pixel and its neighbours.

    Args:
        values: (N, H, W) of the pairs of a half window; a pair (x, y) is stored once, at its x.
        offsets: (dy, dx) of each pair.
        pixel: row and column.
        centre: value in the middle.
    """
    radius = max(max(abs(dy), abs(dx)) for dy, dx in offsets)
    out = np.full((2 * radius + 1, 2 * radius + 1), centre)
    row, column = pixel
    for k, (dy, dx) in enumerate(offsets):
        out[radius + dy, radius + dx] = float(values[k, row, column])
        out[radius - dy, radius - dx] = float(values[k, row - dy, column - dx])
    return out


def guide_support(case: Case, pixel: Pixel, method: str) -> Support:
    """Return the weights by the guide, with the parameters of a variational method.

    Args:
        case: whose guide is read.
        pixel: row and column.
        method: whose parameters are taken.
    """
    q = DEFAULTS[method]
    offsets = half_window(q.window)
    part, inner = _cut(case.frame.guide, pixel, q.window)
    distance = guide_distance(part, offsets)
    weight = support_weights(distance, offsets, q.sigma_d, q.sigma_v)
    return _support("guide", _patch(part, inner, q.window), distance, weight, offsets, inner)


def network_support(case: Case, pixel: Pixel, net: DepthNet) -> Support:
    """Return the affinities of a network around a pixel and, if it has a solver, the weights made of them.

    Args:
        case: whose frame is read.
        pixel: row and column.
        net: in evaluation mode.
    """
    size, window = case.frame.high_size, net.settings.window
    here = Window(pixel[0], pixel[0] + 1, pixel[1], pixel[1] + 1)
    outer = here.grown(net.fcn.radius + window, size, net.stride)
    inner = (pixel[0] - outer.top, pixel[1] - outer.left)
    maps = NetworkInputs.of(case.frame).window(outer, case.frame.guide, net.settings.colours)
    with torch.no_grad():
        found = net.features(*maps[:5])
        first, affinities = found.first, found.affinities
        distance = affinities.abs()
        solver = net.pdn
        weight = None if solver is None else solver.support(affinities, maps.guide)
    return _support("network", _patch(first, inner, window), distance, weight, half_window(window), inner)


def true_support(case: Case, pixel: Pixel, window: int) -> Support:
    """Return the differences of the true depth, which a network's affinities should be.

    Args:
        case: whose truth is read.
        pixel: row and column.
        window: its side.
    """
    part, inner = _cut(case.truth, pixel, window)
    offsets = half_window(window)
    return Support(
        "truth", _patch(part, inner, window), around(guide_distance(part, offsets)[0], offsets, inner, 0)
    )


def _support(
    name: str, patch: Map, distance: Tensor, weight: Tensor | None, offsets: Sequence[Offset], pixel: Pixel
) -> Support:
    near = proximity(offsets, distance).expand_as(distance)
    return Support(
        name,
        patch,
        around(distance[0], offsets, pixel, 0.0),
        around(near[0], offsets, pixel, 0.0),
        None if weight is None else around(weight[0], offsets, pixel, 1.0),
    )


def _cut(image: Tensor, pixel: Pixel, margin: int) -> tuple[Tensor, Pixel]:
    size = (int(image.shape[2]), int(image.shape[3]))
    part = Window(pixel[0], pixel[0] + 1, pixel[1], pixel[1] + 1).grown(margin, size)
    return part.cut(image), (pixel[0] - part.top, pixel[1] - part.left)


def _patch(image: Tensor, pixel: Pixel, window: int) -> Map:
    r = window // 2
    part = image[0, :, pixel[0] - r : pixel[0] + r + 1, pixel[1] - r : pixel[1] + r + 1].permute(1, 2, 0)
    patch: Map = part.squeeze(2).numpy()
    return patch


def surroundings(case: Case, pixel: Pixel, window: int, radius: int = 80) -> bytes:
    """Draw the guide around the pixel, enlarged, with the window outlined; a PNG.

    Args:
        case: whose guide is drawn.
        pixel: row and column.
        window: its side.
        radius: pixels that are shown each way.
    """
    part, (row, column) = _cut(case.frame.guide, pixel, radius)
    image = Image.fromarray(rgb_of(part))
    image = image.resize((_ZOOM * image.width, _ZOOM * image.height), Image.Resampling.NEAREST)
    first, last = (_ZOOM * (column - window // 2), _ZOOM * (row - window // 2)), _ZOOM * window
    box = (*first, first[0] + last, first[1] + last)
    ImageDraw.Draw(image).rectangle(box, outline=(255, 59, 31), width=2)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def support_figure(rows: Sequence[Support]) -> bytes:
    """Draw one row per source of weights: the image around the pixel, affinities, distances, weights."""
    titles = ("window", r"$\Delta_a$", r"$\Delta_d$", "$w$")
    with drawing(4.8, 0.3 + 1.2 * len(rows)) as canvas:
        grid = canvas.figure.subplots(len(rows), 4, squeeze=False)
        for index, (line, support) in enumerate(zip(grid, rows, strict=True)):
            maps = (support.patch, support.affinity, support.nearness, support.weight)
            for axes, title, values in zip(line, titles, maps, strict=True):
                axes.set(xticks=[], yticks=[])
                axes.grid(visible=False)
                if values is None:
                    axes.axis("off")
                    continue
                shown = axes.imshow(values, cmap="viridis" if title != "window" else "cividis")
                axes.plot([values.shape[1] // 2], [values.shape[0] // 2], "+", color="#ff3b1f", markersize=7)
                if index == 0:
                    axes.set_title(title, fontsize=10)
                if title != "window":
                    canvas.figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.03).ax.tick_params(labelsize=7)
            line[0].set_ylabel(support.name, fontsize=9.5, color=INK)
    return canvas.svg
