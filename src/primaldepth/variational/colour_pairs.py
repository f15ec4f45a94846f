"""Weights of neighbouring pixels that colour joins: steps of what they weigh lie at edges of the image."""

import torch
from torch import Tensor

from primaldepth.operators.pairwise import Offset
from primaldepth.operators.pairwise.reference import ends
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


def across_steps(u: Tensor, step: float) -> Tensor:
    """Return by how much pairs of `NEIGHBOURS` stay joined: 1 on a flat u, a half across a `step`.

    r = 1 / (1 + (u(x) - u(y))^2 / step^2); pairs that leave the image have 1. Weights w r turn a quadratic
    penalty w d^2 towards w step^2 log(1 + d^2 / step^2), for which one large step costs less than many small
    ones.

    Args:
        u: (B, 1, H, W).
        step: > 0, in the unit of u.

    Returns:
        (B, 4, H, W).
    """
    height, width = int(u.shape[2]), int(u.shape[3])
    out = u.new_ones((u.shape[0], len(NEIGHBOURS), height, width))
    for k, offset in enumerate(NEIGHBOURS):
        x, y = ends(offset, (height, width))
        difference = u[:, 0, x[0], x[1]] - u[:, 0, y[0], y[1]]
        out[:, k, x[0], x[1]] = 1.0 / (1.0 + (difference / step).square())
    return out
