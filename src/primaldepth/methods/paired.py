"""The mean of the results of two networks, for samples of depth cameras.

`pdn-any` and `pdn-any-small` err in different places, so that the mean of their results u_1 and u_2 has a
smaller RMSE than either where samples are points, with holes or without. Its uncertainty S combines what both
say with how far they disagree:

    u = (u_1 + u_2) / 2,    S^2 = ((S_1 + S_2) / 2)^2 + ((u_1 - u_2) / 2)^2

Only the second network, which is much faster, is run again for what lies deep inside holes; there it counts
alone: with shares 1 - a and a of the two, S^2 = ((1 - a) S_1 + a S_2)^2 + a (1 - a) (u_1 - u_2)^2.
Averages over pixels are left to the first network alone, which is ahead there by too much, and so are maps of
the guide's size and registered depth.
"""

from dataclasses import replace

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.operators.sampling import resample


def is_for_two(frame: Frame) -> bool:
    """Return whether the samples of a frame are of the kind on which two networks are better than one.

    Args:
        frame: what a network is to be run on.
    """
    return frame.sampling != "average" and frame.low_size != frame.high_size and not frame.registered


def mean_of_two(first: Prediction, second: Prediction, deep: Tensor | None = None) -> Prediction:
    """Return the mean of two predictions of one frame.

    Args:
        first: u_1 and S_1; its masks and its `info` are kept.
        second: u_2 and S_2.
        deep: (B, 1, h, w) how far to follow the second prediction alone, 0 to 1; None: nowhere.

    Returns:
        u and S, the latter if both have an uncertainty.
    """
    share = torch.full_like(first.depth, 0.5)
    if deep is not None:
        height, width = first.depth.shape[2:]
        share += 0.5 * resample(deep.to(share.dtype), (height, width), "bilinear")
    depth = torch.lerp(first.depth, second.depth, share)
    if first.sigma is None or second.sigma is None:
        return replace(first, depth=depth, sigma=None)
    disagreement = (share * (1.0 - share)).sqrt() * (first.depth - second.depth)
    return replace(
        first, depth=depth, sigma=torch.hypot(torch.lerp(first.sigma, second.sigma, share), disagreement)
    )
