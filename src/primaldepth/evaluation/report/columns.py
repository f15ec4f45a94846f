"""Tables column by column: numbers with the best marked, differences, ratios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from primaldepth.evaluation.metrics import geometric_mean
from primaldepth.evaluation.report.blocks import Cell, Column, Mark, Table, TableRow

TOLERANCE = 1.10  # of a published geometric mean
DASH = Cell("–", "absent")
Value = float | None


@dataclass(frozen=True, slots=True)
class Filled:
    """A column with its cells, one for each row."""

    column: Column
    cells: tuple[Cell, ...]


def mean(values: Iterable[Value]) -> Value:
    """Geometric mean, if there are values and none is missing."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return geometric_mean(known) if known and len(known) == len(listed) else None


def marks(values: Sequence[Value], digits: int) -> list[Mark]:
    """The smallest is best, the next smallest second best; numbers that print alike are marked alike."""
    printed = [None if value is None else round(value, digits) for value in values]
    order = sorted({value for value in printed if value is not None})
    names: dict[float, Mark] = dict(zip(order, ("best", "second"), strict=False))
    return ["" if value is None else names.get(value, "") for value in printed]


def theirs(title: Column, values: Sequence[Value], digits: int, ranked: Sequence[bool]) -> Filled:
    """Published numbers; only the ranked ones are marked."""
    found = marks([value if own else None for value, own in zip(values, ranked, strict=True)], digits)
    return Filled(title, tuple(_cell(v, digits, m, True) for v, m in zip(values, found, strict=True)))


def ours(title: Column, values: Sequence[Value], digits: int, *, marked: bool = True) -> Filled:
    """Numbers computed here."""
    found = marks(values if marked else [None] * len(values), digits)
    return Filled(title, tuple(_cell(v, digits, m, False) for v, m in zip(values, found, strict=True)))


def _cell(value: Value, digits: int, mark: Mark, published: bool) -> Cell:
    if value is None:
        return DASH
    return Cell(f"{value:.{digits}f}", "published" if published else "number", mark)


def differences(title: Column, own: Sequence[Value], other: Sequence[Value], digits: int) -> Filled:
    """Own - other, with its sign."""

    def cell(a: Value, b: Value) -> Cell:
        if a is None or b is None:
            return DASH
        return Cell(f"{a - b:+.{digits}f}".replace("-", "\N{MINUS SIGN}"), "difference")

    return Filled(title, tuple(map(cell, own, other)))


def ratios(title: Column, own: Sequence[Value], other: Sequence[Value]) -> Filled:
    """Own / other; "beyond" above the tolerance."""

    def cell(a: Value, b: Value) -> Cell:
        if a is None or b is None:
            return DASH
        return Cell(f"{a / b:.2f}", "beyond" if a > TOLERANCE * b else "difference")

    return Filled(title, tuple(map(cell, own, other)))


def assemble(
    names: Sequence[str],
    columns: Sequence[Filled],
    *,
    caption: str = "",
    first: str = "method",
    families: Sequence[str] | None = None,
    absent: Mapping[str, str] | None = None,
) -> Table:
    """The table.

    Args:
        names: of the rows.
        families: of the rows; a rule is drawn where they change.
        absent: row -> why there are no numbers of ours, written over its first run of dashes.
    """
    rows = []
    for index, name in enumerate(names):
        cells = [column.cells[index] for column in columns]
        if absent and name in absent:
            cells = _explained(cells, absent[name])
        rule = families is not None and index > 0 and families[index] != families[index - 1]
        rows.append(TableRow((Cell(name, "name"), *cells), rule))
    return Table((Column(first), *(column.column for column in columns)), tuple(rows), caption)


def _explained(cells: list[Cell], reason: str) -> list[Cell]:
    if DASH not in cells:
        return cells
    start = cells.index(DASH)
    stop = start + 1
    while stop < len(cells) and cells[stop] == DASH:
        stop += 1
    return [*cells[:start], Cell(reason, "absent", span=stop - start), *cells[stop:]]
