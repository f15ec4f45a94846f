"""Which frames a recipe validates on, group by group: a protocol, one of its parts, a scale."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.evaluation.protocol import chosen_scenes
from primaldepth.evaluation.protocols import Protocol, get_protocol
from primaldepth.evaluation.weighted_score import Criterion, ScorePart
from primaldepth.training.recipe import Recipe

BENCHMARK = "noisy-middlebury"
KEPT_FOR_JUDGING = {("noise-free", "middlebury")}


@dataclass(slots=True)
class Group:
    """Frames whose mean is one number.

    Args:
        protocol: the part of a protocol that has them.
        data: folder of its inputs.
        metrics: numbers that are needed beside the RMSE.
    """

    protocol: Protocol
    data: Path | None
    scale: int
    scenes: tuple[str, ...]
    metrics: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Plan:
    """Frames and protocols that a run is validated on.

    Args:
        groups: by name.
        parts: what each number contributes to the score, by its name.
        missing: why protocols, or parts of them, are left out, one line each.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    parts: dict[str, ScorePart] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add(self, criterion: Criterion, groups: dict[str, Group]) -> None:
        """Add the groups of a criterion; frames that another criterion has too are scored once."""
        for name, new in groups.items():
            group = self.groups.setdefault(name, new)
            label = number_name(name, criterion.metric)
            if label in self.parts or group.scenes != new.scenes or group.data != new.data:
                raise InputError(
                    "validation.protocols", f"{label} is named twice", "give its scenes and weight once"
                )
            if criterion.metric != "rmse":
                group.metrics.add(criterion.metric)
            scoring = new.protocol.scoring
            self.parts[label] = criterion.part(scoring.units(), scoring.unit, len(groups))


def number_name(group: str, metric: str) -> str:
    """Return the name of a number in the log."""
    return group if metric == "rmse" else f"{group} {metric}"


def planned(recipe: Recipe, data: Path | None) -> Plan:
    """Return the groups of all protocols that a recipe names.

    A protocol that is named alone is left out where its data is missing. A criterion is not: a score without
    one of its parts would choose other weights than the recipe asks for.

    Raises:
        InputError: for what cannot be validated on, and for a criterion whose data is missing.
    """
    plan = Plan()
    for entry in recipe.validation.protocols:
        criterion = Criterion(protocol=entry) if isinstance(entry, str) else entry
        scales = criterion.scales or recipe.validation.scales or recipe.scales
        protocol = _allowed(criterion.protocol, scales)
        place = data if criterion.data is None else Path(criterion.data)
        try:
            protocol.root(place)
        except PrimalDepthError as error:
            if not isinstance(entry, str):
                raise InputError("validation.protocols", f"{error}") from error
            plan.missing.append(str(error))
            continue
        if not criterion.scenes:
            plan.missing += protocol.left_out(place)
        numbered = len(scales) > 1 or not isinstance(entry, str)
        plan.add(criterion, dict(_groups(protocol, place, criterion.scenes, scales, numbered)))
    return plan


def _allowed(name: str, scales: tuple[int, ...]) -> Protocol:
    """Return the protocol of that name; raise for the benchmark, on which weights must not be chosen."""
    if name == BENCHMARK:
        raise InputError(
            "validation.protocols",
            f"{name} is the benchmark, weights must not be chosen by it",
            "use middlebury-2006 or rendered",
        )
    protocol = get_protocol(name)
    for scale in scales:
        protocol.check(scale)
    return protocol


def _groups(
    protocol: Protocol, data: Path | None, names: tuple[str, ...], scales: tuple[int, ...], numbered: bool
) -> Iterator[tuple[str, Group]]:
    """Return name and frames of each group of one protocol, without those kept for judging."""
    for name in names:
        if (protocol.name, name.partition("/")[0]) in KEPT_FOR_JUDGING:
            raise InputError(
                "validation.protocols",
                f"{name} of {protocol.name} is kept for judging, weights must not be chosen by it",
            )
    parts = protocol.parts(data)
    for part, scenes in zip(parts, chosen_scenes(parts, names), strict=True):
        if not scenes or (protocol.name, part.variant) in KEPT_FOR_JUDGING:
            continue
        for scale in (scale for scale in scales if scale in part.scales):
            words = [protocol.name, part.variant, f"x{scale}" if numbered else ""]
            yield " ".join(word for word in words if word), Group(part, data, scale, scenes)
