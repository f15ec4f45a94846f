"""The network's sigma set so that it holds: 68 % of the validation errors lie within one of them."""

import math

import torch
from torch import Tensor

from primaldepth.networks import DepthNet
from primaldepth.training.validation import Seen, Validator

ONE_SIGMA = 0.6827
EVERY = 7  # pixels: neighbours say the same


def calibrate(net: DepthNet, validator: Validator) -> dict[str, float]:
    """Scale the network's sigma in place; the factor, and the share of errors within one sigma before."""
    ratios = torch.cat([_ratios(seen) for seen in validator.see(net)])
    if not ratios.numel():
        return {}
    factor = float(ratios.kthvalue(math.ceil(ONE_SIGMA * len(ratios))).values)
    if factor > 0:
        net.scale_sigma(factor)
    return {"sigma factor": factor, "within sigma before": float((ratios <= 1.0).float().mean())}


def _ratios(seen: Seen) -> Tensor:
    """|error| / sigma where the truth is known, thinned out; every frame counts by its pixels."""
    if seen.sigma is None:
        return torch.zeros(0)
    ratio = ((seen.depth - seen.look.truth).abs() / seen.sigma)[seen.look.known][::EVERY]
    return ratio[torch.isfinite(ratio)].float().cpu()
