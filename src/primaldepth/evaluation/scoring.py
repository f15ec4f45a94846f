"""The metrics of a protocol and their units; thresholds are frozen with the protocol."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.core.settings import Settings
from primaldepth.evaluation import metrics

Scores = dict[str, float | None]
_Positive = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A column of a printed table: its heading, the number it shows, and how many digits after the point."""

    heading: str
    key: str
    digits: int


class Scoring(Settings):
    """The metrics by which a protocol scores predictions, with their thresholds.

    `tables`, titles and columns, are printed as means over the scenes. Without any, RMSE is printed scene by
    scene.

    Args:
        unit: of the depth and its errors.
        bad: thresholds of bad pixels, in that unit.
        edge_step: neighbours whose depth differs by more lie on two sides of an edge, in that unit.
        edge_radius: half the width of the band around edges, in pixels.
        boundary_tolerance: how far a predicted edge may lie from the true one, in pixels.
    """

    tables: ClassVar[tuple[tuple[str, tuple[ScoreColumn, ...]], ...]] = ()

    unit: str = "disparity"
    bad: tuple[_Positive, ...] = (1.0, 3.0)
    edge_step: _Positive = 3.0
    edge_radius: Annotated[int, Field(ge=0)] = 4
    boundary_tolerance: Annotated[int, Field(ge=0)] = 1

    def scores(self, depth: Tensor, frame: Frame, truth: Tensor, known: Tensor) -> Scores:
        """Return every number of one image, in the order of `units`; None where it is not defined.

        Args:
            depth: (1, 1, H, W).
            frame: has the samples.
            truth: (1, 1, H, W).
            known: (1, 1, H, W) where the truth is known.
        """
        three, step = (depth, truth, known), self.edge_step
        has_ratios = bool((truth[known] > 0).all())
        return {
            "rmse": metrics.rmse(*three),
            "mae": metrics.mae(*three),
            **{f"bad_{limit:g}": metrics.bad_pixels(*three, limit) for limit in self.bad},
            "abs_rel": metrics.abs_rel(*three) if has_ratios else None,
            "delta1": metrics.delta1(*three) if has_ratios else None,
            "edge_rmse": metrics.edge_rmse(*three, step, self.edge_radius),
            "boundary_f1": metrics.boundary_f1(*three, step, self.boundary_tolerance),
            "residual": metrics.sensor_residual(depth, frame),
        }

    def units(self) -> dict[str, str]:
        """Return the unit of each number; "1" for shares and ratios, "sigma" for deviations of the noise."""
        return {
            "rmse": self.unit,
            "mae": self.unit,
            **{f"bad_{limit:g}": "1" for limit in self.bad},
            "abs_rel": "1",
            "delta1": "1",
            "edge_rmse": self.unit,
            "boundary_f1": "1",
            "residual": "sigma",
        }
