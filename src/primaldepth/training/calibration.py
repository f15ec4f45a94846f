"""Scale the network's sigma so that 68 % of the validation errors lie within one sigma."""

import math
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.networks import DepthNet
from primaldepth.training.validation import ValidationResult, Validator, deciding

ONE_SIGMA = 0.6827
EVERY = 7  # pixels: errors of neighbours are alike


def calibrate(net: DepthNet, validator: Validator) -> dict[str, float]:
    """Scale the network's sigma in place so that it holds on the frames that weights are chosen by.

    Every group of frames has its own factor, and the network gets their geometric mean: so a group with
    larger images, or with more of them, does not decide for the others.

    Args:
        net: gives sigma.
        validator: has the frames.

    Returns:
        The factor, and the share of errors within one sigma before; empty if nothing was validated.
    """
    groups: dict[str, list[Tensor]] = {}
    for result in validator.results(net):
        groups.setdefault(result.frame.group, []).append(_ratios(result))
    ratios = [one for one in (torch.cat(groups[name]) for name in deciding(groups)) if one.numel()]
    if not ratios:
        return {}
    factor = math.prod(map(_factor, ratios)) ** (1.0 / len(ratios))
    if factor > 0:
        net.scale_sigma(factor)
    return {"sigma factor": factor, "within sigma before": fmean(map(_within, ratios))}


def _factor(ratios: Tensor) -> float:
    """Return the factor on sigma with which ONE_SIGMA of the errors lie within it."""
    return float(ratios.kthvalue(math.ceil(ONE_SIGMA * len(ratios))).values)


def _within(ratios: Tensor) -> float:
    return float((ratios <= 1.0).float().mean())


def _ratios(result: ValidationResult) -> Tensor:
    """Return |error| / sigma where the truth is known, thinned out; every frame counts by its pixels."""
    if result.sigma is None:
        return torch.zeros(0)
    case = result.frame.case
    ratio = ((result.depth - case.truth).abs() / result.sigma)[case.known][::EVERY]
    return ratio[torch.isfinite(ratio)].float().cpu()
