"""Samples that stand alone on a fine grid, gathered on one as coarse as they are: what networks expect.

A network sees planes that were fitted to the samples around each cell. Its sample term reads the samples
where they fall, and what its result still misses there is spread to the pixels around.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.lone_samples import Cells, cells_of

# Chosen on ten frames of NYU-Depth v2 with 500 samples each, see docs/own-files.md.
AROUND = 2  # cells on each side whose samples a plane is fitted to
WIDTH, FLAT = 0.65, 0.02  # cells: of the Gauss weights of samples; a slope counts as much as this distance
MISFIT = 1.0  # share of the spread around a plane that counts as noise of its cell
REACH = 3  # cells: how far a residual is spread
# Standard deviations of pixels that share a residual: relative, and of [0, 1].
SAME_DEPTH, SAME_COLOUR = 0.05, 0.06
ELSE = 1e-9  # weight of pixels that share neither
AT_ONCE = 2**21  # pairs of a sample and a pixel


def with_samples(predict: Callable[[Frame, Frame], Prediction], frame: Frame) -> Prediction:
    """Call `predict(frame, samples)`, image by image where their samples stand apart differently.

    Args:
        predict: makes the prediction of a frame from samples that are dense.
        frame: as it was given.

    Returns:
        The prediction; where samples are lone, it is corrected by what it misses at them.
    """
    found = cells_of(frame)
    if len({None if cells is None else cells.grid for cells in found}) > 1:
        return Prediction.joined([with_samples(predict, image) for image in frame.images()])
    cells = found[0]
    if cells is None:
        return predict(frame, frame)
    prediction = predict(frame, planes(frame, cells))
    return replace(prediction, depth=drawn_to_samples(prediction.depth, frame, cells))


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


def drawn_to_samples(depth: Tensor, frame: Frame, cells: Cells) -> Tensor:
    """Correct a result by what it misses at the samples, spread to pixels of like depth and colour around.

    u(x) + sum_i w_i(x) r_i / sum_i w_i(x). The weights fall with distance, and with differences of depth and
    colour; r_i = e_i^3 / (e_i^2 + sigma_i^2) of the residual e_i = d_i - u(x_i), so that noise counts for
    less.

    Args:
        depth: (B, 1, H, W) u.
        frame: with samples that stand alone.
        cells: how far apart they stand.
    """
    (height, width), points = frame.high_size, _Points.of(frame)
    y, x = (points.y * height).long(), (points.x * width).long()
    at = (points.image * height + y) * width + x
    flat, colours = depth.flatten(), frame.guide.permute(0, 2, 3, 1).reshape(-1, frame.guide.shape[1])
    e = points.depth - flat[at]
    e = points.trust * e.pow(3) / (e.square() + points.variance).clamp_min(1e-30)
    apart = math.sqrt(height * width / math.prod(cells.grid))
    down, right, near = _disc(int(REACH * apart), apart, depth)
    total, weight = torch.zeros_like(flat), torch.zeros_like(flat)
    count = max(1, AT_ONCE // len(down))
    for first in range(0, len(at), count):
        part = slice(first, first + count)
        row, column = y[part, None] + down, x[part, None] + right
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        index = (points.image[part, None] * height + row) * width + column
        index, own = index[inside], at[part, None].expand_as(inside)[inside]
        w = near.expand_as(inside)[inside] * (_alike(flat, colours, index, own) + ELSE)
        total.index_add_(0, index, w * e[part, None].expand_as(inside)[inside])
        weight.index_add_(0, index, w)
    return depth + (total / weight.clamp_min(1e-30)).view_as(depth)


def _disc(radius: int, apart: float, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (rows, columns, weights) of pixels around a sample; weights fall with the squared distance."""
    side = torch.arange(-radius, radius + 1, device=like.device)
    down, right = (each.flatten() for each in torch.meshgrid(side, side, indexing="ij"))
    distance = (down.square() + right.square()).to(like.dtype).sqrt()
    use = distance <= radius
    return down[use], right[use], (distance[use] / apart + 1 / 12).pow(-2)


def _alike(depth: Tensor, colours: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return weights of pairs of pixels by their depth and colour, 1 to 0."""
    a, b = depth[one], depth[other]
    deeper = (a - b).abs() / torch.maximum(a.abs(), b.abs()).clamp_min(1e-30)
    colour = (colours[one] - colours[other]).abs().mean(dim=1)
    return torch.exp(-0.5 * ((deeper / SAME_DEPTH).square() + (colour / SAME_COLOUR).square()))
