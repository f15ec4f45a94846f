"""What training minimises: functions of the error in units of the benchmark, by name."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, unfold

from primaldepth.core.errors import InputError
from primaldepth.operators.pairwise import Offset

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Error, mask and truth, (B, 1, H, W) in one unit -> mean over the images of each one's penalty of the error.

`masked_mean` makes it. A batch may be shared out to several processes, whose losses are averaged: the mean
over all pixels of the batch would not be the mean of theirs.
"""

LOSSES: dict[str, Loss] = {}


def register_loss(name: str) -> Callable[[Loss], Loss]:
    """Register a loss of one's own under a name, by which recipes can ask for it.

    Args:
        name: that no other loss has.

    Returns:
        A decorator for a function of error, mask and truth.
    """

    def add(loss: Loss) -> Loss:
        if name in LOSSES:
            raise InputError(f"loss '{name}' exists; choose another name")
        LOSSES[name] = loss
        return loss

    return add


def get_loss(name: str) -> Loss:
    """Return the loss of that name.

    Raises:
        InputError: there is none.
    """
    if name not in LOSSES:
        raise InputError(f"loss '{name}' is not one of {', '.join(LOSSES)}")
    return LOSSES[name]


def image_means(values: Tensor, valid: Tensor) -> Tensor:
    """Return the mean of each image where it is valid, (B,); 0 for one that is valid nowhere."""
    total = torch.where(valid, values, 0.0).flatten(1).sum(dim=1)
    return total / valid.expand_as(values).flatten(1).sum(dim=1).clamp_min(1)


def masked_mean(values: Tensor, valid: Tensor) -> Tensor:
    """Return the mean over the images of the mean over the valid pixels of each.

    Args:
        values: (B, 1, H, W).
        valid: (B, 1, H, W).

    Returns:
        One number.

    Example:
        >>> import torch
        >>> from primaldepth.training.losses import masked_mean
        >>> values = torch.tensor([[[[1.0, 3.0]]], [[[5.0, 100.0]]]])
        >>> masked_mean(values, valid=values < 50)  # the mean of 2 and 5
        tensor(3.5000)
    """
    return image_means(values, valid).mean()


@register_loss("l2")
def l2(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of e^2: the square of the benchmark's RMSE."""
    return masked_mean(error.square(), valid)


@register_loss("l1")
def l1(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of |e|."""
    return masked_mean(error.abs(), valid)


@register_loss("huber")
def huber(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of e^2 / 2 up to |e| = 1, then |e| - 1/2."""
    size = error.abs()
    return masked_mean(torch.where(size < 1.0, 0.5 * error.square(), size - 0.5), valid)


@register_loss("charbonnier")
def charbonnier(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of sqrt(e^2 + 0.1^2)."""
    return masked_mean((error.square() + 0.01).sqrt(), valid)


@register_loss("rmse")
def rmse(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean over the images of sqrt(mean of e^2 + 0.01^2): what is reported of each image."""
    return (image_means(error.square(), valid) + 1e-4).sqrt().mean()


@register_loss("edge-l2")
def edge_l2(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return the mean of (1 + 3 m) e^2 with m = 1 where the truth varies by more than 2 within 5x5 pixels."""
    return masked_mean((1.0 + 3.0 * _varies(truth)) * error.square(), valid)


@register_loss("rmse-slopes")
def rmse_slopes(error: Tensor, valid: Tensor, truth: Tensor) -> Tensor:
    """Return `rmse` plus the mean of |e(x) - e(y)| of neighbours off the edges of the truth.

    A pattern of the pixel's size hardly shows in the RMSE, but in every normal. At edges, where the best
    guess of an uncertain place is blurred, it stays out.
    """
    smooth = valid & ~_varies(truth)
    return rmse(error, valid, truth) + _slope(error, smooth, -2) + _slope(error, smooth, -1)


def _slope(error: Tensor, smooth: Tensor, axis: int) -> Tensor:
    """Return the mean of |e(x) - e(y)| over the neighbours along an axis that are both smooth."""
    count = error.shape[axis] - 1
    both = smooth.narrow(axis, 1, count) & smooth.narrow(axis, 0, count)
    return masked_mean(error.diff(dim=axis).abs(), both)


def _varies(truth: Tensor) -> Tensor:
    """Return where the truth varies by more than 2 within 5x5 pixels."""
    return max_pool2d(truth, 5, 1, 2) + max_pool2d(-truth, 5, 1, 2) > 2.0


def affinity_loss(affinities: Tensor, truth: Tensor, valid: Tensor, offsets: tuple[Offset, ...]) -> Tensor:
    """Return the Huber distance (kink at 0.1) of |a| from |u(x) - u(y)| of the truth.

    The mean is over the pairs whose ends both lie inside the image.

    Args:
        affinities: (B, N, H, W) in normalised units.
        truth: (B, 1, H, W) in normalised units.
        valid: (B, 1, H, W).
        offsets: of the N pairs.
    """
    both = valid & (_ends(valid.to(truth.dtype), offsets) > 0)
    gap = (affinities.float().abs() - (truth - _ends(truth, offsets)).abs()).abs() / 0.1
    return masked_mean(torch.where(gap < 1.0, 0.5 * gap.square(), gap - 0.5), both)


def _ends(image: Tensor, offsets: tuple[Offset, ...]) -> Tensor:
    """Return the image at x + d_k, (B, N, H, W), 0 outside; in few calls, since a GPU waits for each."""
    radius = max(max(abs(dy), abs(dx)) for dy, dx in offsets)
    columns = unfold(image, 2 * radius + 1, padding=radius)
    found = columns[:, _taps(offsets, radius, image.device)]
    return found.view(image.shape[0], len(offsets), *image.shape[2:])


@lru_cache(maxsize=8)
def _taps(offsets: tuple[Offset, ...], radius: int, device: torch.device) -> Tensor:
    """Return where `unfold` puts the far end of each pair, kept on the device."""
    places = [(dy + radius) * (2 * radius + 1) + dx + radius for dy, dx in offsets]
    return torch.tensor(places, device=device)


def laplace_loss(error: Tensor, log_scale: Tensor, valid: Tensor) -> Tensor:
    """Return the negative logarithm of Laplace's density, |e| / b + log b: least where b is the mean of |e|.

    Args:
        error: (B, 1, H, W), not differentiated: an estimate must not get worse to be more certain.
        log_scale: (B, 1, H, W) log b in the unit of the error.
        valid: (B, 1, H, W).
    """
    return masked_mean(error.abs() * torch.exp(-log_scale) + log_scale, valid)
