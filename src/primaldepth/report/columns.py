"""Tables column by column: numbers with the best marked, differences, ratios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from primaldepth.evaluation.metrics import geometric_mean
from primaldepth.report.blocks import Cell, Mark, Table, TableColumn, TableRow

TOLERANCE = 1.10  # of a published geometric mean
DASH = Cell("–", "absent")
Value = float | None


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column with its cells, one for each row."""

    column: TableColumn
    cells: tuple[Cell, ...]


def mean(values: Iterable[Value]) -> Value:
    """Return the geometric mean; None if there are no values, or one is missing."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return geometric_mean(known) if known and len(known) == len(listed) else None


def marks(values: Sequence[Value], field: Iterable[Value], digits: int) -> list[Mark]:
    """Mark the smallest and the next smallest values of the field; what prints alike is marked alike.

    Args:
        values: of the column.
        field: that they are compared with.
        digits: behind the point, as printed.
    """
    order = sorted({round(value, digits) for value in field if value is not None})
    names: dict[float, Mark] = dict(zip(order, ("best", "second"), strict=False))
    return ["" if value is None else names.get(round(value, digits), "") for value in values]


def theirs(title: TableColumn, values: Sequence[Value], field: Iterable[Value], digits: int) -> FilledColumn:
    """Make a column of published numbers, marked among all that were printed in the field.

    Args:
        title: of the column.
        values: by row; None where nothing was published.
        field: all that were printed, also of rows that are not shown.
        digits: behind the point.
    """
    found = marks(values, field, digits)
    return FilledColumn(title, tuple(_cell(v, digits, m, True) for v, m in zip(values, found, strict=True)))


def ours(
    title: TableColumn,
    values: Sequence[Value],
    digits: int,
    *,
    marked: bool = True,
    field: Iterable[Value] | None = None,
) -> FilledColumn:
    """Make a column of our numbers, marked among themselves or among those of the field.

    Args:
        title: of the column.
        values: by row; None where nothing was run.
        digits: behind the point.
        marked: whether to mark the best.
        field: that they are compared with; the values themselves if None.
    """
    found = marks(values, (values if field is None else field) if marked else (), digits)
    return FilledColumn(title, tuple(_cell(v, digits, m, False) for v, m in zip(values, found, strict=True)))


def _cell(value: Value, digits: int, mark: Mark, published: bool) -> Cell:
    if value is None:
        return DASH
    return Cell(f"{value:.{digits}f}", "published" if published else "number", mark)


def differences(
    title: TableColumn, own: Sequence[Value], other: Sequence[Value], digits: int
) -> FilledColumn:
    """Make a column of own - other, with the sign.

    Args:
        title: of the column.
        own: by row.
        other: by row.
        digits: behind the point.
    """

    def cell(a: Value, b: Value) -> Cell:
        if a is None or b is None:
            return DASH
        value = round(a - b, digits)
        sign = "+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else ""
        return Cell(f"{sign}{abs(value):.{digits}f}", "difference")

    return FilledColumn(title, tuple(map(cell, own, other)))


def ratios(title: TableColumn, own: Sequence[Value], other: Sequence[Value]) -> FilledColumn:
    """Make a column of own / other, of the kind "beyond" above the tolerance.

    Args:
        title: of the column.
        own: by row.
        other: by row.
    """

    def cell(a: Value, b: Value) -> Cell:
        if a is None or b is None:
            return DASH
        return Cell(f"{a / b:.2f}", "beyond" if a > TOLERANCE * b else "difference")

    return FilledColumn(title, tuple(map(cell, own, other)))


def assemble(
    names: Sequence[str],
    columns: Sequence[FilledColumn],
    *,
    title: str = "",
    first: str = "method",
    families: Sequence[str] | None = None,
    absent: Mapping[str, str] | None = None,
) -> Table:
    """Make a table of columns, with the names of the rows in front.

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
    return Table((TableColumn(first), *(column.column for column in columns)), tuple(rows), title)


def _explained(cells: list[Cell], reason: str) -> list[Cell]:
    if DASH not in cells:
        return cells
    start = cells.index(DASH)
    stop = start + 1
    while stop < len(cells) and cells[stop] == DASH:
        stop += 1
    return [*cells[:start], Cell(reason, "absent", span=stop - start), *cells[stop:]]
