"""Gather lone samples of a fine grid on a grid as coarse as their distance, as networks expect.

A network sees planes that were fitted to the samples around each cell. Its sample term reads the samples
where they fall, and its result is drawn to them afterwards, by the image between them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.lone_samples import Cells, cells_of
from primaldepth.methods.drawn import POINTS, SCAN, Drawing, drawn_to_samples
from primaldepth.methods.holes import measured_mask

# Chosen on frames of NYU-Depth v2 with 500 samples each and on rendered scans, see docs/samples.md.
AROUND = 2  # cells on each side whose samples a plane is fitted to
WIDTH, FLAT = 0.65, 0.02  # cells: of the Gauss weights of samples; a slope counts as much as this distance
MISFIT = 1.0  # share of the spread around a plane that counts as noise of its cell
ASSUMED = 0.3  # trust in a background that nothing was measured of


def with_samples(predict: Callable[[Frame, Frame], Prediction], frame: Frame) -> Prediction:
    """Return `predict(frame, samples)` with lone samples gathered; image by image if their distances differ.

    Args:
        predict: makes the prediction of a frame from samples that are dense.
        frame: as it was given.

    Returns:
        The prediction; where samples are lone, it is corrected by what it misses at them.
    """
    if frame.background is None:
        return _drawn(predict, frame, POINTS)
    prediction = _drawn(predict, with_background(frame, frame.background), SCAN)
    return replace(prediction, measured=measured_mask(frame))


def _drawn(predict: Callable[[Frame, Frame], Prediction], frame: Frame, drawing: Drawing) -> Prediction:
    found = cells_of(frame)
    if len({None if cells is None else cells.grid for cells in found}) > 1:
        return Prediction.joined([_drawn(predict, image, drawing) for image in frame.images()])
    cells = found[0]
    if cells is None:
        return predict(frame, frame)
    prediction = predict(frame, planes(frame, cells))
    return replace(prediction, depth=drawn_to_samples(prediction.depth, frame, drawing))


def with_background(frame: Frame, background: Tensor) -> Frame:
    """Return the frame with an assumed background as samples of little trust, where it has none.

    Args:
        frame: with holes.
        background: (B, 1, h, w) its depth, 0 where none is assumed.
    """
    added = (background > 0) & ~frame.valid
    sigma = None
    if frame.sigma is not None:
        typical = [s[v].median() for s, v in zip(frame.sigma, frame.valid, strict=True)]
        sigma = torch.where(added, torch.stack(typical).view(-1, 1, 1, 1), frame.sigma)
    return replace(
        frame,
        depth=torch.where(added, background, frame.depth),
        valid=frame.valid | added,
        confidence=torch.where(added, ASSUMED, frame.trust),
        sigma=sigma,
        background=None,
    )


def gathered(frame: Frame) -> Frame:
    """Return the frame itself; or, if its samples are lone, planes through them on cells of about one each.

    The samples of all images have to have the same cells.

    Args:
        frame: whose images have the same cells.
    """
    cells = cells_of(frame)[0]
    return frame if cells is None else planes(frame, cells)


def averaged(frame: Frame, cells: Cells) -> Frame:
    """Return means of the samples over cells; their noise falls with the number of samples in each.

    Args:
        frame: of any number of images.
        cells: on the grid of its samples.
    """
    depth, some = cells.means(frame.clean_depth(), frame.valid)
    count = cells.sums(frame.valid.to(depth.dtype)).clamp_min(1.0)
    variance = None if frame.sigma is None else cells.means(frame.sigma.square(), frame.valid)[0]
    trust = None if frame.confidence is None else cells.means(frame.confidence, frame.valid)[0]
    return replace(
        frame,
        depth=depth,
        valid=some,
        sigma=None if variance is None else (variance / count).sqrt(),
        confidence=trust,
        sampling="average",
    )


def planes(frame: Frame, cells: Cells) -> Frame:
    """Return the depth of each cell's centre on the plane that fits the samples around it best, by weights.

    Minimises sum_i w_i (a + b x_i + c y_i - d_i)^2 + FLAT sum_i w_i (b^2 + c^2) with Gaussian weights w of
    the distance from the centre. A mean over the cell would be that of where its samples happen to lie, and
    a third of the cells have none.
    """
    total = _moments(_Points.of(frame), cells.grid, len(frame.depth))
    weight = total[0].clamp_min(1e-12)
    x, y, d, xx, xy, yy, xd, yd, dd = total[1:10] / weight
    xx, xy, yy = xx - x * x + FLAT, xy - x * y, yy - y * y + FLAT
    xd, yd, dd = xd - x * d, yd - y * d, dd - d * d
    determinant = xx * yy - xy * xy
    b, c = (yy * xd - xy * yd) / determinant, (xx * yd - xy * xd) / determinant
    spread = (dd - b * xd - c * yd).clamp_min(0.0)
    noise = (total[10] / weight.square() + MISFIT * spread).sqrt()
    maps = torch.stack([d - b * x - c * y, noise, (total[11] / weight).clamp(0.0, 1.0), total[0]])
    depth, sigma, trust, near = maps.to(frame.depth.dtype).view(4, len(frame.depth), 1, *cells.grid)
    return replace(
        frame,
        depth=depth,
        valid=near > math.exp(-0.5 * (1.5 / WIDTH) ** 2),
        sigma=None if frame.sigma is None else sigma,
        confidence=None if frame.confidence is None else trust,
        sampling="average",
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The valid samples of a frame, (N,) each: image, place in [0, 1], depth, variance and confidence."""

    image: Tensor
    y: Tensor
    x: Tensor
    depth: Tensor
    variance: Tensor
    trust: Tensor

    @classmethod
    def of(cls, frame: Frame) -> "_Points":
        image, _, y, x = frame.valid.nonzero(as_tuple=True)
        depth = frame.depth[frame.valid]
        height, width = frame.low_size
        none, every = torch.zeros_like(depth), torch.ones_like(depth)
        variance = none if frame.sigma is None else frame.sigma[frame.valid].square()
        trust = every if frame.confidence is None else frame.confidence[frame.valid]
        return cls(image, (y + 0.5).to(depth) / height, (x + 0.5).to(depth) / width, depth, variance, trust)


def _moments(points: _Points, grid: tuple[int, int], images: int) -> Tensor:
    """Return (12, images * cells): sums of w (1, x, y, d, xx, xy, yy, xd, yd, dd), w^2 variance and w trust.

    Depths are large against their differences, so sums are of 64 bits.
    """
    rows, columns = grid
    y, x = points.y.double() * rows - 0.5, points.x.double() * columns - 0.5
    d = points.depth.double()
    total = d.new_zeros((12, images * rows * columns))
    for down, right in product(range(-AROUND, AROUND + 1), repeat=2):
        row, column = y.round().long() + down, x.round().long() + right
        use = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        v, h, z = (y - row)[use], (x - column)[use], d[use]
        w = torch.exp(-(v * v + h * h) / (2.0 * WIDTH**2)) * points.trust[use].clamp_min(1e-6)
        one = torch.ones_like(z)
        terms = torch.stack([one, h, v, z, h * h, h * v, v * v, h * z, v * z, z * z])
        extra = torch.stack([w * points.variance[use], points.trust[use].double()])
        total.index_add_(
            1, ((points.image * rows + row) * columns + column)[use], w * torch.cat([terms, extra])
        )
    return total
