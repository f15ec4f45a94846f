"""Errors of a depth map, and counts of samples that it misplaces. Pure functions, one image at a time.

`depth`, `truth` and `known` are (1, 1, H, W); errors, over the pixels where the truth is known, are summed in
double precision.

Example:
    >>> import torch
    >>> from primaldepth.evaluation.metrics import mae, rmse
    >>> depth, truth = torch.tensor([1.0, 2.0, 9.0]), torch.tensor([1.0, 4.0, 0.0])
    >>> rmse(depth, truth, known=truth > 0)  # the mean of 0 and 4
    1.4142135623730951
    >>> mae(depth, truth, known=truth > 0)
    1.0
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from primaldepth.core.frame import Frame
from primaldepth.measurement.neighbours import neighbour_counts
from primaldepth.measurement.residual import departure

PER = 10_000  # rates are counts among so many samples


def _errors(depth: Tensor, truth: Tensor, known: Tensor) -> Tensor:
    return _at(depth, known) - _at(truth, known)


def _at(values: Tensor, known: Tensor) -> Tensor:
    if not bool(known.any()):
        raise ValueError("no pixel with known truth")
    return values[known].double()


def rmse(depth: Tensor, truth: Tensor, known: Tensor) -> float:
    """Return sqrt(mean (d - t)^2), in the unit of the depth.

    Args:
        depth: d, of any shape.
        truth: t, in the same unit.
        known: True where the truth is known.
    """
    return float(_errors(depth, truth, known).square().mean().sqrt())


def mae(depth: Tensor, truth: Tensor, known: Tensor) -> float:
    """Return the mean of |d - t|, in the unit of the depth.

    Args:
        depth: d, of any shape.
        truth: t, in the same unit.
        known: True where the truth is known.
    """
    return float(_errors(depth, truth, known).abs().mean())


def bad_pixels(depth: Tensor, truth: Tensor, known: Tensor, threshold: float) -> float:
    """Return the share of pixels with |d - t| > threshold, in [0, 1].

    Args:
        depth: d, of any shape.
        truth: t, in the same unit.
        known: True where the truth is known.
        threshold: in that unit.
    """
    return float((_errors(depth, truth, known).abs() > threshold).double().mean())


def abs_rel(depth: Tensor, truth: Tensor, known: Tensor) -> float:
    """Return the mean of |d - t| / t, without unit.

    Args:
        depth: d, of any shape.
        truth: t, in the same unit; above 0 where it is known.
        known: True where the truth is known.
    """
    return float((_errors(depth, truth, known).abs() / _positive(truth, known)).mean())


def delta1(depth: Tensor, truth: Tensor, known: Tensor, ratio: float = 1.25) -> float:
    """Return the share of pixels with max(d / t, t / d) < ratio, in [0, 1]; d <= 0 is outside.

    Args:
        depth: d, of any shape.
        truth: t, in the same unit; above 0 where it is known.
        known: True where the truth is known.
        ratio: above 1.
    """
    d, t = _at(depth, known), _positive(truth, known)
    return float(((d > 0) & (d < ratio * t) & (t < ratio * d)).double().mean())


def _positive(truth: Tensor, known: Tensor) -> Tensor:
    t = _at(truth, known)
    if not bool((t > 0).all()):
        raise ValueError("truth is not positive at a known pixel; ratios need depths > 0")
    return t


def edge_pixels(depth: Tensor, known: Tensor, step: float) -> Tensor:
    """Return True, (1, 1, H, W), for both of two neighbours in a row or column with |d - d'| > step.

    Pairs with a pixel that is not known are no edges: nobody knows whether the surface goes on.

    Args:
        depth: d, (1, 1, H, W).
        known: (1, 1, H, W) where it is known.
        step: in the unit of the depth.
    """
    found = torch.zeros_like(known)
    for dim in (-2, -1):
        n = depth.shape[dim] - 1
        parts = [slice(None)] * depth.ndim
        here, there = list(parts), list(parts)
        here[dim], there[dim] = slice(0, n), slice(1, n + 1)
        a, b = tuple(here), tuple(there)
        jump = ((depth[a] - depth[b]).abs() > step) & known[a] & known[b]
        found[a] |= jump
        found[b] |= jump
    return found


def near(pixels: Tensor, radius: int) -> Tensor:
    """Return a mask grown by `radius` rows and columns."""
    return max_pool2d(pixels.float(), 2 * radius + 1, 1, radius) > 0


def edge_rmse(depth: Tensor, truth: Tensor, known: Tensor, step: float, radius: int) -> float | None:
    """Return the RMSE near edges of the truth; None if there is no edge.

    Args:
        depth: (1, 1, H, W).
        truth: (1, 1, H, W).
        known: (1, 1, H, W) where the truth is known.
        step: of an edge, see `edge_pixels`.
        radius: rows and columns that are near.
    """
    band = near(edge_pixels(truth, known, step), radius) & known
    return rmse(depth, truth, band) if bool(band.any()) else None


def boundary_f1(depth: Tensor, truth: Tensor, known: Tensor, step: float, tolerance: int) -> float:
    """Return 2 P R / (P + R) of the edges of the depth against those of the truth, in [0, 1].

    P is the share of the depth's edge pixels within `tolerance` pixels of one of the truth, R the share of
    the truth's within `tolerance` of one of the depth. Without any edge in either it is 1, in one of them 0.

    Args:
        depth: (1, 1, H, W).
        truth: (1, 1, H, W).
        known: (1, 1, H, W) where the truth is known.
        step: of an edge, see `edge_pixels`.
        tolerance: in rows and columns.
    """
    ours, theirs = edge_pixels(depth, known, step), edge_pixels(truth, known, step)
    if not bool(ours.any() | theirs.any()):
        return 1.0
    if not bool(ours.any() & theirs.any()):
        return 0.0
    precision = float(near(theirs, tolerance)[ours].double().mean())
    recall = float(near(ours, tolerance)[theirs].double().mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def sensor_residual(depth: Tensor, frame: Frame) -> float:
    """Return sqrt(mean ((A d - f) / sigma)^2) over the trusted samples f, in standard deviations of noise.

    A is how the frame's samples were taken, averages where that is not known. About 1 says that the depth
    explains the samples up to their noise; a depth that keeps the noise has less, one that has left the
    samples has more.

    Args:
        depth: d, (1, 1, H, W).
        frame: has the samples and their sigma.

    Raises:
        ValueError: a trusted sample has no standard deviation above 0.
    """
    known = frame if frame.sampling else replace(frame, sampling="average")
    found = departure(depth, known).sigmas
    if found is None:
        raise ValueError("the residual needs a standard deviation > 0 for every trusted sample")
    return found


def tolerant_errors(depth: Tensor, truth: Tensor, known: Tensor, tolerance: int) -> Tensor:
    """Return the least |d(x) - t(y)| over known y within `tolerance` rows and columns of x, (1, 1, H, W).

    They forgive a result whose edges lie elsewhere than those of the truth by up to `tolerance` pixels. They
    are infinite where no pixel that near is known.

    Args:
        depth: (1, 1, H, W).
        truth: (1, 1, H, W).
        known: (1, 1, H, W) where the truth is known.
        tolerance: in rows and columns.
    """
    height, width = depth.shape[2:]
    around = pad(torch.where(known, truth, torch.inf), (tolerance,) * 4, value=torch.inf)
    least = torch.full_like(depth, torch.inf)
    for dy in range(2 * tolerance + 1):
        for dx in range(2 * tolerance + 1):
            other = around[:, :, dy : dy + height, dx : dx + width]
            torch.minimum(least, (depth - other).abs(), out=least)
    return least


def coverage(depth: Tensor, sigma: Tensor, truth: Tensor, known: Tensor) -> float:
    """Return the share of pixels with |d - t| <= sigma, in [0, 1]; 0.68 if sigma is right.

    Args:
        depth: d, of any shape.
        sigma: in the same unit.
        truth: t, in the same unit.
        known: True where the truth is known.
    """
    return float((_errors(depth, truth, known).abs() <= _at(sigma, known)).double().mean())


def surface_samples(values: Tensor, valid: Tensor, same: float, least: int = 3) -> Tensor:
    """Return True for samples of a surface: `least` neighbours or more are equal, all others are holes.

    Args:
        values: (1, 1, h, w), 0 where not valid.
        valid: (1, 1, h, w).
        same: relative difference up to which two samples are equal.
        least: of the eight neighbours.
    """
    equal, holes = neighbour_counts(values, valid, same)
    return valid & (equal >= least) & (equal + holes == 8)


def equal_samples(values: Tensor, valid: Tensor, same: float) -> Tensor:
    """Return True for samples whose eight neighbours are all measured and equal to it."""
    return surface_samples(values, valid, same, least=8)


def misplaced(result: Tensor, values: Tensor, by: float, *, disparities: bool) -> tuple[Tensor, Tensor]:
    """Return where the result is more than `by` farther than the values, and where it is as much nearer.

    Depth d' is farther than d if d' > (1 + by) d, and nearer if d' < (1 - by) d. Disparities count as
    inverse depths.
    """
    if disparities:
        return result * (1.0 + by) < values, result * (1.0 - by) > values
    return result > (1.0 + by) * values, result < (1.0 - by) * values


def rate(found: Tensor, among: Tensor) -> float | None:
    """Return how many of 10,000 samples of `among` are in `found`; None if there is no such sample."""
    count = int(among.sum())
    return PER * int((found & among).sum()) / count if count else None


def geometric_mean(values: list[float]) -> float:
    """Return exp(mean(log v)): every scene and scale counts by its ratio, not its size.

    Args:
        values: v, each above 0.

    Example:
        >>> from primaldepth.evaluation.metrics import geometric_mean
        >>> round(geometric_mean([1.0, 4.0]), 6)
        2.0
    """
    return float(torch.tensor(values, dtype=torch.float64).log().mean().exp())
