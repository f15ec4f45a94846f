"""Keep a result at its samples: where it leaves one by more than its noise allows, correct it around there.

The correction r_i that each sample needs is spread to the pixels x of the guide's grid by

    c(x) = sum_i w_i(x) r_i / (sum_i w_i(x) + 1 - sum_i h_i(x))
    w_i(x) = h_i(x) exp(-|g(x) - g_i|^2 / 2 s^2)

where h_i is the hat function that is 1 at sample i and 0 from the next samples on, g the guide, and r_i = 0
for samples that are met. So c is r_i at sample i and 0 at its neighbours that are met, changes linearly
between them on one surface of the image, and jumps where the image does: no pixel stands alone.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.lone_samples import cells_of
from primaldepth.measurement.neighbours import neighbour_counts
from primaldepth.measurement.residual import least_residual
from primaldepth.measurement.spikes import ALIKE
from primaldepth.sensors.noise import noise_map

WITNESSES = 3  # neighbours that confirm a sample: what fewer do may be noise, or a flying pixel
COLOURS_ALIKE = 0.1  # standard deviation of the guide's values on one surface
INSIDE = 0.9  # of the limit: where a correction aims, so that a few rounds suffice
ROUNDS = 12
RESOLUTION = 1e-5  # of the depth: less than this is no departure, but the rounding of 32-bit numbers
PIXELS_AT_ONCE = 2**22  # of the hats of samples that are spread together


def samples_kept(prediction: Prediction, frame: Frame, sigmas: float) -> tuple[Prediction, Tensor]:
    """Correct the prediction where it departs from confirmed samples by more than `sigmas` of their noise.

    Args:
        prediction: of any method; its other maps stay as they are.
        frame: what it was made of; see `confirmed` for the samples that are kept.
        sigmas: how many standard deviations of the noise a result may depart from a sample.

    Returns:
        The corrected prediction, and (B,) how many samples of each image it had left.
    """
    found = [
        _image_kept(prediction.image(index), image, sigmas) for index, image in enumerate(frame.images())
    ]
    counts = torch.tensor([count for _, count in found])
    if not int(counts.sum()):
        return prediction, counts
    return replace(prediction, depth=torch.cat([depth for depth, _ in found])), counts


def overruled(prediction: Prediction, frame: Frame, sigmas: float) -> int:
    """Return the number of confirmed samples from which a prediction departs by more than their noise allows.

    Args:
        prediction: of any method.
        frame: what it was made of.
        sigmas: as of `samples_kept`.
    """
    off = least_residual(prediction.depth, frame).to(frame.depth.dtype)
    return int((confirmed(frame) & (off.abs() > limits(frame, sigmas))).sum())


def confirmed(frame: Frame) -> Tensor:
    """Return True for trusted samples that `WITNESSES` neighbours lie within `ALIKE` of, (B, 1, h, w).

    Lone samples on a fine grid have as neighbours the means of the cells around theirs.
    """
    found = []
    for image in frame.images():
        cells, depth, trusted = cells_of(image)[0], image.clean_depth(), image.trusted
        if cells is not None:
            depth, trusted = cells.means(depth, trusted)
        enough = neighbour_counts(depth, trusted, ALIKE)[0] >= WITNESSES
        found.append(image.trusted & (enough if cells is None else cells.at_pixels(enough)))
    return torch.cat(found)


def limits(frame: Frame, sigmas: float) -> Tensor:
    """Return how far a result may depart from each sample, (B, 1, h, w).

    Args:
        frame: for its noise.
        sigmas: as of `samples_kept`.
    """
    sigma = noise_map("auto", frame.depth, frame.valid) if frame.sigma is None else frame.sigma
    return torch.maximum(sigmas * sigma, RESOLUTION * frame.clean_depth().abs())


def _image_kept(prediction: Prediction, frame: Frame, sigmas: float) -> tuple[Tensor, int]:
    """Correct one image until no sample is left, in at most `ROUNDS` rounds; count those that were."""
    u, most, kept, count = prediction.depth, limits(frame, sigmas), confirmed(frame), 0
    for number in range(ROUNDS):
        off = least_residual(u, frame).to(u.dtype)
        left = kept & (off.abs() > most)
        if not bool(left.any()):
            break
        count = int(left.sum()) if number == 0 else count
        goal = off.clamp(-INSIDE * most, INSIDE * most)
        u = u + _spread(torch.where(left, goal - off, 0.0), frame)
    return u, count


def _spread(corrections: Tensor, frame: Frame) -> Tensor:
    """Return c for the corrections r, (1, 1, h, w) -> (1, 1, H, W)."""
    reach = _reach(frame)
    active = _around(corrections != 0, reach, frame) & frame.valid
    size, guide = frame.high_size, frame.guide[0].flatten(1)
    weighted, weights, hats = corrections.new_zeros((3, size[0] * size[1]))
    at_once = max(1, PIXELS_AT_ONCE // math.prod(math.ceil(2 * each) + 1 for each in reach))
    for chosen in torch.split(active[0, 0].nonzero(), at_once):
        pixels, hat = _hats(chosen, frame, reach)
        inside = hat.argmax(dim=1, keepdim=True)  # the pixel nearest to the sample
        colours = guide[:, pixels] - guide[:, pixels.gather(1, inside)]
        weight = hat * torch.exp(-0.5 * colours.square().mean(0) / COLOURS_ALIKE**2)
        r = corrections[0, 0, chosen[:, 0], chosen[:, 1]][:, None]
        for total, part in ((weighted, weight * r), (weights, weight), (hats, hat)):
            total.index_add_(0, pixels.flatten(), part.flatten())
    rest = (1.0 - hats).clamp_min(1e-6)
    found: Tensor = weighted / (weights + rest)
    return found.view(1, 1, *size)


def _reach(frame: Frame) -> tuple[float, float]:
    """Return the distance between samples in pixels of the guide, down and across."""
    cells = cells_of(frame)[0]
    grid = frame.low_size if cells is None else cells.grid
    return frame.high_size[0] / grid[0], frame.high_size[1] / grid[1]


def _around(mask: Tensor, reach: tuple[float, float], frame: Frame) -> Tensor:
    """Return True for the samples whose hats meet those of the samples in the mask."""
    steps = [
        math.ceil(2 * r * low / high) - 1
        for r, low, high in zip(reach, frame.low_size, frame.high_size, strict=True)
    ]
    window = (2 * steps[0] + 1, 2 * steps[1] + 1)
    return max_pool2d(mask.float(), window, stride=1, padding=(steps[0], steps[1])) > 0


def _hats(chosen: Tensor, frame: Frame, reach: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Return the pixels that the hats of samples (N, 2) cover, as flat numbers (N, T), and h there."""
    parts = []
    for axis in range(2):
        low, high = frame.low_size[axis], frame.high_size[axis]
        centre = (chosen[:, axis] + 0.5) * (high / low) - 0.5
        taps = torch.arange(math.ceil(2 * reach[axis]) + 1, device=chosen.device)
        place = (centre - reach[axis]).floor().long()[:, None] + taps
        half = 0.5 * reach[axis]
        ends = half - 0.5, high - half - 0.5  # beyond them the outermost hats are flat
        away = place.clamp(*ends) - centre.clamp(*ends)[:, None]
        hat = (1.0 - away.abs() / reach[axis]).clamp_min(0.0)
        parts.append((place.clamp(0, high - 1), torch.where((place >= 0) & (place < high), hat, 0.0)))
    (rows, down), (columns, across) = parts
    pixels = rows[:, :, None] * frame.high_size[1] + columns[:, None, :]
    return pixels.flatten(1), (down[:, :, None] * across[:, None, :]).flatten(1).to(frame.depth.dtype)
