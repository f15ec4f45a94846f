"""Rectangles cut out of a depth map, to see how well a method fills holes of which the depth is known."""

import torch
from torch import Tensor

SIDES = (20, 60)  # shortest and longest side, in pixels
PIXELS_PER_CUT_OUT = 25_600  # 12 in a frame of 640x480


def cut_outs(known: Tensor, generator: torch.Generator) -> Tensor:
    """Return where rectangles are cut out, (1, 1, H, W); each has a known pixel at its centre.

    A side has 20 to 60 pixels, but at most half of the frame's.

    Args:
        known: (1, 1, H, W), at least one True.
        generator: on the CPU; decides places and sides.
    """
    height, width = known.shape[2:]
    centres = known[0, 0].nonzero()
    removed = torch.zeros_like(known)
    for _ in range(max(1, height * width // PIXELS_PER_CUT_OUT)):
        index = int(torch.randint(len(centres), (1,), generator=generator))
        rows, columns = torch.randint(SIDES[0], SIDES[1] + 1, (2,), generator=generator).tolist()
        rows, columns = min(rows, height // 2), min(columns, width // 2)
        y, x = centres[index].tolist()
        top, left = max(0, y - rows // 2), max(0, x - columns // 2)
        removed[..., top : y - rows // 2 + rows, left : x - columns // 2 + columns] = True
    return removed
