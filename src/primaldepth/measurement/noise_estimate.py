"""Estimate the noise of a depth map from the map alone, by the residuals of small planes."""

import math

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.measurement.lone_samples import Cells, lone_samples
from primaldepth.measurement.plane_residuals import FREEDOM, noisier_places, plane_variance

POWERS = (-1.0, 0.0, 1.0, 2.0)  # disparities; constant; relative; triangulation
_STEP = 0.1  # of log variance: 5 % of sigma
_BINS = 300
_MAX_WINDOWS = 2**14
_MIN_WINDOWS = 16  # fewer cannot tell a floor from an edge
_ROUNDING = 1e-7  # of the depth: what float32 can resolve
_BLOCK = 2**18  # pixels
_TOGETHER = 4  # samples a side whose mean shows whether their noise is independent
_LEAST_CELLS = 48  # a side, and as many squared with samples: fewer say too little
_INDEPENDENT = 2.0  # independent noise comes to 0.8 to 1.2; below 0.3 % of the depth edges add to it
_STRAY = 1e-6  # density of residuals below the floor
_FALLS = (0.0, 2.0)  # where noise hides most of them, few edges stand far above it


def local_mean(depth: Tensor, valid: Tensor, size: int = 5) -> Tensor:
    """Return the mean over the valid samples of a size x size window; 0 where there is none.

    Args:
        depth: (B, 1, h, w).
        valid: (B, 1, h, w).
        size: side of the window in samples, odd.
    """
    mask = valid.to(depth.dtype)
    total = avg_pool2d(torch.where(valid, depth, 0.0), size, 1, size // 2)
    weight = avg_pool2d(mask, size, 1, size // 2)
    return torch.where(weight > 0, total / weight.clamp_min(1e-12), 0.0)


def estimate_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Estimate sigma(d) = a d^p of each image, with p in -1, 0, 1, 2, by maximum likelihood.

    Every window of 3x3 valid samples gives the variance s^2 of its residuals from a plane. On a surface
    6 s^2 / sigma^2 is chi-squared with 6 degrees of freedom; on edges and curves it is that times a factor
    e^u, with u from 0 to a span T of density ~ e^(-c u / T), c = 0 or 2. Together p, a and c maximise the
    likelihood of that mixture. d is a local median; residuals below the step of the stored numbers count as
    the step's own, step / sqrt 12. Noise that neighbours share counts as independent noise with the same
    effect on means. Lone samples have no such windows: means over cells with about one of them
    each take their place, and their noise may be larger in some places, as that of time of flight on dark
    things and in corners.

    Args:
        depth: (B, 1, h, w) samples in any unit.
        valid: (B, 1, h, w).

    Returns:
        (B, 1, h, w) in the unit of the depth.

    Raises:
        InputError: the depth has another shape.
    """
    if depth.ndim != 4 or depth.shape[1] != 1:
        raise InputError("depth", f"shape {tuple(depth.shape)}, expected (B, 1, h, w)")
    images = zip(depth.chunk(len(depth)), valid.chunk(len(depth)), strict=True)
    return torch.cat([_of_samples(*each) for each in images])


def noise_of(frame: Frame) -> Tensor:
    """Return the noise of every sample of a frame, (B, 1, h, w): as given, else estimated once.

    Args:
        frame: whose noise is asked for.
    """
    if frame.sigma is not None:
        return frame.sigma
    if "sigma" not in frame.found:
        frame.found["sigma"] = estimate_sigma(frame.depth, frame.valid)
    sigma: Tensor = frame.found["sigma"]
    return sigma


def _of_samples(depth: Tensor, valid: Tensor) -> Tensor:
    """Estimate sigma of one image (1, 1, h, w), from its samples or, where those are lone, from cells."""
    cells = lone_samples(valid)
    if cells is None:
        sigma = _of_image(depth, valid)
        return sigma * _correlation(sigma, depth, valid)
    means = cells.means(depth, valid)
    sigma = _of_image(*means)
    return cells.at_pixels(sigma * noisier_places(sigma, *means))


def _correlation(sigma: Tensor, depth: Tensor, valid: Tensor) -> float:
    """Return the factor on sigma for noise that neighbouring samples share, from means over 4x4 samples.

    Cameras that smooth their maps, or enlarge them, leave several times as much.
    """
    cells = Cells.over(valid, _TOGETHER)
    full = cells.sums(valid.to(depth.dtype)) >= 0.75 * _TOGETHER**2
    if min(cells.grid) < _LEAST_CELLS or int(full.sum()) < _LEAST_CELLS**2:
        return 1.0
    left = _of_image(cells.means(depth, valid)[0], full)[full].median() * _TOGETHER
    factor = float(left / sigma[valid].median().clamp_min(1e-30))
    return factor if factor > _INDEPENDENT else 1.0


def _of_image(depth: Tensor, valid: Tensor) -> Tensor:
    """Estimate sigma of one dense image (1, 1, h, w)."""
    variance, mean, step = _plane_residuals(depth[0, 0], valid[0, 0])
    if variance.numel() < _MIN_WINDOWS:
        return _second_difference_sigma(depth, valid).expand_as(depth).contiguous()
    middle = mean.abs().median().clamp_min(1e-30)
    floor = torch.maximum(step**2 / 12.0, (_ROUNDING * middle) ** 2)
    scale, power = _fit(torch.maximum(variance, floor).log(), _relative(mean, middle).log())
    typical = max(math.exp(0.5 * scale), float(step) / 12**0.5)
    if power == 0.0:
        return torch.full_like(depth, typical)
    return typical * _relative(_surface(depth, valid), middle.to(depth)) ** power


def _surface(depth: Tensor, valid: Tensor) -> Tensor:
    """Return the median of 3x3 medians of the valid samples: little noise, no depth between two surfaces."""
    once = _median(torch.where(valid, depth, torch.nan))
    return torch.nan_to_num(_median(once), nan=0.0)


def _median(image: Tensor) -> Tensor:
    """Return the 3x3 median of (1, 1, h, w), NaN left out; in blocks of rows, since it takes nine copies."""
    padded = pad(image, (1, 1, 1, 1), value=torch.nan)
    height, width = image.shape[2:]
    rows = max(1, _BLOCK // width)
    blocks = [padded[:, :, top : min(top + rows, height) + 2] for top in range(0, height, rows)]
    parts = [block.unfold(2, 3, 1).unfold(3, 3, 1).flatten(4).nanmedian(dim=4).values for block in blocks]
    return torch.cat(parts, dim=2)


def _relative(depth: Tensor, middle: Tensor) -> Tensor:
    return (depth.abs() / middle).clamp(0.05, 20.0)


def _plane_residuals(image: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return s^2 and mean depth of windows without holes (at most 2^14), and the smallest stored step."""
    if min(image.shape) < 3:
        none = torch.zeros(0, dtype=torch.float64, device=image.device)
        return none, none, none.new_zeros(())
    stride = max(1, math.ceil(math.sqrt(image.numel() / _MAX_WINDOWS)))
    inside = mask.unfold(0, 3, stride).unfold(1, 3, stride).flatten(2).all(dim=2)
    values = image.unfold(0, 3, stride).unfold(1, 3, stride)[inside].flatten(1).double()
    return plane_variance(values), values.mean(dim=1), _smallest_step(values)


def _smallest_step(values: Tensor) -> Tensor:
    """Return the smallest difference of stored numbers (1 mm, a grey level); nearly 0 for floats."""
    gaps = values.flatten().sort().values.diff()
    gaps = gaps[gaps > 0]
    return gaps.min() if gaps.numel() >= _MIN_WINDOWS else values.new_zeros(())


def _fit(log_variance: Tensor, log_depth: Tensor) -> tuple[float, float]:
    """Return (log a^2, p) with the largest likelihood over the powers p."""
    likelihood, scale = _best_scales(torch.stack([log_variance - 2.0 * p * log_depth for p in POWERS]))
    best = int(likelihood.argmax())
    return float(scale[best]), POWERS[best]


def _best_scales(logs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean log likelihood of the best scale on a grid, and log a^2 of it, from histograms.

    The host waits for the device twice, for the ends of the grids and for the sizes that follow.

    Args:
        logs: (P, n) log variance of each window, for each of P powers.

    Returns:
        (P,) and (P,).
    """
    ends = logs.quantile(logs.new_tensor([0.002, 0.98]), dim=1)
    lowest, last, largest = ends[0] - 1.0, ends[1] + _STEP, logs.amax(dim=1)
    shares = torch.stack([_histogram(row, low) for row, low in zip(logs, lowest.tolist(), strict=True)])
    points = ((last - lowest) / _STEP).ceil()
    bins, most = torch.stack([(shares > 0).sum(dim=1).amax().to(points), points.amax()]).int().tolist()
    seen = (shares > 0).int().argsort(dim=1, descending=True, stable=True)[:, :bins]
    steps = torch.arange(most, dtype=logs.dtype, device=logs.device)
    grid, centre = lowest[:, None] + _STEP * steps, lowest[:, None] + _STEP * (seen + 0.5)
    t, span = centre[:, :, None] - grid[:, None], largest[:, None, None] - grid[:, None]
    likelihood = _likelihood(t, shares.gather(1, seen)[:, :, None], span)
    found = torch.where(steps < points[:, None], likelihood, -torch.inf).max(dim=1)
    return found.values, grid.gather(1, found.indices[:, None])[:, 0]


def _histogram(logs: Tensor, lowest: float) -> Tensor:
    """Return the share of the values in each bin from `lowest` on; what lies outside is in the last ones."""
    top = lowest + _BINS * _STEP
    return torch.histc(logs.clamp(lowest, top), _BINS, lowest, top) / logs.numel()


def _likelihood(t: Tensor, share: Tensor, span: Tensor) -> Tensor:
    """Return, for each scale, the mean log of p f + (1 - p) g, with the share p found by ten steps of EM.

    f is the density of t = log s^2 / a^2 on surfaces, g that on edges, the c of which fits best.

    Args:
        t: (P, K, G) for each of K bins and G scales.
        share: (P, K, 1) of the windows in each bin.
        span: (P, 1, G).

    Returns:
        (P, G).
    """
    half, span = 0.5 * FREEDOM, span.clamp_min(1.0)
    surface = torch.exp(half * math.log(half) - math.lgamma(half) + half * (t - t.clamp_max(50.0).exp()))
    found = []
    for fall in _FALLS:
        edge = _edges(t, span, fall) + _STRAY
        p = torch.full_like(span, 0.5)
        for _ in range(10):
            p = (share * (p * surface / (p * surface + (1.0 - p) * edge))).sum(dim=1, keepdim=True)
        found.append((share * torch.log(p * surface + (1.0 - p) * edge)).sum(dim=1))
    return torch.stack(found).amax(dim=0)


def _edges(t: Tensor, span: Tensor, fall: float) -> Tensor:
    """Return the density g of t on edges: f(t - u) with u in (0, T) of density ~ e^(-c u / T).

    With b = c / T, k = 3 and P the regularised lower incomplete gamma function, e^(-b u) f(t - u) integrates
    to e^(-b t) Gamma(k + b) / (k^b Gamma(k)) (P(k + b, k e^t) - P(k + b, k e^(t - T))).
    """
    half, rate = 0.5 * FREEDOM, fall / span
    order = (half + rate).expand_as(t)
    upper, lower = (torch.special.gammainc(order, half * e.clamp_max(50.0).exp()) for e in (t, t - span))
    mass = torch.exp(torch.lgamma(half + rate) - math.lgamma(half) - rate * math.log(half) - rate * t)
    total = span * (-math.expm1(-fall) / fall if fall > 0 else 1.0)
    density: Tensor = mass * (upper - lower) / total
    return density


def _second_difference_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return 1.4826 median |d(x-1) - 2 d(x) + d(x+1)| / sqrt 6, for maps too small for windows; 0 if none."""
    parts = []
    for dim in (2, 3):
        n = max(depth.shape[dim] - 2, 0)
        left, middle, right = (depth.narrow(dim, min(i, depth.shape[dim] - n), n) for i in range(3))
        inside = torch.stack([valid.narrow(dim, min(i, depth.shape[dim] - n), n) for i in range(3)]).all(
            dim=0
        )
        parts.append((left - 2.0 * middle + right)[inside].abs())
    found = torch.cat(parts)
    return 1.4826 / 6**0.5 * found.median() if found.numel() else depth.new_zeros(())
