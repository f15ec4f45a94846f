"""barron16: the fast bilateral solver (Barron and Poole 2016)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Few, NotNegative, Positive
from primaldepth.methods.gaussian_field import FieldSettings, SampledDepth
from primaldepth.methods.holes import everywhere
from primaldepth.operators.bilateral_grid import BilateralGrid, cells
from primaldepth.operators.sampling import Resample
from primaldepth.variational.conjugate_gradients import conjugate_gradients


class Barron16Settings(FieldSettings):
    """min_y  mu y' (M - N B N) y + sum_x c(x) (y(cell of x) - t(x))^2, y one value per cell.

    Cells have sides `position` (pixels), `luma` and `chroma` (of the guide's range);
    mu = smoothness scale^-decay for samples `scale` pixels apart. The target t interpolates the samples, c
    is their trust per pixel, nowhere below `floor` of its mean. Solved on `shifts` shifted
    grids, whose mean hides the borders of cells; each further round adds to the target what the sensor would
    miss in the result.
    """

    position: Positive = 8.8
    luma: Positive = 0.045
    chroma: Positive = 0.0167
    smoothness: Positive = 7.1
    decay: NotNegative = 1.05
    shifts: Few = 4
    rounds: Few = 2
    tolerance: NotNegative = 1e-3


def spread(values: Tensor, lam: Tensor, otherwise: Tensor) -> tuple[Tensor, Tensor]:
    """Return the means of the samples around each pixel weighted by trust, and the trust per pixel.

    t = sum_i b_i lam_i v_i / sum_i b_i lam_i with bilinear b, c = sum_i b_i lam_i h w / (H W).

    Args:
        values: (B, 1, h, w).
        lam: (B, 1, h, w) their weights.
        otherwise: (B, 1, H, W) values for pixels that no trusted sample reaches.
    """
    size = (int(otherwise.shape[2]), int(otherwise.shape[3]))
    up = Resample((int(lam.shape[2]), int(lam.shape[3])), size, "bilinear")
    weight, total = up(lam), up(torch.where(lam > 0, lam * values, 0.0))
    reached = weight > 1e-6 * weight.amax(dim=(2, 3), keepdim=True)
    mean = torch.where(reached, total / torch.where(reached, weight, 1.0), otherwise)
    return mean, torch.where(reached, weight, 0.0) * (lam[0].numel() / otherwise[0].numel())


@dataclass(frozen=True, slots=True)
class Smoother:
    """The bilateral solver of one image on one grid."""

    grid: BilateralGrid
    mass: Tensor
    n: Tensor
    m: Tensor

    @classmethod
    def of(cls, guide: Tensor, settings: Barron16Settings, shift: float) -> "Smoother":
        """Build the solver of one image.

        Args:
            guide: (C, H, W).
            settings: of the method.
            shift: of the grid's origin, in cells.

        Returns:
            The solver.
        """
        grid = BilateralGrid(cells(guide, settings.position, settings.luma, settings.chroma, shift))
        mass = grid.splat(torch.ones_like(guide[:1])[None])
        return cls(grid, mass, *grid.bistochastic(mass))

    def solve(
        self, target: Tensor, trust: Tensor, start: Tensor, mu: float, settings: Barron16Settings
    ) -> Tensor:
        """Solve (mu (M - N B N) + diag(splat c)) y = splat(c t), and slice y.

        Args:
            target: (1, 1, H, W) t.
            trust: (1, 1, H, W) c.
            start: (1, 1, H, W) first estimate.
            mu: weight of the regulariser.
            settings: of the method.

        Returns:
            (1, 1, H, W).
        """
        grid, n, m = self.grid, self.n, self.m
        c = grid.splat(trust)
        found = conjugate_gradients(
            lambda y: (mu * (m * y[0] - n * grid.blur(n * y[0])) + c * y[0])[None],
            grid.splat(trust * target)[None],
            (grid.splat(start) / self.mass)[None],
            diagonal=(mu * (m - grid.blur_diagonal * n * n).clamp_min(0.0) + c)[None],
            iterations=settings.iterations,
            tolerance=settings.tolerance,
        )
        return grid.slice(found.u[0])


@dataclass(frozen=True, slots=True)
class Barron16:
    """Smooth in the bilateral space of the guide, image by image: each has cells of its own."""

    settings: Barron16Settings = field(default_factory=Barron16Settings)
    name: str = "barron16"

    def __call__(self, frame: Frame) -> Prediction:
        """Solve on shifted grids and average; repeat with the target corrected by what samples miss."""
        with torch.no_grad():
            data = SampledDepth.of(frame, self.settings.sensor)
            images = [self._solve_image(frame.guide[i], data.image(i)) for i in range(len(frame.guide))]
            depth = data.normal.restore(torch.cat(images))
        return everywhere(depth, frame)

    def _solve_image(self, guide: Tensor, data: SampledDepth) -> Tensor:
        q, mu = self.settings, data.smoothness(self.settings)
        smoothers = [Smoother.of(guide, q, shift / q.shifts) for shift in range(q.shifts)]
        weight = data.lam * data.sigma  # c / sigma: inverse variances let near samples flood far ones
        target, trust = spread(data.f, weight, data.start)
        trust = trust + q.floor * trust.mean()
        u = data.start
        for round_ in range(q.rounds):
            if round_ > 0:
                missed, _ = spread(data.f - data.A(u), weight, torch.zeros_like(u))
                target = u + missed
            u = torch.stack([each.solve(target, trust, u, mu, q) for each in smoothers]).mean(dim=0)
        return u
