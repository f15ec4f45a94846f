"""What of the past holds where nothing moves but the camera: all that agrees and was not hidden."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.methods.scene_change import trust_of

MISPLACED = 0.05  # pixels by which a carried map may be off; results at steps count as off by themselves
_AGREES = 3.0  # standard deviations by which the past and a result may differ
_UNCOVERED = 0.05  # pixels by which flow falls across 3 pixels


def agreement(difference: Tensor, variance: Tensor) -> Tensor:
    """Return trust in the past, 1 to 0: the further it is off beyond its variance, the less.

    Args:
        difference: (1, 1, H, W) of the result and the past.
        variance: (1, 1, H, W) of the difference.
    """
    return trust_of(difference, _AGREES * variance.sqrt())


def uncovered(flow: Tensor) -> Tensor:
    """Return True, (1, 1, H, W), where something may be seen that a nearer surface hid before.

    What lies beside each other there lay closer together before: flow falls across 3 pixels.

    Args:
        flow: (1, 2, H, W) pixels to where each pixel was before.
    """
    across, down = pad(flow[:, :1], (1, 1, 0, 0), "replicate"), pad(flow[:, 1:], (0, 0, 1, 1), "replicate")
    falls = torch.maximum(across[..., :-2] - across[..., 2:], down[..., :-2, :] - down[..., 2:, :])
    return falls > _UNCOVERED
