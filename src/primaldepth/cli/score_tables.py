"""What `evaluate` prints: tables of errors, and which method suits one's own camera."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import torch

from primaldepth.cli.output import note, show, show_table
from primaldepth.core.frame import Method
from primaldepth.evaluation.own_frames import OwnFrames, verdict
from primaldepth.evaluation.protocols import Protocol
from primaldepth.evaluation.rows import Row, mean_number
from primaldepth.evaluation.scoring import ScoreColumn
from primaldepth.report.frame_picture import draw_frame


def print_scores(
    protocol: Protocol, parts: Sequence[Protocol], scenes: Sequence[str], rows: Sequence[Row]
) -> None:
    """Print the tables that suit a protocol.

    Args:
        protocol: that was asked for.
        parts: of the protocol that were run.
        scenes: of the first part.
        rows: of all parts and scenes.
    """
    if protocol.scoring.tables:
        _print_means(parts[0], rows)
    elif any(part.variant for part in parts):
        _print_sets(protocol, parts, rows)
    else:
        _print_scenes(protocol, scenes, rows)


def _print_means(protocol: Protocol, rows: Sequence[Row]) -> None:
    """Print means over the scenes, one line per variant, scale and method."""
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
    """Return the mean over the rows that have the number, or a dash if none has it."""
    found = mean_number(rows, column.key)
    return "-" if found is None else f"{found:.{column.digits}f}"


def _print_sets(protocol: Protocol, parts: Sequence[Protocol], rows: Sequence[Row]) -> None:
    """Print a line for each set and method: the mean RMSE over the frames, scale by scale."""
    scales = list(dict.fromkeys(row.scale for row in rows))
    lines = []
    for part in parts:
        for method in dict.fromkeys(row.method for row in rows):
            own = [row for row in rows if (row.method, row.variant) == (method, part.variant)]
            means = [fmean(row.rmse for row in own if row.scale == scale) for scale in scales]
            frames, seconds = len({row.scene for row in own}), fmean(row.seconds for row in own)
            head = [part.variant, str(frames), part.unit, method]
            lines.append([*head, *(f"{mean:.3f}" for mean in means), f"{seconds:.2f}"])
    title = f"{protocol.name} v{protocol.version}: mean over the frames of the RMSE where the truth is known"
    columns = ["set", "frames", "unit", "method", *(f"x{scale}" for scale in scales), "s/frame"]
    show_table(title, columns, lines, left=4)


def _print_scenes(protocol: Protocol, scenes: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a line for each method and scale: the RMSE scene by scene."""
    cells = {(row.method, row.scene, row.scale): row for row in rows}
    lines = []
    for name, scale in dict.fromkeys((row.method, row.scale) for row in rows):
        found = [cells[name, scene, scale] for scene in scenes]
        seconds = fmean(row.seconds for row in found)
        lines.append([name, f"x{scale}", *(f"{row.rmse:.3f}" for row in found), f"{seconds:.2f}"])
    title = f"{protocol.name} v{protocol.version}: RMSE [{protocol.unit}] where the truth is known"
    show_table(title, ["method", "scale", *scenes, "s/frame"], lines, left=2)


def print_verdict(
    protocol: OwnFrames, rows: Sequence[Row], methods: Sequence[Method], device: torch.device, picture: Path
) -> None:
    """Print which method suits one's own camera, and write a picture of the frame on which it is worst.

    Args:
        protocol: of one's own frames.
        rows: of all frames and methods.
        methods: that were run.
        device: that computes.
        picture: file to write.
    """
    found = verdict(rows, protocol.unit)
    best = next(method for method in methods if method.name == found.best)
    draw_frame(protocol, best, found.worst_frame, device, picture)
    note(f"wrote {picture}: the frame with the largest mean error, {found.worst_frame}")
    show()
    show(found.sentence)
