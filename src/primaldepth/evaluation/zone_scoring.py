"""Scores for maps with holes: errors by zone, errors with a tolerance at edges, displaced surfaces, sigma."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import Self

from primaldepth.core.frame import Prediction
from primaldepth.core.settings import Count, Positive
from primaldepth.evaluation import metrics
from primaldepth.evaluation.protocol import Case
from primaldepth.evaluation.sampling import at_samples
from primaldepth.evaluation.scoring import ScoreColumn, Scores, Scoring
from primaldepth.evaluation.zones import ZONES, zone_masks

STATISTICS = ("rmse", "mae", "median")
SAMPLES = ("samples", "surface", "equal")


_ERRORS = {"rmse": "RMSE", "mae": "MAE", "median": "median"}
_ERRORS |= {f"rmse_{zone}": zone.replace("_", " ") for zone in ZONES}
_ERRORS |= {"rmse_tol4": "tol. 4 px", "rmse_tol8": "tol. 8 px"}
_MISPLACED = {
    f"{side}_{part}": f"{name} far" if side == "far" else "near"
    for part, name in (("surface", "surface"), ("equal", "equal"), ("samples", "all"))
    for side in ("far", "near")
}


def _columns(titles: Mapping[str, str]) -> tuple[ScoreColumn, ...]:
    """Return a column of two decimals for each score."""
    return tuple(ScoreColumn(title, score, 2) for score, title in titles.items())


class ZoneScoring(Scoring):
    """The metrics of protocols whose sensors have holes, beside those of `Scoring`.

    Args:
        zone_radius: width of the zones around jumps and holes, in pixels.
        jump: relative difference of neighbours that makes a jump.
        tolerances: errors are also given as the least within so many rows and columns.
        same: relative difference up to which neighbouring samples are equal.
        misplaced: relative difference by which a result leaves a sample.
    """

    tables: ClassVar[tuple[tuple[str, tuple[ScoreColumn, ...]], ...]] = (
        ("errors, RMSE where nothing else is said", _columns(_ERRORS)),
        (
            "samples of 10,000 that are put more than 10 % farther or nearer, and coverage of sigma",
            (
                *_columns(_MISPLACED),
                ScoreColumn("coverage", "coverage", 3),
                ScoreColumn("s/frame", "seconds", 2),
            ),
        ),
    )

    zone_radius: Count = 12
    jump: Positive = 0.05
    tolerances: tuple[Annotated[int, Field(ge=1)], ...] = (4, 8)
    same: Positive = 0.03
    misplaced: Annotated[float, Field(gt=0, lt=1)] = 0.1

    @classmethod
    def extending(cls, scoring: Scoring, zones: Mapping[str, Any]) -> Self:
        """Return the scoring with the zones of a frozen description."""
        return cls.parse({**scoring.model_dump(), **zones}, "zones")

    def case_scores(self, prediction: Prediction, case: "ZoneCase") -> Scores:
        """Return every number of one image, in the order of `units`; None where it is not defined."""
        depth = prediction.depth
        return {
            **self.scores(depth, case.frame, case.truth, case.known),
            **self._zone_errors(depth, case),
            **self._safety(depth, case),
            "coverage": _coverage(prediction, case),
        }

    def units(self) -> dict[str, str]:
        """Return the unit of each number; "1e-4" for counts among 10,000 samples."""
        errors = {name: self.unit for name in self._error_names() if name not in ("rmse", "mae")}
        rates = {f"{side}_{which}": "1e-4" for which in SAMPLES for side in ("far", "near")}
        return {**super().units(), **errors, **rates, "coverage": "1"}

    def _error_names(self) -> list[str]:
        suffixes = ["", *(f"_tol{pixels}" for pixels in self.tolerances)]
        places = ["", *(f"_{zone}" for zone in ZONES)]
        return [f"{name}{place}{end}" for end in suffixes for place in places for name in STATISTICS]

    def _zone_errors(self, depth: Tensor, case: "ZoneCase") -> Scores:
        zones = zone_masks(case.truth, case.reference, case.holes, self.jump, self.zone_radius)
        places = [case.known, *(zones[name] & case.known for name in ZONES)]
        maps = [(depth - case.truth).abs()]
        maps += [
            metrics.tolerant_errors(depth, case.truth, case.reference, pixels) for pixels in self.tolerances
        ]
        found = [number for errors in maps for place in places for number in _statistics(errors, place)]
        return dict(zip(self._error_names(), found, strict=True))

    def _safety(self, depth: Tensor, case: "ZoneCase") -> Scores:
        scale, frame = case.scale, case.frame
        result, truth, known = (at_samples(image, scale) for image in (depth, case.truth, case.reference))
        trusted = frame.trusted & known
        values = torch.where(trusted, truth, 0.0)
        far, near = metrics.misplaced(result, values, self.misplaced, disparities=self.unit == "disparity")
        sets = (
            trusted,
            metrics.surface_samples(values, trusted, self.same),
            metrics.equal_samples(values, trusted, self.same),
        )
        return {
            f"{side}_{name}": metrics.rate(found, among)
            for name, among in zip(SAMPLES, sets, strict=True)
            for side, found in (("far", far), ("near", near))
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneCase(Case):
    """A case whose sensor has holes.

    Args:
        reference: (1, 1, H, W) where the truth is known; `known` is the part of it that is scored.
        holes: (1, 1, H, W) where the sensor measures nothing, on the guide's grid.
    """

    scoring: ZoneScoring = field(default_factory=ZoneScoring)
    reference: Tensor
    holes: Tensor

    def scores(self, prediction: Prediction) -> Scores:
        """Return every number of the prediction."""
        return self.scoring.case_scores(prediction, self)


def _statistics(errors: Tensor, place: Tensor) -> tuple[float | None, float | None, float | None]:
    """Return RMS, mean and median of the absolute errors at the pixels of a zone; None if it has none."""
    found = errors[place].double()
    if found.numel() == 0:
        return None, None, None
    return float(found.square().mean().sqrt()), float(found.mean()), float(found.median())


def _coverage(prediction: Prediction, case: ZoneCase) -> float | None:
    if prediction.sigma is None:
        return None
    return metrics.coverage(prediction.depth, prediction.sigma, case.truth, case.known)
