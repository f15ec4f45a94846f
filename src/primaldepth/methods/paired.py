"""Samples of depth cameras: the mean of the results of two networks.

`pdn-any` and `pdn-any-small` err in different places, so that the mean of two results u_1 and u_2 is better
than either where samples are points, with holes or without. It may be off by what both say, and by how far
they disagree:

    u = (u_1 + u_2) / 2,    S^2 = ((S_1 + S_2) / 2)^2 + ((u_1 - u_2) / 2)^2

Averages over pixels are left to the first network alone, which is ahead there by too much, and so are maps of
the guide's size and registered depth.
"""

from dataclasses import replace

import torch

from primaldepth.core.frame import Frame, Prediction


def is_for_two(frame: Frame) -> bool:
    """Return whether two networks are better than one on such samples.

    Args:
        frame: what a network is to be run on.
    """
    return frame.sampling != "average" and frame.low_size != frame.high_size and not frame.registered


def mean_of_two(first: Prediction, second: Prediction) -> Prediction:
    """Return the mean of two predictions of one frame.

    Args:
        first: u_1 and S_1; its masks and its `info` are kept.
        second: u_2 and S_2.

    Returns:
        u and S, the latter where both have an uncertainty.
    """
    sigma = None
    if first.sigma is not None and second.sigma is not None:
        sigma = torch.hypot(0.5 * (first.sigma + second.sigma), 0.5 * (first.depth - second.depth))
    return replace(first, depth=0.5 * (first.depth + second.depth), sigma=sigma)
