"""Zones of a frame for its errors: interior, near jumps of the depth, near holes, and in holes.

All maps are (1, 1, H, W); distances are Euclidean, in pixels.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from primaldepth.evaluation.metrics import edge_pixels

ZONES = ("interior", "near_jumps", "near_holes", "in_holes")


def within(pixels: Tensor, radius: int) -> Tensor:
    """Return True where the distance to the nearest True pixel is at most `radius`."""
    height = pixels.shape[2]
    padded = pad(pixels.float(), (0, 0, radius, radius))
    found = torch.zeros_like(pixels)
    for dy in range(-radius, radius + 1):
        half = math.isqrt(radius**2 - dy**2)
        rows = padded[:, :, radius + dy : radius + dy + height]
        found |= max_pool2d(rows, (1, 2 * half + 1), 1, (0, half)) > 0
    return found


def jump_pixels(depth: Tensor, known: Tensor, ratio: float) -> Tensor:
    """Return True for both of two neighbours whose depths differ by more than `ratio` of the smaller one."""
    logs = torch.where(known, depth, 1.0).double().log()
    return edge_pixels(logs, known, math.log1p(ratio))


def wide_holes(holes: Tensor) -> Tensor:
    """Return the parts of holes that squares of 3x3 pixels fit into; the frame goes on as at its border.

    Sensors leave out single pixels everywhere. If these counted, most of a frame would lie near a hole.
    """
    framed = pad(holes.float(), (1, 1, 1, 1), mode="replicate")
    core = max_pool2d(-framed, 3, 1) < -0.5  # a 3x3 square around the pixel is all hole
    return (max_pool2d(core.float(), 3, 1, 1) > 0) & holes


def zone_masks(truth: Tensor, known: Tensor, holes: Tensor, jump: float, radius: int) -> dict[str, Tensor]:
    """Return the mask of each of `ZONES`; a pixel near a jump and a hole lies in both zones.

    The interior is farther than `radius` from jumps and holes. What lies in a hole is not near it.

    Args:
        truth: depth or disparity.
        known: where the truth is known; jumps to unknown pixels do not count.
        holes: where the sensor measured nothing. Only holes that are 3 pixels wide or more have surroundings.
        jump: relative difference of neighbours that makes a jump.
        radius: of the zones around jumps and holes.
    """
    jumps = within(jump_pixels(truth, known, jump), radius)
    around = within(wide_holes(holes), radius)
    return {
        "interior": ~jumps & ~around & ~holes,
        "near_jumps": jumps,
        "near_holes": around & ~holes,
        "in_holes": holes,
    }
