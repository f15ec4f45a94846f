"""Holes drawn into samples for training, beyond those of a sensor model: single samples and blobs."""

import torch
from torch import Tensor

from primaldepth.sensors.draws import smooth_field, uniform

BLOBS = (6, 24)  # samples per side of the grids whose interpolation bounds the blobs: one of them per image
MOST = 0.5  # of the samples of an image


def holes(like: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Draw holes, (B, 1, h, w) True: a `share` of the images has some, blobs and single samples alike.

    Args:
        like: (B, 1, h, w), for its size and device.
        share: of the images.
        generator: decides everything.

    Returns:
        (B, 1, h, w), True in holes.
    """
    u = uniform(torch.empty((4, len(like), 1, 1, 1), device=like.device), generator)
    small, large = (smooth_field(like, blob, generator) for blob in BLOBS)
    blobs = torch.where(u[3] < 0.5, small, large) < MOST * u[1]
    single = uniform(torch.empty(like.shape, device=like.device), generator) < MOST * u[2].square()
    return (u[0] < share) & (blobs | single)
