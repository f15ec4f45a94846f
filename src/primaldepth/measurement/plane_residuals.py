"""Variance of samples around small planes, and places where it exceeds that of noise."""

import torch
from torch import Tensor
from torch.nn.functional import unfold

FREEDOM = 6  # nine samples less the three numbers of a plane
_SIDE = 5  # windows on a side that are looked at together
_SHARE = 0.3  # of them lie on surfaces at the least, also beside edges
_QUANTILE = 0.638  # of chi-squared / 6 with 6 degrees of freedom, at _SHARE
_USUAL = 1.2  # factor that chance and curved surfaces come to
_MOST = 4.0


def plane_variance(values: Tensor) -> Tensor:
    """Return the variance s^2 of 3x3 windows around the plane that fits them best: (..., 9) -> (...).

    Args:
        values: (..., 9) of each window, row by row.
    """
    centred = values - values.mean(dim=-1, keepdim=True)
    along = values.new_tensor([-1.0, 0.0, 1.0])
    slopes = torch.stack([along.repeat_interleave(3), along.repeat(3)], dim=1) / 6**0.5
    residual = centred - (centred @ slopes) @ slopes.T
    return residual.square().sum(dim=-1) / FREEDOM


def noisier_places(sigma: Tensor, depth: Tensor, valid: Tensor) -> Tensor:
    """Return a factor of at least 1 on sigma, (1, 1, h, w): above 1 where most windows around are noisier.

    6 s^2 / sigma^2 is chi-squared on surfaces; its 30 % quantile over 25 windows beside each other leaves
    edges aside.

    Args:
        sigma: (1, 1, h, w) that is assumed.
        depth: (1, 1, h, w).
        valid: (1, 1, h, w).
    """
    values, whole = (_around(image, 3, 1) for image in (depth, valid.to(depth.dtype)))
    usable = whole.amin(dim=-1) > 0.5
    ratio = torch.where(usable, plane_variance(values.double()) / sigma.double().square(), 0.0)
    near, there = (_around(image, _SIDE, 3) for image in (ratio, usable.double()))
    factor = (_low_quantile(near, there > 0.5) / _QUANTILE).sqrt() / _USUAL
    return factor.clamp(1.0, _MOST).to(sigma.dtype)


def _around(image: Tensor, side: int, step: int) -> Tensor:
    """Return every `step`-th pixel around each, (1, 1, h, w) -> (1, 1, h, w, side^2); 0 beyond the border."""
    columns = unfold(image, side, dilation=step, padding=step * (side // 2))
    return columns.view(1, side**2, *image.shape[2:]).permute(0, 2, 3, 1)[:, None]


def _low_quantile(values: Tensor, counts: Tensor) -> Tensor:
    """Return the quantile `_SHARE` of the counted values along the last dimension; 0 where none counts."""
    ordered = torch.where(counts, values, torch.inf).sort(dim=-1).values
    place = (_SHARE * (counts.sum(dim=-1) - 1)).round().clamp_min(0).long()
    return torch.where(counts.any(dim=-1), ordered.gather(-1, place[..., None])[..., 0], 0.0)
