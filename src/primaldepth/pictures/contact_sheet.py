"""A sheet of small pictures that shows what was made: each image with its depth below."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from primaldepth.core.errors import InputError
from primaldepth.pictures.preview import colorize, robust_limits


def contact_sheet(
    scenes: Sequence[Mapping[str, NDArray[Any]]], *, columns: int = 6, side: int = 192
) -> NDArray[np.uint8]:
    """Return a grid of scenes, (H, W, 3): each image above its inverse depth in colours (near is bright).

    Args:
        scenes: arrays as the renderer returns them.
        columns: scenes in a row.
        side: width of one picture in pixels.
    """
    if not scenes:
        raise InputError("contact sheet", "no scenes to show")
    cells = [_cell(scene, side) for scene in scenes]
    height, gap = max(cell.shape[0] for cell in cells), 4
    rows = -(-len(cells) // columns)
    sheet = np.full(
        (rows * (height + gap) + gap, min(columns, len(cells)) * (side + gap) + gap, 3), 255, np.uint8
    )
    for index, cell in enumerate(cells):
        top = gap + index // columns * (height + gap)
        left = gap + index % columns * (side + gap)
        sheet[top : top + cell.shape[0], left : left + side] = cell
    return sheet


def _cell(scene: Mapping[str, NDArray[Any]], side: int) -> NDArray[np.uint8]:
    depth, valid = scene["depth"], scene["valid"]
    near = np.where(valid, 1 / np.maximum(depth, 1e-6), 0)
    coloured = colorize(near, valid, robust_limits(near, valid))
    height = round(side * depth.shape[0] / depth.shape[1])
    image = Image.fromarray(scene["image"]).resize((side, height), Image.Resampling.BOX)
    below = Image.fromarray(coloured).resize((side, height), Image.Resampling.NEAREST)
    return np.concatenate([np.asarray(image), np.asarray(below)])
