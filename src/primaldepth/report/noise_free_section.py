"""The section on sets without noise: ours beside published networks, in families by their training data."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from primaldepth.evaluation.protocol import Protocol
from primaldepth.report.blocks import Block, Paragraph, Section, Table, TableColumn
from primaldepth.report.cached_runs import Rows
from primaldepth.report.columns import FilledColumn, Value, assemble, ours, theirs
from primaldepth.report.plan import NO_WEIGHTS
from primaldepth.report.published import Family, published

OWN_FAMILY = "synthetic"
COMPLETE = "bicubic, complete sets"
Place = tuple[str, int]
"""A set and a scale."""


@dataclass(frozen=True, slots=True)
class SetFrames:
    """Frames of one set that are run.

    Args:
        part: of the protocol, with the frames that are there.
        scenes: those that are run.
        total: how many frames the complete set has.
    """

    part: Protocol
    scenes: tuple[str, ...]
    total: int

    @classmethod
    def of(cls, protocol: Protocol, part: Protocol, limit: int) -> "SetFrames":
        """Take every n-th frame that is there, with the smallest n that gives at most `limit` of them."""
        step = -(-len(part.scenes) // limit)
        total = sum(scene.startswith(f"{part.variant}/") for scene in protocol.scenes)
        return cls(part, part.scenes[::step], total)

    @property
    def is_complete(self) -> bool:
        """Whether the whole set is run, so that published numbers compare."""
        return len(self.scenes) == self.total

    @property
    def title(self) -> str:
        """Name of the set, its unit, and how much of it is run."""
        part = "" if self.is_complete else f", {len(self.scenes)} of {self.total} frames"
        return f"{self.part.variant} [{self.part.unit}]{part}"

    def mean(self, rows: Rows, method: str, scale: int) -> Value:
        """Return the mean RMSE over the frames; None if the method was not run."""
        found = self._values(rows, method, scale)
        return fmean(found) if found else None

    def uncertainty(self, rows: Rows, method: str) -> float:
        """Return the largest relative standard error, over the scales, of the mean RMSE of the frames."""
        every = [self._values(rows, method, scale) for scale in self.part.scales]
        found = [stdev(one) / math.sqrt(len(one)) / fmean(one) for one in every if len(one) > 1]
        return max(found, default=math.nan)

    def _values(self, rows: Rows, method: str, scale: int) -> list[float]:
        return [rows[method, scene, scale].rmse for scene in self.scenes if (method, scene, scale) in rows]


def section(protocol: Protocol, sets: Sequence[SetFrames], methods: Sequence[str], rows: Rows) -> Section:
    """Make the section: ours with its published family in one table, the other families in theirs.

    Args:
        protocol: of the sets.
        sets: that are run, or parts of them.
        methods: rows of ours; the last one is compared in words.
        rows: of all sets.
    """
    blocks: list[Block] = [Paragraph(_about(protocol, sets))]
    if sets:
        means = {
            name: {(each.part.variant, scale): each.mean(rows, name, scale) for each, scale in _places(sets)}
            for name in methods
        }
        complete = [each.part.variant for each in sets if each.is_complete]
        words = [*standing(methods[-1], means, complete), *_uncertain(methods[-1], sets, rows)]
        blocks += [Paragraph(" ".join(words)), *_tables(sets, means), Paragraph(_sources())]
    else:
        text = f"Not run: the data folder has no folder '{protocol.folder}'."
        blocks.append(Paragraph(text, notice=True))
    return Section("Without noise", protocol.name, tuple(blocks))


def _places(sets: Sequence[SetFrames]) -> Iterator[tuple[SetFrames, int]]:
    return ((each, scale) for each in sets for scale in each.part.scales)


def _about(protocol: Protocol, sets: Sequence[SetFrames]) -> str:
    sentences = [
        f"`{protocol.name}`: complete depth maps, reduced by Pillow's bicubic kernel without any noise, as "
        "learned methods are compared. RMSE without a border of 6 pixels, mean over the frames."
    ]
    if sets:
        counts = [f"{len(each.scenes)} of the {each.total} frames of {each.part.variant}" for each in sets]
        sentences.append(f"Run here: {', '.join(counts)}.")
    run = {each.part.variant for each in sets}
    missing = dict.fromkeys(name for scene in protocol.scenes if (name := scene.partition("/")[0]) not in run)
    if sets and missing:
        sentences.append(f"Not in the data folder: {', '.join(missing)}.")
    return " ".join(sentences)


def standing(method: str, means: Mapping[str, Mapping[Place, Value]], complete: Sequence[str]) -> list[str]:
    """Write where the method stands against bicubic, and against each family on complete sets.

    Args:
        method: that is compared.
        means: mean RMSE by method, then by set and scale.
        complete: names of the sets that are run completely.

    Returns:
        A sentence for each comparison.
    """
    own = {place: value for place, value in means[method].items() if value is not None}
    if not own:
        return [f"There are no weights of `{method}` yet."]
    plain = means.get("bicubic", {})
    worse = [_named(place) for place, value in own.items() if value > (plain.get(place) or math.inf)]
    sentences = [f"`{method}` is worse than `bicubic` on {', '.join(worse) or 'none of them'}."]
    for family in published().noise_free.values():
        known = {place for row in family.rows.values() for place in row}
        places = [place for place in own if place[0] in complete and place in known]
        counts = [f"{_named(place)} {_ahead(own[place], place, family)}" for place in places]
        if counts:
            sentences.append(f"Of the networks {family.about} it is ahead of: {', '.join(counts)}.")
    return sentences


def _uncertain(method: str, sets: Sequence[SetFrames], rows: Rows) -> list[str]:
    """Return a paragraph on the standard errors of sets that are run in part; none if all are complete."""
    parts = [each for each in sets if not each.is_complete]
    errors = [f"{each.part.variant} {each.uncertainty(rows, method):.0%}" for each in parts]
    if not parts:
        return []
    return [
        "The published numbers are of complete sets. Standard error of the means of a part, over its frames: "
        f"{', '.join(errors)}; smaller differences from published numbers mean nothing, and ours and the "
        f"published are marked apart. `bicubic` beside '{COMPLETE}' shows how far the part lies off."
    ]


def _named(place: Place) -> str:
    return f"{place[0]} x{place[1]}"


def _ahead(value: float, place: Place, family: Family) -> str:
    others = [row[place] for row in family.rows.values() if place in row]
    return f"{sum(value < other for other in others)} of {len(others)}"


def _tables(sets: Sequence[SetFrames], means: Mapping[str, Mapping[Place, Value]]) -> list[Table]:
    families = published().noise_free
    own = families[OWN_FAMILY]
    title = f"Not trained, or {own.about}"
    first = _table(title, sets, means, {COMPLETE: published().noise_free_bicubic}, own.rows)
    others = [family for name, family in families.items() if name != OWN_FAMILY]
    return [first, *(_table(_capital(each.about), sets, {}, {}, each.rows) for each in others)]


def _table(
    title: str,
    sets: Sequence[SetFrames],
    own: Mapping[str, Mapping[Place, Value]],
    beside: Mapping[str, Mapping[Place, float]],
    peers: Mapping[str, Mapping[Place, float]],
) -> Table:
    """Return the table: our methods, then the reference, then published networks.

    On a complete set the best are marked among ours and the published together, else among each alone.
    """
    columns = []
    for each, scale in _places(sets):
        place = (each.part.variant, scale)
        column = TableColumn(f"x{scale}", each.title)
        values = [row[place] for row in own.values()]
        printed = [row.get(place) for row in peers.values()]
        together = [*values, *printed] if each.is_complete else None
        cells = [
            *ours(column, values, 2, field=together).cells,
            *theirs(column, [row.get(place) for row in beside.values()], (), 2).cells,
            *theirs(column, printed, together or printed, 2).cells,
        ]
        columns.append(FilledColumn(column, tuple(cells)))
    families = [*("ours" for _ in own), *("reference" for _ in beside), *("published" for _ in peers)]
    absent = {name: NO_WEIGHTS for name, row in own.items() if not any(row.values())}
    return assemble([*own, *beside, *peers], columns, title=title, families=families, absent=absent)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sources() -> str:
    families = published().noise_free.values()
    named = "; ".join(f"{family.about}: {family.source}" for family in families)
    return f"Published numbers: {named}. '{COMPLETE}' was measured with Pillow on all frames of each set."
