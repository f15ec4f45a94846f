"""What a projector or a second camera beside the first one does not see."""

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d


def shadow(disparity: Tensor, seen: Tensor, reach: int) -> Tensor:
    """Return True where a surface more than 1 px nearer covers the same column x - d of the other device.

    The device stands to the right of the camera, so shadows lie to the left of what casts them.

    Args:
        disparity: (B, 1, H, W) in pixels.
        seen: (B, 1, H, W); only surfaces at these pixels cast shadows.
        reach: at least the largest disparity, in pixels.
    """
    width = disparity.shape[3]
    x = torch.arange(width, device=disparity.device, dtype=disparity.dtype) + 0.5
    column = (x - disparity).floor().long().clamp(-reach, width - 1) + reach
    nearest = disparity.new_zeros((*disparity.shape[:3], width + reach))
    nearest = nearest.scatter_reduce(3, column, torch.where(seen, disparity, 0.0), "amax")
    # Closing: a surface stretched on the other device's side leaves empty columns between its pixels.
    nearest = -max_pool2d(-max_pool2d(nearest, (1, 3), 1, (0, 1)), (1, 3), 1, (0, 1))
    return nearest.gather(3, column) > disparity + 1.0
