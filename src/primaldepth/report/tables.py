"""The tables of the report: published figures and ours side by side."""

from collections.abc import Mapping, Sequence

from primaldepth.evaluation.rows import Row
from primaldepth.methods import list_methods
from primaldepth.report.blocks import Cell, Table, TableColumn, TableRow
from primaldepth.report.cached_runs import Rows
from primaldepth.report.columns import (
    FilledColumn,
    Value,
    assemble,
    differences,
    mean,
    ours,
    ratios,
    theirs,
)
from primaldepth.report.plan import NO_WEIGHTS, Line
from primaldepth.report.published import published


def overview_table(lines: Sequence[Line], rows: Rows, scenes: Sequence[str], scales: Sequence[int]) -> Table:
    """Make the table of geometric means over the scenes, by scale: published, ours, and their ratio.

    Args:
        lines: rows of the table.
        rows: of our methods.
        scenes: of the means.
        scales: groups of columns.
    """
    columns: list[FilledColumn] = []
    for scale in scales:
        printed, own = means(lines, rows, scenes, scale)
        group = f"x{scale}"
        columns += [
            theirs(TableColumn("published", group), printed, _printed_means(scenes, scale), 2),
            ours(TableColumn("ours", group), own, 2),
            ratios(TableColumn("ratio", group), own, printed),
        ]
    return assemble(
        [line.name for line in lines],
        columns,
        title="Geometric means over the scenes",
        families=[line.family for line in lines],
        absent={line.name: line.absent for line in lines if not line.scales},
    )


def means(
    lines: Sequence[Line], rows: Rows, scenes: Sequence[str], scale: int
) -> tuple[list[Value], list[Value]]:
    """Return the published and our geometric means over the scenes, line by line.

    Args:
        lines: rows of the table.
        rows: of our methods.
        scenes: of the means.
        scale: of the means.
    """
    known = [published().benchmark.get((line.name, scale), {}) for line in lines]
    printed = [mean([row.get(scene) for scene in scenes]) for row in known]
    own = [mean(rmse(rows, line.name, scene, scale) for scene in scenes) for line in lines]
    return printed, own


def benchmark_table(lines: Sequence[Line], rows: Rows, scenes: Sequence[str], scale: int) -> Table:
    """Make the table of one scale: every scene's published number, ours and the difference.

    Args:
        lines: rows of the table.
        rows: of our methods.
        scenes: groups of columns.
        scale: of the table.
    """
    known = published().benchmark
    columns: list[FilledColumn] = []
    for scene in scenes:
        printed = [known.get((line.name, scale), {}).get(scene) for line in lines]
        own = [rmse(rows, line.name, scene, scale) for line in lines]
        columns += _compared(scene, printed, own, _printed(scene, scale), 2)
    return assemble(
        [line.name for line in lines],
        columns,
        title=f"x{scale}",
        families=[line.family for line in lines],
        absent={line.name: line.absent for line in lines if scale not in line.scales},
    )


def energy_table(rows: Rows, scenes: Sequence[str], scale: int) -> Table:
    """Make the table of the FCN alone and followed by each energy.

    Args:
        rows: of the networks followed by each energy.
        scenes: groups of columns.
        scale: of the table.
    """
    known = published().energies
    names = ["fcn" if name == "fcn" else f"fcn+{name}" for name in known]
    columns: list[FilledColumn] = []
    for scene in scenes:
        own = [rmse(rows, name, scene, scale) for name in names]
        printed = [each.get(scene) for each in known.values()]
        columns += _compared(scene, printed, own, printed, 4)
    absent = {name: NO_WEIGHTS for name in names if (name, scenes[0], scale) not in rows}
    return assemble(names, columns, absent=absent, first="network")


def plain_table(names: Sequence[str], rows: Rows, scenes: Sequence[str], scale: int) -> Table:
    """Make the table of our numbers alone, their geometric mean, and the time of a frame.

    Args:
        names: of the methods.
        rows: of our methods.
        scenes: columns.
        scale: of the table.
    """
    columns = [
        ours(TableColumn(scene.title()), [rmse(rows, name, scene, scale) for name in names], 2)
        for scene in scenes
    ]
    own = [mean(rmse(rows, name, scene, scale) for scene in scenes) for name in names]
    seconds = [mean_seconds(rows, name, scenes, scale) for name in names]
    columns.append(ours(TableColumn("geometric mean"), own, 2))
    columns.append(ours(TableColumn("s/frame"), seconds, 1, marked=False))
    return assemble(names, columns)


def tof_table(
    names: Sequence[str], rows: Rows, scenes: Sequence[str], scale: int, *, simulated: bool
) -> Table:
    """Make the table of ToFMark, compared by scene; simulated scenes, which differ, stand beside it.

    Args:
        names: of the methods.
        rows: of our methods.
        scenes: columns of ours.
        scale: of the benchmark.
        simulated: whether ours are of simulated scenes.
    """
    known = published().tof
    columns: list[FilledColumn] = []
    for scene in next(iter(known.values())) if simulated else scenes:
        printed = [known.get(name, {}).get(scene) for name in names]
        field = [each.get(scene) for each in known.values()]
        if simulated:
            columns.append(theirs(TableColumn(scene.title(), "paper, ToFMark"), printed, field, 2))
        else:
            own = [rmse(rows, name, scene, scale) for name in names]
            columns += _compared(scene, printed, own, field, 2)
    for scene in scenes if simulated else ():
        own = [rmse(rows, name, scene, scale) for name in names]
        columns.append(ours(TableColumn(scene, "ours, simulated scenes"), own, 2))
    own = [mean(rmse(rows, name, scene, scale) for scene in scenes) for name in names]
    columns.append(ours(TableColumn("geometric mean", "ours, simulated scenes" if simulated else ""), own, 2))
    absent = {name: NO_WEIGHTS for name in names if (name, scenes[0], scale) not in rows}
    return assemble(names, columns, absent=absent)


def window_table(windows: Mapping[int, tuple[float, float, Value]], networks: Mapping[int, float]) -> Table:
    """Return what each window gives and takes, beside the published RMSE.

    Args:
        windows: side -> (mean RMSE, seconds, peak MiB) of the classical method.
        networks: side -> mean RMSE of a network that was trained for it.
    """
    known = published().windows
    sides = list(windows)
    errors, seconds, memory = zip(*windows.values(), strict=True)
    columns = [
        ours(TableColumn("pairs"), [(side * side - 1) / 2 for side in sides], 0, marked=False),
        theirs(TableColumn("paper", "mean RMSE"), [known.get(side) for side in sides], known.values(), 3),
        ours(TableColumn("networks", "mean RMSE"), [networks.get(side) for side in sides], 3),
        ours(TableColumn("classical", "mean RMSE"), errors, 3),
        ours(TableColumn("s/frame"), seconds, 1, marked=False),
        ours(TableColumn("peak MiB"), memory, 0, marked=False),
    ]
    return assemble([f"{side} x {side}" for side in sides], columns, first="window")


def seconds_table(lines: Sequence[Line], rows: Rows, scenes: Sequence[str], scales: Sequence[int]) -> Table:
    """Make the table of seconds per frame, scale by scale.

    Args:
        lines: rows of the table.
        rows: of our methods.
        scenes: of the means.
        scales: columns.
    """
    run = [line for line in lines if line.scales]
    times = {scale: [mean_seconds(rows, line.name, scenes, scale) for line in run] for scale in scales}
    columns = [ours(TableColumn(f"x{scale}", "s/frame"), times[scale], 2, marked=False) for scale in scales]
    return assemble([line.name for line in run], columns, families=[line.family for line in run])


def method_table(names: Sequence[str]) -> Table:
    """Make the table of what each method does, and the parameters it was run with."""
    rows = []
    for info in list_methods():
        if info.name in names:
            values = ", ".join(f"{key} = {_short(value)}" for key, value in info.settings.items())
            cells = (Cell(info.name, "name"), Cell(info.summary, "text"), Cell(values or "none", "text"))
            rows.append(TableRow(cells))
    return Table((TableColumn("method"), TableColumn("what it does"), TableColumn("parameters")), tuple(rows))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _compared(
    scene: str, printed: Sequence[Value], own: Sequence[Value], field: Sequence[Value], digits: int
) -> list[FilledColumn]:
    group = scene.title()
    return [
        theirs(TableColumn("paper", group), printed, field, digits),
        ours(TableColumn("ours", group), own, digits),
        differences(TableColumn("diff.", group), own, printed, digits),
    ]


def _printed(scene: str, scale: int) -> list[Value]:
    """Return the cells of the paper's own column; numbers taken from elsewhere do not change its marks."""
    known = published()
    return [v.get(scene) for (name, s), v in known.benchmark.items() if s == scale and known.in_table(name)]


def _printed_means(scenes: Sequence[str], scale: int) -> list[Value]:
    columns = [_printed(scene, scale) for scene in scenes]
    return [mean(row) for row in zip(*columns, strict=True)]


def rmse(rows: Rows, name: str, scene: str, scale: int) -> Value:
    """Return the RMSE of one row; None if it is not there."""
    row: Row | None = rows.get((name, scene, scale))
    return None if row is None else row.rmse


def mean_seconds(rows: Rows, name: str, scenes: Sequence[str], scale: int) -> Value:
    """Return the mean seconds of the method alone per frame; None if it was not run."""
    found = [rows[name, scene, scale].seconds for scene in scenes if (name, scene, scale) in rows]
    return sum(found) / len(found) if found else None
