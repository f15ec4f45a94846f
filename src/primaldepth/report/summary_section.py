"""The first section: benchmark, sets without noise and real cameras side by side, and where ours lose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from primaldepth.evaluation.protocol import Protocol
from primaldepth.report import tables
from primaldepth.report.blocks import Block, Paragraph, Section, TableColumn
from primaldepth.report.cached_runs import Rows
from primaldepth.report.camera_section import VariantRows
from primaldepth.report.columns import FilledColumn, Value, assemble, mean, ours, theirs
from primaldepth.report.noise_free_section import SetFrames
from primaldepth.report.published import published

_PAPER = "fcn-pdn-s"
_PRINTED = "the paper's network, as printed"
_BEST = "best published network"
_CAMERA_NUMBERS = {"RMSE": "rmse", "4 px of tolerance": "rmse_tol4", "surfaces too far": "far_surface"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One column: what is measured, ours by method, and published numbers by the name of their row."""

    column: TableColumn
    ours: Mapping[str, Value]
    published: Mapping[str, Value]

    @property
    def name(self) -> str:
        """Name of the column in a sentence."""
        return f"{self.column.group}: {self.column.title}"

    def better_than(self, method: str) -> list[str]:
        """Return the rows that are ahead of the method, with their numbers, the best first."""
        own = self.ours.get(method)
        if own is None:
            return []
        every = {**self.ours, **self.published}
        ahead = sorted((value, name) for name, value in every.items() if value is not None and value < own)
        return [f"{_quoted(name, name in self.ours)} {value:.2f}" for value, name in ahead]


def benchmark_measure(protocol: Protocol, rows: Rows, methods: Sequence[str]) -> Measure:
    """Return the geometric mean over all scenes and scales of the benchmark.

    Args:
        protocol: of the benchmark.
        rows: of our methods.
        methods: that are compared.
    """
    places = [(scene, scale) for scale in protocol.scales for scene in protocol.scenes]
    printed = published().benchmark
    return Measure(
        TableColumn("all scales", f"{protocol.name} [{protocol.unit}]"),
        {name: mean(tables.rmse(rows, name, *place) for place in places) for name in methods},
        {_PRINTED: mean(printed.get((_PAPER, scale), {}).get(scene) for scene, scale in places)},
    )


def noise_free_measures(sets: Sequence[SetFrames], rows: Rows, methods: Sequence[str]) -> list[Measure]:
    """Return one measure for each scale of every complete set: only these compare with published numbers.

    Args:
        sets: that are run.
        rows: of all sets.
        methods: that are compared.
    """
    return [
        Measure(
            TableColumn(f"x{scale}", f"noise-free {each.part.variant} [{each.part.unit}]"),
            {name: each.mean(rows, name, scale) for name in methods},
            {
                f"{_BEST}, {family.about}": min(
                    _numbers(family.rows, (each.part.variant, scale)), default=None
                )
                for family in published().noise_free.values()
            },
        )
        for each in sets
        if each.is_complete
        for scale in each.part.scales
    ]


def _numbers(rows: Mapping[str, Mapping[tuple[str, int], float]], place: tuple[str, int]) -> list[float]:
    return [row[place] for row in rows.values() if place in row]


def camera_measures(views: Sequence[VariantRows], methods: Sequence[str]) -> list[Measure]:
    """Return the numbers of the first view of each protocol: with noise, at the smallest scale.

    Args:
        views: in the order of the protocols.
        methods: that are compared.
    """
    first = list({view.protocol: view for view in reversed(views)}.values())[::-1]
    return [
        Measure(
            TableColumn(title, f"{view.protocol} {view.variant} x{view.scale} [{view.unit}]"),
            {name: view.mean(name, key) for name in methods},
            {},
        )
        for view in first
        for title, key in _CAMERA_NUMBERS.items()
    ]


def section(measures: Sequence[Measure], methods: Sequence[str]) -> Section:
    """Return the table, and in words where the last method is behind.

    Args:
        measures: columns, from left to right.
        methods: rows of ours.
    """
    names = [*methods, *dict.fromkeys(name for each in measures for name in each.published)]
    columns = [_filled(each, names, methods) for each in measures]
    families = ["ours" if name in methods else "published" for name in names]
    blocks: list[Block] = [
        Paragraph(
            "RMSE, lower is better; `surfaces too far` counts samples of 10,000. The best of ours is marked "
            "in every column; published numbers, as far as there are any, stand below. Networks trained on "
            "NYU have seen real depth maps without noise; ours were trained on rendered scenes only."
        ),
        assemble(names, columns, families=families),
        Paragraph(behind(measures, methods[-1])),
    ]
    return Section("Three kinds of evidence", "evidence", tuple(blocks))


def _filled(measure: Measure, names: Sequence[str], methods: Sequence[str]) -> FilledColumn:
    own = ours(measure.column, [measure.ours.get(name) for name in methods], 2)
    rest = [measure.published.get(name) for name in names[len(methods) :]]
    return FilledColumn(measure.column, (*own.cells, *theirs(measure.column, rest, (), 2).cells))


def behind(measures: Sequence[Measure], method: str) -> str:
    """Return in words which rows are ahead of the method, column by column.

    Args:
        measures: columns of the table.
        method: that is compared.
    """
    known = [each for each in measures if each.ours.get(method) is not None]
    if not known:
        return f"There are no numbers of `{method}`."
    ahead = {each.name: better for each in known if (better := each.better_than(method))}
    if not ahead:
        return f"`{method}` is ahead of every other row in all {len(known)} columns."
    listed = "; ".join(f"{name} ({', '.join(better)})" for name, better in ahead.items())
    return (
        f"`{method}` is behind other rows in {len(ahead)} of {len(known)} columns. These are, with their "
        f"numbers: {listed}."
    )


def _quoted(name: str, is_method: bool) -> str:
    return f"`{name}`" if is_method else name
