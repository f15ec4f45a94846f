"""Complete maps with little noise: the mean of a network's result and of the minimiser of `nlh-l2`.

Both reproduce such samples. What they put between them is wrong in different places, so that the mean of the
two has a smaller error than either. The share of `nlh-l2` is

    0.6 / (1 + (s / 12)^2) / (1 + (r / 0.05)^2),

s the pixels per sample along one side, r the noise over half the range of the depth: chosen by the noise-free
sets at x2 to x16, with and without noise. Only complete maps of averages over pixels are treated so, not what
depth cameras give: beside their holes the network is better alone, and at edges between point samples the
mean of two positions of an edge would be a depth where there is no surface.
"""

from dataclasses import replace

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods.variational import DEFAULTS, Variational, sample_distances
from primaldepth.networks.normalisation import Scaling, relative_sigma

CLASSICAL = "nlh-l2"
LARGEST_SHARE, HALVING_SCALE, HALVING_NOISE = 0.6, 12.0, 0.05
LEAST_SHARE = 0.1  # not worth the time


def with_classical(found: Prediction, frame: Frame, scaling: Scaling) -> Prediction:
    """Return the mean of a network's prediction and of the minimiser of `nlh-l2`, by the share of the latter.

    Args:
        found: of the network.
        frame: what it was found from.
        scaling: of the frame's depth.

    Returns:
        `found` itself if no share is worth computing.
    """
    share = classical_share(frame, scaling)
    if not bool(share.any()):
        return found
    other = Variational(CLASSICAL, DEFAULTS[CLASSICAL])(frame).depth
    info = {**found.info, "classical_share": [round(float(each), 3) for each in share]}
    return replace(found, depth=torch.lerp(found.depth, other, share), info=info)


def classical_share(frame: Frame, scaling: Scaling) -> Tensor:
    """Return the share of the classical solution for each image of the frame, (B, 1, 1, 1) in [0, 0.6]."""
    if frame.sampling != "average" or frame.registered or frame.low_size == frame.high_size:
        return torch.zeros_like(scaling.spread)
    scale = torch.tensor(sample_distances(frame)).view(-1, 1, 1, 1).to(scaling.spread)
    noise = torch.stack(
        [
            sigma[valid].median()
            for sigma, valid in zip(relative_sigma(frame, scaling), frame.valid, strict=True)
        ]
    ).view(-1, 1, 1, 1)
    share = LARGEST_SHARE / (1.0 + (scale / HALVING_SCALE) ** 2) / (1.0 + (noise / HALVING_NOISE) ** 2)
    complete = frame.valid.flatten(1).all(dim=1).view(-1, 1, 1, 1)
    return torch.where(complete & (share >= LEAST_SHARE), share, 0.0)
