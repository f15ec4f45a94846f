"""Holes drawn into samples for training, beyond those of a sensor model: single samples and blobs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.sensors.draws import smooth_field

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
    u = _uniform((4, len(like), 1, 1, 1), like, generator)
    small, large = (smooth_field(like, blob, generator) for blob in BLOBS)
    blobs = torch.where(u[3] < 0.5, small, large) < MOST * u[1]
    single = _uniform(like.shape, like, generator) < MOST * u[2].square()
    return (u[0] < share) & (blobs | single)


def _uniform(shape: Sequence[int], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device).to(like.device)
