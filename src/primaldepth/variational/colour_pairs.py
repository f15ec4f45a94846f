"""Weights of neighbouring pixels that colour joins: steps of what they weigh lie at edges of the image."""

import torch
from torch import Tensor

from primaldepth.operators.pairwise import Offset
from primaldepth.variational.affinities import guide_distance, proximity

NEIGHBOURS: tuple[Offset, ...] = ((-1, 0), (0, -1), (-1, -1), (-1, 1))
CONTRAST, LEAST = 0.01, 1e-4  # of the guide that parts two pixels by 1/e, and what always joins them


def colour_weights(guide: Tensor) -> Tensor:
    """Return how much pairs of `NEIGHBOURS` are joined, by colour and distance.

    w = (exp(-|g(x) - g(y)| / CONTRAST) + LEAST) / |x - y|, with the root mean square over the channels.

    Args:
        guide: (B, C, H, W) g in [0, 1].

    Returns:
        (B, 4, H, W).
    """
    distance = guide_distance(guide, NEIGHBOURS) / guide.shape[1] ** 0.5
    return (torch.exp(-distance / CONTRAST) + LEAST) / proximity(NEIGHBOURS, guide)
