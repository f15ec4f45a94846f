"""One noisy scene with an edge that the guide knows, for the tests of single methods."""

from dataclasses import replace

import torch

from primaldepth.core.frame import Frame
from primaldepth.methods import create, list_methods

FAMILIES = {
    family: [info.name for info in list_methods() if info.family == family]
    for family in ("filter", "optimisation")
}


def noisy_step(scale=4, size=(32, 32), sigma=0.1, seed=0):
    """Truth: 2 left of a slanted edge, 3 right of it; the guide has the same edge."""
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    right = (x > 0.3 * size[1] + 0.3 * y).float()[None, None]
    truth, guide = 2.0 + right, (0.2 + 0.6 * right).expand(1, 3, *size).contiguous()
    low = truth.unfold(2, scale, scale).unfold(3, scale, scale).mean(dim=(-2, -1))
    depth = low + sigma * torch.randn(low.shape, generator=torch.Generator().manual_seed(seed))
    frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=torch.full_like(depth, sigma))
    return frame, truth


def with_hole(frame, side=10, corner=(2, 2)):
    """The frame with a square of samples missing; their values are NaN."""
    valid, depth = frame.valid.clone(), frame.depth.clone()
    rows, columns = (slice(start, start + side) for start in corner)
    valid[..., rows, columns] = False
    depth[..., rows, columns] = torch.nan
    return Frame(depth, valid, frame.guide, sigma=frame.sigma)


def with_and_without_outlier(frame, value):
    """Twice the frame with one sample of no confidence: once it is `value`, once what it was."""
    confidence = torch.ones_like(frame.depth)
    confidence[..., 1, 2] = 0.0
    outlier = torch.where(confidence > 0, frame.depth, value)
    return [replace(frame, depth=depth, confidence=confidence) for depth in (outlier, frame.depth)]


def last_sample_only(frame):
    """The frame with a single valid sample, in its last corner."""
    valid = torch.zeros_like(frame.valid)
    valid[..., -1, -1] = True
    return replace(frame, valid=valid)


def rmse(depth, truth):
    return float((depth - truth).square().mean().sqrt())


def assert_counts_less(name, frames, rows, columns):
    """A sample that is off moves the result there less than half as much if it is doubted.

    Args:
        frames: with the sample trusted, with it doubted, and without the error.
    """
    trusted, doubted, clean = (create(name)(each).depth[..., rows, columns].mean() for each in frames)
    assert abs(doubted - clean) < 0.5 * (trusted - clean)
