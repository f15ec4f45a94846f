"""Complete maps with little noise: the mean of a network's result and of `nlh-l2`, brought to the samples.

Both nearly reproduce such samples. What they put between them is wrong in different places, so that the mean
of the two has a smaller error than either. The share of `nlh-l2` is

    0.6 / (1 + (s / 12)^2) / (1 + (r / 0.05)^2),

s the pixels per sample along one side, r the noise over half the range of the depth: chosen by the noise-free
sets at x2 to x16, with and without noise. Only complete maps of averages over pixels are treated so, not what
depth cameras give: beside their holes the network is better alone, and at edges between point samples the
mean of two positions of an edge would be a depth where there is no surface.

The iterations of both end before the samples d are met. The result u is the point between the mean v and the
samples that is most likely if v is off by S, the network's uncertainty, and d by sigma, A the average:

    u = argmin_u  sum (u - v)^2 / S^2 + sum (A u - d)^2 / sigma^2
      = v + S^2 A' (A S^2 A' + sigma^2)^-1 (d - A v)

A map of the guide's size, where A is the identity, is treated so as well.
"""

from dataclasses import replace

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.residual import residual
from primaldepth.methods.network_inputs import sampling_operator
from primaldepth.methods.variational import DEFAULTS, Variational, sample_distances
from primaldepth.networks.normalisation import Scaling, relative_sigma
from primaldepth.operators.sampling import resample
from primaldepth.variational.conjugate_gradients import conjugate_gradients

CLASSICAL = "nlh-l2"
LARGEST_SHARE, HALVING_SCALE, HALVING_NOISE = 0.6, 12.0, 0.05
LEAST_SHARE = 0.1  # not worth the time
LEAST_UNCERTAINTY = 0.01  # of half the range: else few pixels with a large S would take all of a correction
LEAST_SIGMA = 1e-4  # of half the range: single precision does not reach further
ITERATIONS = 24  # of conjugate gradients; with 8 the result is worse than before


def refined(found: Prediction, frame: Frame, scaling: Scaling) -> Prediction:
    """Return a network's prediction of a complete map with little noise, averaged with `nlh-l2` and fitted.

    Args:
        found: of the network.
        frame: that it was made from.
        scaling: of the frame's depth.

    Returns:
        The improved prediction, or `found` itself for all other frames.
    """
    if not _has_averages(frame):  # most frames of cameras: nothing is computed for them
        return found
    return with_samples_met(with_classical(found, frame, scaling), frame, scaling)


def with_samples_met(found: Prediction, frame: Frame, scaling: Scaling) -> Prediction:
    """Return the most likely depth u between a prediction v of uncertainty S and the samples of the frame.

    It is `found` itself where no map is complete, averaged and of little noise.

    Args:
        found: v and S.
        frame: the samples d.
        scaling: of the frame's depth.
    """
    noise = relative_noise(frame, scaling)
    chosen = _complete_averages(frame) & (noise < HALVING_NOISE)
    if found.sigma is None or not bool(chosen.any()):
        return found
    prior = torch.maximum(found.sigma, LEAST_UNCERTAINTY * scaling.spread).square()
    sigma = torch.maximum(relative_sigma(frame, scaling), noise.new_tensor(LEAST_SIGMA)) * scaling.spread
    off = -residual(found.depth, frame, "average").to(found.depth.dtype)
    met = found.depth + _most_likely(off, prior, sigma.square())
    return replace(found, depth=torch.where(chosen, met, found.depth))


def _most_likely(off: Tensor, prior: Tensor, noise: Tensor) -> Tensor:
    """Return u - v (B, 1, H, W) for d - A v (B, 1, h, w) and the variances S^2 of v and sigma^2 of d."""
    high, low = prior.shape[2:], off.shape[2:]
    if high == low:
        return prior / (prior + noise) * off
    A = sampling_operator((high[0], high[1]), (low[0], low[1]), "average")
    weights = conjugate_gradients(
        lambda x: A.forward(prior * A.adjoint(x)) + noise * x,
        off,
        torch.zeros_like(off),
        diagonal=resample(prior, (low[0], low[1]), "area") * low.numel() / high.numel() + noise,
        iterations=ITERATIONS,
    ).u
    return prior * A.adjoint(weights)


def with_classical(found: Prediction, frame: Frame, scaling: Scaling) -> Prediction:
    """Return the mean of a network's prediction and of the minimiser of `nlh-l2`, by the share of the latter.

    It is `found` itself if no share is worth computing.
    """
    share = classical_share(frame, scaling)
    if not bool(share.any()):
        return found
    other = Variational(CLASSICAL, DEFAULTS[CLASSICAL])(frame).depth
    info = {**found.info, "classical_share": [round(float(each), 3) for each in share]}
    return replace(found, depth=torch.lerp(found.depth, other, share), info=info)


def classical_share(frame: Frame, scaling: Scaling) -> Tensor:
    """Return the share of the classical solution for each image of the frame, (B, 1, 1, 1) in [0, 0.6]."""
    if frame.low_size == frame.high_size:
        return torch.zeros_like(scaling.spread)
    scale = torch.tensor(sample_distances(frame)).view(-1, 1, 1, 1).to(scaling.spread)
    noise = relative_noise(frame, scaling)
    share = LARGEST_SHARE / (1.0 + (scale / HALVING_SCALE) ** 2) / (1.0 + (noise / HALVING_NOISE) ** 2)
    return torch.where(_complete_averages(frame) & (share >= LEAST_SHARE), share, 0.0)


def relative_noise(frame: Frame, scaling: Scaling) -> Tensor:
    """Return r, the median noise over half the range of the depth, for each image, (B, 1, 1, 1)."""
    sigmas = zip(relative_sigma(frame, scaling), frame.valid, strict=True)
    return torch.stack([sigma[valid].median() for sigma, valid in sigmas]).view(-1, 1, 1, 1)


def _complete_averages(frame: Frame) -> Tensor:
    """Return for each image whether its map is complete and of averages over pixels, (B, 1, 1, 1)."""
    return frame.valid.flatten(1).all(dim=1).view(-1, 1, 1, 1) & _has_averages(frame)


def _has_averages(frame: Frame) -> bool:
    """Return whether the samples are averages over their pixels, as seen from the guide's place."""
    return (frame.sampling == "average" or frame.low_size == frame.high_size) and not frame.registered
