"""Tables of protocols with many numbers: means over the scenes, one line per variant, scale and method."""

from collections.abc import Sequence
from statistics import fmean

from primaldepth.cli.output import show, show_table
from primaldepth.evaluation.protocols import Protocol
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.scoring import ScoreColumn


def print_means(protocol: Protocol, rows: Sequence[Row]) -> None:
    """Print the tables of the protocol's scoring.

    Args:
        protocol: with at least one table in its scoring; one of the `parts` that were run.
        rows: of all parts and scenes.
    """
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.variant, row.scale, row.method), []).append(row)
    variants, methods = (
        list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("variant", "method")
    )
    order = sorted(groups, key=lambda key: (variants.index(key[0]), key[1], methods.index(key[2])))
    count = len({row.scene for row in rows})
    scenes = f"{count} scenes" if protocol.is_frozen else f"{count} frames of one's own"
    show(f"{protocol.name} v{protocol.version}: means over {scenes}, errors in {protocol.unit}")
    for title, columns in protocol.scoring.tables:
        lines = [
            [variant, f"x{scale}", method, *(_mean(groups[variant, scale, method], each) for each in columns)]
            for variant, scale, method in order
        ]
        heads = ["variant", "scale", "method", *(each.heading for each in columns)]
        show()
        show_table(title, heads, lines, left=3)


def _mean(rows: Sequence[Row], column: ScoreColumn) -> str:
    """Mean over the rows that have the number; a dash if none has it."""
    found = [value for row in rows if (value := row.number(column.key)) is not None]
    return f"{fmean(found):.{column.digits}f}" if found else "-"
