"""A weighted score over several protocols, by which network weights are chosen; lower is better.

    S = exp( sum_i w_i c_i / sum_i w_i )
    c_i = log(m_i / r_i)       of an error m_i, which is in the unit of its protocol
    c_i = log(1 + m_i / r_i)   of a count or a share, which may be 0

i runs over groups of frames: one protocol, one set or variant of it, one scale. m_i is the mean of a number
over the group's frames, r_i its reference and w_i its weight.

The reference of an error never changes which weights are best; that of a count does: a count of 0 contributes
nothing, one of r_i as much as an error twice as large. See docs/training.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from primaldepth.core.errors import InputError
from primaldepth.core.settings import Positive, Settings

Scale = Annotated[int, Field(ge=1, le=32)]
NOT_ERRORS = {
    "delta1": "larger is better",
    "boundary_f1": "larger is better",
    "residual": "it is best near 1",
    "coverage": "it is best near 0.68",
}


class Criterion(Settings):
    """One protocol of the weighted score, with its metric and its share.

    Args:
        protocol: of `evaluation`.
        scenes: scenes, sets or variants of it; all that are there if empty.
        scales: to validate at; those of the validation if empty.
        metric: key of a row of `evaluate --json`.
        weight: relative to the other criteria; shared out evenly among the sets, variants and scales.
        reference: value of the metric that it is divided by; a count or a share needs one.
        data: folder of the protocol's data; that of the run if None.
    """

    protocol: str
    scenes: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()
    metric: str = "rmse"
    weight: Positive = 1.0
    reference: Positive | None = None
    data: str | None = None

    def part(self, units: Mapping[str, str], unit: str, groups: int) -> "ScorePart":
        """Return weight and reference with which one group of scenes enters the score.

        Args:
            units: of every number in a row of the protocol.
            unit: of the protocol's errors; a number in another unit is a count or a share.
            groups: how many share the weight.

        Raises:
            InputError: for a metric that the protocol does not have or that is no error, and for a count or a
                share without a reference.
        """
        where = f"validation.protocols: {self.protocol}"
        if self.metric not in units:
            raise InputError(where, f"no metric '{self.metric}' (known: {', '.join(units)})")
        if self.metric in NOT_ERRORS:
            reason = NOT_ERRORS[self.metric]
            raise InputError(
                where, f"cannot choose by '{self.metric}', {reason}", "take an error such as rmse"
            )
        is_error = units[self.metric] == unit
        if not is_error and self.reference is None:
            raise InputError(
                where,
                f"'{self.metric}' may be 0 and needs a reference: the value that counts as much as "
                "an error twice as large",
            )
        return ScorePart(self.weight / groups, self.reference or 1.0, is_error)


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one group contributes to the score: weight w, reference r, and whether its number is an error."""

    weight: float = 1.0
    reference: float = 1.0
    is_error: bool = True

    def term(self, value: float) -> float:
        """Return the term c of a number, as in the module's text; minus infinity for an error of 0."""
        if not self.is_error:
            return math.log1p(value / self.reference)
        return math.log(value / self.reference) if value != 0 else -math.inf


def weighted_score(scores: Mapping[str, float], parts: Mapping[str, ScorePart]) -> float:
    """Return the score S of the numbers named in `parts`, at least one; NaN if one of them is NaN."""
    for name in parts:
        if name not in scores:
            raise InputError(
                "validation.protocols", f"'{name}' is not defined on any frame", "take another metric"
            )
    total = sum(part.weight for part in parts.values())
    return math.exp(sum(part.weight * part.term(scores[name]) for name, part in parts.items()) / total)
