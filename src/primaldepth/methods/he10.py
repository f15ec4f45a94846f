"""Guided filter (He et al., ECCV 2010), normalised by the mask."""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import NotNegative, Positive, Settings
from primaldepth.methods.holes import everywhere
from primaldepth.methods.interpolation import interpolate


class He10Settings(Settings):
    """Windows reach radius (N/n)^growth pixels of the guide to each side; eps is a variance of the guide."""

    radius: Positive = 3.0
    growth: NotNegative = 0.6
    eps: Positive = 1e-4

    def reach(self, frame: Frame) -> tuple[int, int]:
        """Return rows and columns of a window to each side of its centre, each by its own ratio, at least 1.

        Args:
            frame: for its sizes.
        """
        ratios = (m / n for n, m in zip(frame.low_size, frame.high_size, strict=True))
        rows, columns = (max(1, round(self.radius * ratio**self.growth)) for ratio in ratios)
        return rows, columns


@dataclass(frozen=True, slots=True)
class He10:
    """u = mean(a) . I + mean(b), where a . I + b fits the interpolated depth in each window.

    a = (cov(I) + eps)^-1 cov(I, d), b = mean(d) - a . mean(I); all means are weighted by the trust.
    """

    settings: He10Settings = field(default_factory=He10Settings)
    name: str = "he10"

    def __call__(self, frame: Frame) -> Prediction:
        """Fit and apply; where no sample is in reach, the interpolation stays."""
        with torch.no_grad():
            depth, weight = interpolate(frame)
            found, known = guided_filter(
                frame.guide, depth, weight, self.settings.reach(frame), self.settings.eps
            )
            depth = torch.where(known, found, depth)
        return everywhere(depth, frame)


def guided_filter(
    guide: Tensor, depth: Tensor, weight: Tensor, reach: tuple[int, int], eps: float
) -> tuple[Tensor, Tensor]:
    """Return the filtered depth, and whether the pixel's own window has weight, both (B, 1, H, W).

    Computed in double precision, for covariances are differences of large means.

    Args:
        guide: (B, C, H, W).
        depth: (B, 1, H, W).
        weight: (B, 1, H, W) at least 0.
        reach: rows and columns of a window to each side of its centre.
    """
    g, d = guide.double(), depth.double()
    fit = WeightedMean.by(weight.double(), reach)
    mean_g, mean_d = fit(g), fit(d)
    a = solve_symmetric(_covariance(g, mean_g, fit, eps), fit(g * d) - mean_g * mean_d)
    b = mean_d - (a * mean_g).sum(dim=1, keepdim=True)
    average = WeightedMean.by(fit.known.double(), reach)
    mean_a, mean_b = average(a), average(b)
    found = (mean_a * g).sum(dim=1, keepdim=True) + mean_b
    return found.to(depth.dtype), fit.known  # beyond, a fit to far samples would be extrapolated


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """Mean over the window around each pixel, sum w x / sum w; 0 where the window has no weight."""

    weight: Tensor
    total: Tensor
    known: Tensor
    reach: tuple[int, int]

    @classmethod
    def by(cls, weight: Tensor, reach: tuple[int, int]) -> "WeightedMean":
        """Prepare the mean over windows with these weights, (B, 1, H, W), none of them below 0."""
        total = _box(weight, reach)
        known = total > 0
        return cls(weight, torch.where(known, total, 1.0), known, reach)

    def __call__(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> the same shape."""
        return _box(self.weight * x, self.reach) / self.total


def _box(x: Tensor, reach: tuple[int, int]) -> Tensor:
    """Return the mean over the window, 0 outside of the frame. Running sums would carry rounding far away."""
    rows, columns = reach
    x = avg_pool2d(x, (2 * rows + 1, 1), 1, (rows, 0))
    return avg_pool2d(x, (1, 2 * columns + 1), 1, (0, columns))


def _covariance(g: Tensor, mean: Tensor, fit: WeightedMean, eps: float) -> list[list[Tensor]]:
    """Return the upper triangle of cov(g) + eps: row i has its entries i..C, each (B, 1, H, W)."""
    rows = []
    for i in range(int(g.shape[1])):
        entries = fit(g[:, i : i + 1] * g[:, i:]) - mean[:, i : i + 1] * mean[:, i:]
        row = list(entries.unsqueeze(2).unbind(dim=1))
        rows.append([row[0] + eps, *row[1:]])
    return rows


def solve_symmetric(upper: list[list[Tensor]], right: Tensor) -> Tensor:
    """Solve a small positive definite system at every pixel by elimination; (B, C, H, W).

    Args:
        upper: row i has the entries i..C of the matrix, each (B, 1, H, W).
        right: (B, C, H, W).
    """
    size = len(upper)
    rows, r = [list(row) for row in upper], list(right.unsqueeze(2).unbind(dim=1))
    for i in range(size):
        for j in range(i + 1, size):
            factor = rows[i][j - i] / rows[i][0]
            rows[j] = [entry - factor * rows[i][j - i + k] for k, entry in enumerate(rows[j])]
            r[j] = r[j] - factor * r[i]
    for i in reversed(range(size)):
        for k in range(1, size - i):
            r[i] = r[i] - rows[i][k] * r[i + k]
        r[i] = r[i] / rows[i][0]
    return torch.cat(r, dim=1)
