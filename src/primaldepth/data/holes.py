"""Holes that a sensor's model does not have: dropped samples, and blobs where nothing was measured."""

import torch
from torch import Tensor
from torch.nn.functional import interpolate

BLOB = 6  # samples per side of the grid whose interpolation bounds the blobs
MOST = 0.5  # of the samples of an image


def holes(like: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """(B, 1, h, w), True in holes: a `share` of the images has some, blobs and single samples alike.

    Args:
        like: (B, 1, h, w), for its size and device.
        share: of the images.
        generator: decides everything.
    """
    count, _, height, width = like.shape
    u = torch.rand((3, count, 1, 1, 1), generator=generator, device=generator.device).to(like.device)
    grid = (count, 1, -(-height // BLOB) + 1, -(-width // BLOB) + 1)
    coarse = torch.rand(grid, generator=generator, device=generator.device).to(like.device)
    smooth = interpolate(coarse, (height, width), mode="bilinear", align_corners=True)
    single = torch.rand(like.shape, generator=generator, device=generator.device).to(like.device)
    return (u[0] < share) & ((smooth < MOST * u[1]) | (single < MOST * u[2].square()))
