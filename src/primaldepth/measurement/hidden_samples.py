"""Samples that the image shows to be hidden: they lie behind a nearer surface of the same colour."""

import torch
from torch import Tensor

from primaldepth.operators.sampling import Resample
from primaldepth.variational.colour_pairs import NEIGHBOURS, colour_weights
from primaldepth.variational.quadratic import PairedQuadratic

# Chosen on rendered scans, see docs/samples.md.
FADE = 2e-4  # weight of a pixel that nothing holds, where a pair of pixels of one colour weighs 1
HOLD = 10.0  # weight of a sample
NEARER = 0.3  # of its depth: a sample is hidden if the surface before it is nearer by more
ITERATIONS, TOLERANCE = 300, 1e-3


def behind_colours(depth: Tensor, valid: Tensor, uncertain: Tensor, guide: Tensor) -> Tensor:
    """Return True for uncertain samples behind what nearer certain ones of the same colour make likely.

    The inverse depth u of the certain samples spreads over what their colour joins, and fades on the way:

        min_u  sum_i HOLD (u(x_i) - 1 / d_i)^2 + sum_x FADE u(x)^2 + sum_{x~y} w(x, y) (u(x) - u(y))^2

    Where no certain sample is near, or an edge of the image lies between, u is small, which is to say that
    no surface is known to stand there. An uncertain sample of depth d is hidden if d u > 1 + NEARER.

    Args:
        depth: (B, 1, H, W) on the guide's grid.
        valid: (B, 1, H, W).
        uncertain: (B, 1, H, W) True for samples that may be hidden.
        guide: (B, C, H, W) in [0, 1].

    Returns:
        (B, 1, H, W).
    """
    certain = valid & ~uncertain
    if not bool((valid & uncertain).any()) or not bool(certain.any()):
        return torch.zeros_like(valid)
    unit = depth[certain].median()
    f = torch.where(certain, unit / torch.where(certain, depth, unit), 0.0).to(guide.dtype)
    size = int(guide.shape[2]), int(guide.shape[3])
    lam = torch.where(certain, HOLD, FADE).to(guide.dtype)
    energy = PairedQuadratic(f, lam, colour_weights(guide), NEIGHBOURS, Resample(size, size, "point"))
    u = energy.minimise(f, iterations=ITERATIONS, tolerance=TOLERANCE).u
    return valid & uncertain & (depth * u > (1.0 + NEARER) * unit)
