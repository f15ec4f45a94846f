"""What changed from one frame of a sequence to the next: nothing, something, or all of it."""

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, max_pool2d

from primaldepth.core.frame import Frame

GUIDE_NOISE = 1.0 / 255.0, 0.05  # in the difference of two guides, at least and at most
_CLEAR = 5.0  # standard deviations of a mean over 3 x 3 pixels
_ONE_SIGN = 0.5  # |mean| over root mean square in 7 x 7 pixels; noise alone exceeds it once in 2000 times
_FEW = 0.003  # of the pixels
_BY_CHANCE = 0.12  # of what is clear within 31 x 31 pixels may have one sign where noise is strong
_STRANGE = 9, 0.6  # side of a window in pixels, |difference| in it over what noise and misplacement explain
_ONE_WAY = 5, 1.8  # the same, for the mean of the difference over the standard deviation of such a mean
_MARGIN = 4  # pixels around what moves by itself
_AGREE = 0.25  # of the samples at least, while the scene goes on
_ALIKE = 0.03, 0.4  # guides of one scene differ by less than the first, or this share of the guide's spread


def something_moved(difference: Tensor) -> bool:
    """Whether the difference of two guides, (1, 1, H, W), is more than noise in more than a few places.

    Noise may be stronger in some places than in others, but its sign changes from pixel to pixel. Where
    something moved, neighbours differ the same way.

    Args:
        difference: (1, 1, H, W).
    """
    clear = mean_over(difference, 3).abs() > _CLEAR / 3.0 * guide_noise(difference)
    level = mean_over(difference.square(), 7).sqrt()
    one_sign = clear & (mean_over(difference, 7).abs() > _ONE_SIGN * level)
    if float(one_sign.double().mean()) <= _FEW:
        return False
    by_chance = _BY_CHANCE * mean_over(clear.double(), 31)
    return bool((one_sign & (mean_over(one_sign.double(), 31) > by_chance)).double().mean() > _FEW)


def moves_by_itself(difference: Tensor, guide: Tensor, misplaced: float) -> Tensor:
    """Return True, (1, 1, H, W), where the guides differ by more than the camera's motion explains.

    Over windows, the difference d is compared with its noise s and with what an error of the motion would do
    at the guide's steps e: mean |d| with s + misplaced mean e, |mean d| with (s + misplaced rms e) / side.
    A margin is added, because a surface that moves hides and uncovers what lies beside it.

    Args:
        difference: (1, 1, H, W) of the guides, after the motion.
        guide: (1, 1, H, W) intensity, now.
        misplaced: pixels by which the motion may be wrong.
    """
    noise, steps = guide_noise(difference), steps_of(guide)
    side, limit = _STRANGE
    moved = mean_over(difference.abs(), side) > limit * (noise + misplaced * mean_over(steps, side))
    side, limit = _ONE_WAY
    deviation = (noise + misplaced * mean_over(steps.square(), side).sqrt()) / side
    moved |= mean_over(difference, side).abs() > limit * deviation
    return max_pool2d(moved.to(difference.dtype), 2 * _MARGIN + 1, 1, _MARGIN) > 0


def is_cut(expected: Tensor, tolerance: Tensor, frame: Frame, difference: Tensor) -> bool:
    """Whether another scene is seen: few samples are as expected, or the guides have nothing in common.

    Args:
        expected: (1, 1, H, W) depth, from the frame before.
        tolerance: (1, 1, H, W) by which a sample may differ from it.
        frame: now.
        difference: (1, 1, H, W) of the guides, after the motion.
    """
    u, limit = (adaptive_avg_pool2d(image, frame.low_size) for image in (expected, tolerance))
    agrees = ((frame.depth - u).abs() <= limit)[frame.valid]
    guide = frame.guide.mean(dim=1, keepdim=True)
    spread = (guide - guide.median()).abs().median()
    strange = difference.abs().median() > torch.clamp(_ALIKE[1] * spread, min=_ALIKE[0])
    return bool(strange) or bool(agrees.double().mean() < _AGREE)


def trust_of(value: Tensor, limit: Tensor | float) -> Tensor:
    """Return min(1, (limit / |value|)^4).

    Args:
        value: (B, C, H, W).
        limit: of |value|, up to which trust is 1.
    """
    return (limit / value.abs().clamp_min(1e-30)).clamp_max(1.0).pow(4)


def guide_noise(difference: Tensor) -> Tensor:
    """Return the standard deviation of the difference of two guides where nothing moved, by its median.

    Args:
        difference: (1, 1, H, W) of two guides.
    """
    return (1.4826 * difference.abs().median()).clamp(*GUIDE_NOISE)


def steps_of(image: Tensor) -> Tensor:
    """Return the largest less the smallest value of each pixel and its neighbours.

    Args:
        image: (B, C, H, W).
    """
    return max_pool2d(image, 3, 1, 1) + max_pool2d(-image, 3, 1, 1)


def mean_over(image: Tensor, side: int) -> Tensor:
    """Return means over windows of side x side, cut at the border.

    Args:
        image: (B, C, H, W).
        side: odd.
    """
    rows = avg_pool2d(image, (side, 1), 1, (side // 2, 0), count_include_pad=False)
    return avg_pool2d(rows, (1, side), 1, (0, side // 2), count_include_pad=False)
