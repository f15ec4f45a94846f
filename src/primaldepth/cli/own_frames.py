"""`primaldepth evaluate DEPTHS IMAGES`: which method suits one's own camera."""

from collections.abc import Sequence
from pathlib import Path

import torch

from primaldepth.cli.output import note, show
from primaldepth.core.frame import Method
from primaldepth.evaluation.own_frames import OwnFrames, verdict
from primaldepth.evaluation.rows import Row
from primaldepth.report.own_frames import draw_frame

PICTURE = Path("worst-frame.png")


def print_verdict(
    protocol: OwnFrames, rows: Sequence[Row], methods: Sequence[Method], device: torch.device, picture: Path
) -> None:
    """Print which method is best, and write a picture of the frame on which it is worst."""
    found = verdict(rows, protocol.unit)
    best = next(method for method in methods if method.name == found.best)
    draw_frame(protocol, best, found.worst_frame, device, picture)
    note(f"wrote {picture}: the frame with the largest mean error, {found.worst_frame}")
    show()
    show(found.sentence)
