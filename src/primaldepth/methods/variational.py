"""The seven variational models as methods: a noisy frame in, the minimiser of an energy out."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Few, Iterations, NotNegative, Positive, Settings
from primaldepth.measurement.lone_samples import cells_of
from primaldepth.measurement.noise_estimate import noise_of
from primaldepth.methods.holes import everywhere, fill_holes
from primaldepth.operators.sampling import Kernel, Resample, resample
from primaldepth.variational import (
    MODELS,
    DataTerm,
    ModelParameters,
    SolverProgress,
    build_energy,
    preconditioned,
    solve,
)


class MinimisationSettings(Settings):
    """How the energy of a frame is weighed and minimised.

    A sample whose noise is the frame's typical one has the weight lam s^growth, where s is the
    distance between samples in pixels. `ratio` balances dual against primal steps. `levels` grids are solved,
    coarse to fine, each starting the next.
    """

    lam: Positive = 1.0
    growth: NotNegative = 1.25
    iterations: Iterations = 60
    coarse_iterations: Iterations = 60
    levels: Few = 4
    ratio: Positive = 1.0
    sensor: Kernel = "bicubic"


class VariationalSettings(MinimisationSettings, ModelParameters):
    """Parameters of a model and of its minimisation.

    `ratio` falls as contrast / C where the spread C of the depth, in units of the noise, is more than
    `contrast` (0: it never falls).
    """

    contrast: NotNegative = 60.0
    change_tolerance: NotNegative = 0.0


@dataclass(frozen=True, slots=True)
class Normalised:
    """Depth in units of the typical noise: centred, sigma about 1, so that lam means the same everywhere."""

    depth: Tensor
    sigma: Tensor
    centre: Tensor
    scale: Tensor

    @classmethod
    def of(cls, frame: Frame) -> "Normalised":
        """Centre at the median, scale by the median sigma (at least 1e-3 of the spread).

        Args:
            frame: that is to be scaled.

        Returns:
            Depth and noise of the frame in that unit, and the numbers of each image.
        """
        sigma = noise_of(frame)
        centre, scale = [], []
        for depth, valid, noise in zip(frame.depth, frame.valid, sigma, strict=True):
            values = depth[valid]
            middle = values.median()
            spread = 1.4826 * (values - middle).abs().median()
            floor = torch.maximum(1e-3 * spread, 1e-6 * values.abs().max().clamp_min(1e-30))
            centre.append(middle)
            scale.append(torch.maximum(noise[valid].median(), floor))
        c, s = torch.stack(centre).view(-1, 1, 1, 1), torch.stack(scale).view(-1, 1, 1, 1)
        depth = torch.where(frame.valid, (frame.depth - c) / s, 0.0)
        relative = torch.where(frame.valid, sigma / s, 1.0)
        return cls(depth, relative.clamp_min(1e-2), c, s)

    def restore(self, depth: Tensor) -> Tensor:
        """Return depth in the frame's unit.

        Args:
            depth: (B, 1, H, W) in units of the noise.
        """
        return depth * self.scale + self.centre


@dataclass(frozen=True, slots=True)
class Variational:
    """Minimise one of the seven energies from coarse to fine.

    The data term acts on the low-resolution samples through the sensor's resampling; each
    sample is weighted by its confidence and its noise, invalid samples not at all.
    """

    name: str
    settings: VariationalSettings
    progress: Callable[[SolverProgress], None] | None = None

    def __call__(self, frame: Frame) -> Prediction:
        """Solve on every level of the pyramid, keep the last; image by image if their steps may differ."""
        if self.settings.contrast > 0 and len(frame.depth) > 1:
            return Prediction.joined([self(image) for image in frame.images()])
        with torch.no_grad():
            normal = Normalised.of(frame)
            lam = self._weights(frame, normal.sigma)
            ratio = self._ratio(normal.depth[lam > 0])
            u = self._first_estimate(frame, normal)
            info: dict[str, Any] = {}
            for level in range(self._levels(frame) - 1, -1, -1):
                u, info = self._solve_level(frame, normal, lam, ratio, u, level)
        return everywhere(normal.restore(u[:, :1]), frame, info=info)

    def _weights(self, frame: Frame, sigma: Tensor) -> Tensor:
        """Return lam s^growth c / sigma^2 (l2) or lam s^growth c / sigma (l1) of valid samples, else 0."""
        power = 2 if MODELS[self.name].norm == "l2" else 1
        lam = sigma.new_tensor([self.settings.lam * s**self.settings.growth for s in sample_distances(frame)])
        return lam.view(-1, 1, 1, 1) * frame.trust / sigma**power

    def _ratio(self, depth: Tensor) -> float:
        """Return the ratio of dual to primal steps.

        The depth has to travel as far as it spreads, the dual variables no farther than their weights,
        so primal steps are as much longer as the spread is, in units of the noise.
        """
        ratio, contrast = self.settings.ratio, self.settings.contrast
        spread = float(depth.std(correction=0)) if depth.numel() else 0.0
        return ratio * contrast / spread if 0 < contrast < spread else ratio

    def _first_estimate(self, frame: Frame, normal: Normalised) -> Tensor:
        depth = fill_holes(normal.depth, frame.trusted)
        slopes = depth.new_zeros((depth.shape[0], MODELS[self.name].channels - 1, *frame.low_size))
        return torch.cat([depth, slopes], dim=1)

    def _levels(self, frame: Frame) -> int:
        """Return the sizes of the grids to solve on: the guide and its halvings, at least the samples."""
        count = 1
        while count < self.settings.levels and _covers(_halved(frame.high_size, count), frame.low_size):
            count += 1
        return count

    def _solve_level(
        self, frame: Frame, normal: Normalised, lam: Tensor, ratio: float, u: Tensor, level: int
    ) -> tuple[Tensor, dict[str, Any]]:
        q, size = self.settings, _halved(frame.high_size, level)
        guide = frame.guide if level == 0 else resample(frame.guide, size, "area")
        A = None if size == frame.low_size else Resample(size, frame.low_size, q.sensor)
        data = DataTerm(normal.depth, lam / 2**level, MODELS[self.name].norm, A)
        parameters = q.model_copy(update={"alpha_0": q.alpha_0 / 2**level})
        energy = build_energy(self.name, guide, data, parameters)
        start = _enlarge(u, size)
        solution = solve(
            energy,
            start,
            preconditioned(energy, start, ratio),
            iterations=q.iterations if level == 0 else q.coarse_iterations,
            change_tolerance=q.change_tolerance,
            callback=self.progress,
        )
        last = solution.history[-1]
        info = {
            "iterations": last.iteration,
            "energy": last.energy,
            "gap": last.gap,
            "stopped": solution.stopped,
        }
        return solution.u, info


def sample_distances(frame: Frame) -> list[float]:
    """Return the distance between the samples of each image in pixels of the guide: 8 at x8.

    Scattered samples on a fine grid are as far apart as the cells that hold about one of them each.

    Args:
        frame: for its sizes and samples.
    """
    grids = [frame.low_size if each is None else each.grid for each in cells_of(frame)]
    return [math.sqrt(math.prod(frame.high_size) / math.prod(grid)) for grid in grids]


def _covers(size: tuple[int, int], other: tuple[int, int]) -> bool:
    return size[0] >= other[0] and size[1] >= other[1]


def _halved(size: tuple[int, int], level: int) -> tuple[int, int]:
    """Return the size after `level` halvings, rounded up."""
    return -(-size[0] // 2**level), -(-size[1] // 2**level)


def _enlarge(u: Tensor, size: tuple[int, int]) -> Tensor:
    """Return depth and slopes on a finer grid: slopes are per pixel, so they shrink with the pixel."""
    ratios = [u.shape[2] / size[0], u.shape[3] / size[1]]
    larger = resample(u, size, "bilinear")
    if u.shape[1] == 1:
        return larger
    return larger * u.new_tensor([1.0, *ratios]).view(1, 3, 1, 1)


# Chosen by benchmarks/tuning/tune.py on middlebury-2006 at all scales; see the docs, Energies.
DEFAULTS: dict[str, VariationalSettings] = {
    "atv-l2": VariationalSettings(lam=0.65, growth=1.0, beta=8.7, gamma=0.654),
    "atgv-l2": VariationalSettings(
        lam=0.65, growth=1.0, alpha_0=100.0, beta=12.5, gamma=0.74, ratio=3.0, iterations=120
    ),
    "nltv-l2": VariationalSettings(lam=7.5, sigma_d=3.07, sigma_v=0.288),
    "nlh-l2": VariationalSettings(lam=5.5, sigma_d=2.09, sigma_v=0.247, eps=0.2),
    "nlh-l1": VariationalSettings(lam=8.0, sigma_d=2.79, sigma_v=0.194, eps=0.166, ratio=3.0),
    "nltgv-l2": VariationalSettings(
        lam=7.2, alpha_0=40.0, sigma_d=4.37, sigma_v=0.136, ratio=5.0, iterations=80
    ),
    "nltgv-l1": VariationalSettings(
        lam=6.3, alpha_0=25.0, sigma_d=4.59, sigma_v=0.117, ratio=10.0, iterations=80
    ),
}
