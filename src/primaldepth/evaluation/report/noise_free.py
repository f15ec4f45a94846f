"""The section on sets without noise: ours beside published networks, in families by their training data."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from primaldepth.evaluation.protocol import Protocol
from primaldepth.evaluation.report.blocks import Block, Column, Paragraph, Section, Table
from primaldepth.evaluation.report.columns import Filled, Value, assemble, ours, theirs
from primaldepth.evaluation.report.gather import Rows
from primaldepth.evaluation.report.plan import NO_WEIGHTS
from primaldepth.evaluation.report.published import Family, published

OWN_FAMILY = "synthetic"
COMPLETE = "bicubic, complete sets"
Place = tuple[str, int]
"""A set and a scale."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Frames of one set that are run.

    Args:
        part: of the protocol, with the frames that are there.
        scenes: those that are run.
    """

    part: Protocol
    scenes: tuple[str, ...]

    @classmethod
    def of(cls, part: Protocol, limit: int) -> "Sample":
        """Every n-th frame, with the smallest n that gives at most `limit` of them."""
        step = -(-len(part.scenes) // limit)
        return cls(part, part.scenes[::step])

    def mean(self, rows: Rows, method: str, scale: int) -> Value:
        """Mean RMSE over the frames, if the method was run."""
        found = [rows[method, scene, scale].rmse for scene in self.scenes if (method, scene, scale) in rows]
        return fmean(found) if found else None


def section(protocol: Protocol, sets: Sequence[Sample], methods: Sequence[str], rows: Rows) -> Section:
    """Ours with the published family that it belongs to in one table, the other families in theirs."""
    blocks: list[Block] = [Paragraph(_about(protocol, sets))]
    if sets:
        means = {
            name: {(each.part.variant, scale): each.mean(rows, name, scale) for each, scale in _places(sets)}
            for name in methods
        }
        blocks.append(Paragraph(" ".join(standing(methods[-1], means))))
        blocks += _tables(sets, means)
        blocks.append(Paragraph(_sources()))
    else:
        text = f"Not run: the data folder has no folder '{protocol.folder}'."
        blocks.append(Paragraph(text, notice=True))
    return Section("Without noise", protocol.name, tuple(blocks))


def _places(sets: Sequence[Sample]) -> Iterator[tuple[Sample, int]]:
    return ((each, scale) for each in sets for scale in each.part.scales)


def _about(protocol: Protocol, sets: Sequence[Sample]) -> str:
    every = Counter(scene.partition("/")[0] for scene in protocol.scenes)
    run = {each.part.variant: len(each.scenes) for each in sets}
    sentences = [
        f"`{protocol.name}`: complete depth maps, reduced by Pillow's bicubic kernel without any noise, as "
        "learned methods are compared. RMSE without a border of 6 pixels, mean over the frames."
    ]
    if run:
        counts = ", ".join(f"{count} of the {every[name]} frames of {name}" for name, count in run.items())
        sentences.append(f"Run here: {counts}.")
    if run and (missing := [name for name in every if name not in run]):
        sentences.append(f"Not in the data folder: {', '.join(missing)}.")
    if any(count < every[name] for name, count in run.items()):
        sentences.append(
            "The published numbers are of complete sets; `bicubic` beside "
            f"'{COMPLETE}' shows how far a part of a set differs from the whole."
        )
    return " ".join(sentences)


def standing(method: str, means: Mapping[str, Mapping[Place, Value]]) -> list[str]:
    """Sentences on where the method stands: against bicubic, and against each family."""
    own = {place: value for place, value in means[method].items() if value is not None}
    if not own:
        return [f"There are no weights of `{method}` yet."]
    plain = means.get("bicubic", {})
    worse = [_named(place) for place, value in own.items() if value > (plain.get(place) or math.inf)]
    sentences = [f"`{method}` is worse than `bicubic` on {', '.join(worse) or 'none of them'}."]
    for family in published().noise_free.values():
        places = [place for place in own if any(place in row for row in family.rows.values())]
        counts = [f"{_named(place)} {_ahead(own[place], place, family)}" for place in places]
        sentences.append(f"Of the networks {family.about} it is ahead of: {', '.join(counts)}.")
    return sentences


def _named(place: Place) -> str:
    return f"{place[0]} x{place[1]}"


def _ahead(value: float, place: Place, family: Family) -> str:
    others = [row[place] for row in family.rows.values() if place in row]
    return f"{sum(value < other for other in others)} of {len(others)}"


def _tables(sets: Sequence[Sample], means: Mapping[str, Mapping[Place, Value]]) -> list[Table]:
    families = published().noise_free
    own = families[OWN_FAMILY]
    title = f"Not trained, or {own.about}"
    first = _table(title, sets, means, {COMPLETE: published().noise_free_bicubic}, own.rows)
    others = [family for name, family in families.items() if name != OWN_FAMILY]
    return [first, *(_table(_capital(each.about), sets, {}, {}, each.rows) for each in others)]


def _table(
    title: str,
    sets: Sequence[Sample],
    own: Mapping[str, Mapping[Place, Value]],
    beside: Mapping[str, Mapping[Place, float]],
    peers: Mapping[str, Mapping[Place, float]],
) -> Table:
    """Ours, then the reference, then the published; marks are given among ours and the published together."""
    columns = []
    for each, scale in _places(sets):
        place = (each.part.variant, scale)
        column = Column(f"x{scale}", f"{each.part.variant} [{each.part.unit}]")
        values = [row[place] for row in own.values()]
        printed = [row.get(place) for row in peers.values()]
        field = [*values, *printed]
        cells = [
            *ours(column, values, 2, field=field).cells,
            *theirs(column, [row.get(place) for row in beside.values()], (), 2).cells,
            *theirs(column, printed, field, 2).cells,
        ]
        columns.append(Filled(column, tuple(cells)))
    families = [*("ours" for _ in own), *("reference" for _ in beside), *("published" for _ in peers)]
    absent = {name: NO_WEIGHTS for name, row in own.items() if not any(row.values())}
    return assemble([*own, *beside, *peers], columns, title=title, families=families, absent=absent)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sources() -> str:
    families = published().noise_free.values()
    named = "; ".join(f"{family.about}: {family.source}" for family in families)
    return f"Published numbers: {named}. '{COMPLETE}' was measured with Pillow on all frames of each set."
