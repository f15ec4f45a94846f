"""Tables of protocols with many numbers: means over the scenes, one line per method, scale and variant."""

from collections.abc import Sequence
from statistics import fmean

from primaldepth.cli.output import show_table
from primaldepth.evaluation.protocols import Protocol
from primaldepth.evaluation.run import Row
from primaldepth.evaluation.scoring import Column


def print_means(protocol: Protocol, made_of: str, rows: Sequence[Row]) -> None:
    """Print the tables of the protocol's scoring.

    Args:
        protocol: with at least one table in its scoring.
        made_of: the scenes in a few words.
        rows: of all scenes.
    """
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.scale, row.variant, row.method), []).append(row)
    heads = ["scale", "variant", "method"]
    for number, (title, columns) in enumerate(protocol.scoring.tables):
        lines = [
            [f"x{scale}", variant, method, *(_mean(found, column) for column in columns)]
            for (scale, variant, method), found in groups.items()
        ]
        start = f"{protocol.name} v{protocol.version}, means of {made_of}: " if number == 0 else "\n"
        unit = f" [{protocol.unit}]" if number == 0 else ""
        show_table(f"{start}{title}{unit}", [*heads, *(each.heading for each in columns)], lines, left=3)


def _mean(rows: Sequence[Row], column: Column) -> str:
    """Mean over the rows that have the number; a dash if none has it."""
    found = [value for row in rows if (value := _number(row, column.key)) is not None]
    return f"{fmean(found):.{column.digits}f}" if found else "-"


def _number(row: Row, key: str) -> float | None:
    return float(getattr(row, key)) if key in ("rmse", "mae", "seconds") else row.more[key]
