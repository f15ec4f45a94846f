"""Edges of depth maps and of images as fields that can be compared.

An edge is a complex number m exp(2i a): m in [0, 1] is how clear it is, a the angle of its normal. With the
angle doubled both sides of an edge are the same, whether bright or dark, near or far, and edges across each
other cancel: Re(conj(d) i) = m_d m_i cos(2 (a_d - a_i)). A sum of these over a frame is large where the edges
of depth and image lie on each other, and about 0 where they meet by chance.
"""

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, grid_sample, max_pool2d, pad

NOISES = 4.0  # times the median step, which is noise: smaller steps are no edges
LEAST_STEP, MOST_STEP = 0.01, 0.03  # of the nearer depth: limits of that, whatever the noise
CLEAR = 3.0  # times that: from here on an edge is clear
PLANE = 7  # samples in a row, over which the slope of a surface is taken to be constant
SURROUND = 15  # pixels a side, whose contrast an edge of the image is compared with
FAINT = 0.01  # contrast from pixel to pixel that is not worth looking at
FILLED = 4  # samples from its rim up to which a hole is taken for background
PEAK = 0.7  # of the strongest edge beside it: weaker ones are its slope


def depth_edges(depth: Tensor, valid: Tensor, kind: str) -> Tensor:
    """Return the steps of a depth map as a field, (h, w).

    Inverse depth is linear on planes, so that slopes differ from steps. A step counts if it is larger than
    most of the frame's are, which are noise. Holes are filled from the farther side: beside an edge they are
    background that a camera beside the light or the lens does not see.

    Args:
        depth: (1, 1, h, w).
        valid: (1, 1, h, w) where it is measured.
        kind: "disparity" if it is inverse already.
    """
    inverse = depth if kind == "disparity" else 1.0 / torch.where(valid, depth, 1.0)
    inverse, known = _filled(torch.where(valid, inverse, 0.0), valid)
    steps = torch.cat([_steps(inverse, known), _steps(inverse.mT, known.mT).mT], dim=1)
    step = steps.norm(dim=1, keepdim=True) / max_pool2d(inverse, 3, 1, 1).clamp_min(1e-12)
    usual = float(step[known].median()) if bool(known.any()) else 0.0
    least = min(max(NOISES * usual, LEAST_STEP), MOST_STEP)
    clear = ((step / least - 1.0) / (CLEAR - 1.0)).clamp(0.0, 1.0)
    return _field(steps, clear * (step >= PEAK * max_pool2d(step, 3, 1, 1)))


def _steps(inverse: Tensor, known: Tensor) -> Tensor:
    """Return by how much the neighbours of each sample in its row differ beyond the slope of their surface.

    The slope is a median, which a step nearby leaves as it is.
    """
    rises = torch.where(known[..., 1:] & known[..., :-1], inverse.diff(dim=-1), torch.nan)
    far = PLANE // 2
    slope = pad(rises, (far, far), value=torch.nan).unfold(-1, PLANE, 1).nanmedian(dim=-1).values
    steps = pad((rises - slope).nan_to_num(0.0), (1, 1))
    return steps[..., 1:] + steps[..., :-1]


def image_edges(image: Tensor) -> Tensor:
    """Return the edges of an image, (1, C, H, W) in [0, 1], as a field, (H, W).

    An edge counts by its contrast against that around it, so that a faint one beside a strong one still
    counts; of the colours the one with the most contrast.
    """
    across, down = _slopes(image)
    strongest = (across.square() + down.square()).argmax(dim=1, keepdim=True)
    slopes = torch.cat([across.gather(1, strongest), down.gather(1, strongest)], dim=1)
    power = slopes.square().sum(dim=1, keepdim=True)
    contrast, around = power.sqrt(), local_mean(power, SURROUND).sqrt()
    return _field(slopes, contrast / (contrast + 0.5 * (around + FAINT)))


def detail(field: Tensor, fine: float, coarse: int) -> Tensor:
    """Return the field blurred by `fine` pixels, less its mean over `coarse` pixels.

    Without the mean, a region of edges in one direction does not match every other such region.
    """
    reach = round(3.0 * fine)
    taps = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, dtype=torch.float32) / fine).square())
    taps = taps / taps.sum()
    parts = _parts(field).transpose(0, 1)
    parts = conv2d(parts, taps.view(1, 1, 1, -1), padding=(0, reach))
    parts = conv2d(parts, taps.view(1, 1, -1, 1), padding=(reach, 0)).transpose(0, 1)
    return _whole(parts - local_mean(parts, coarse))[0]


def sampled(field: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the values of a field at places, each (..., n) in its pixels; 0 outside of it."""
    height, width = field.shape
    places = torch.stack([2.0 * x / width - 1.0, 2.0 * y / height - 1.0], dim=-1)
    flat = places.reshape(1, 1, -1, 2)
    return _whole(grid_sample(_parts(field), flat, align_corners=False))[0, 0].view(x.shape)


def _filled(inverse: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    for _ in range(FILLED):
        farthest = -max_pool2d(-torch.where(valid, inverse, torch.inf), 3, 1, 1)
        found = torch.isfinite(farthest)
        inverse = torch.where(valid, inverse, torch.where(found, farthest, 0.0))
        valid = valid | found
    return inverse, valid


def _slopes(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return central differences to the right and down."""
    around = pad(image, (1, 1, 1, 1), mode="replicate")
    across = around[..., 1:-1, 2:] - around[..., 1:-1, :-2]
    down = around[..., 2:, 1:-1] - around[..., :-2, 1:-1]
    return 0.5 * across, 0.5 * down


def _field(slopes: Tensor, clear: Tensor) -> Tensor:
    """Return the field (H, W) of slopes (1, 2, H, W): squaring x + iy doubles the angle."""
    normal = torch.complex(slopes[0, 0], slopes[0, 1])
    return clear[0, 0] * normal.square() / normal.abs().square().clamp_min(1e-20)


def local_mean(image: Tensor, side: int) -> Tensor:
    """Return the mean over `side` x `side` pixels around each, inside of the image; rows, then columns."""
    rows = avg_pool2d(image, (1, side), 1, (0, side // 2), count_include_pad=False)
    return avg_pool2d(rows, (side, 1), 1, (side // 2, 0), count_include_pad=False)


def _parts(field: Tensor) -> Tensor:
    """Return real and imaginary part as channels, (1, 2, H, W)."""
    return torch.view_as_real(field).permute(2, 0, 1)[None]


def _whole(parts: Tensor) -> Tensor:
    """Return the complex image (1, H, W) of real and imaginary part, (1, 2, H, W)."""
    return torch.complex(parts[:, 0].contiguous(), parts[:, 1].contiguous())
