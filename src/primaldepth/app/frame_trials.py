"""Trials: how well a method restores a frame whose depth map was reduced, computed by a worker.

`primaldepth evaluate DEPTHS IMAGES --reduce N` does the same for folders.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.frame import Method
from primaldepth.evaluation.own_frames import own_frames
from primaldepth.evaluation.rows import Row, score
from primaldepth.io import Unit
from primaldepth.report.frame_picture import draw_frame


@dataclass(frozen=True, slots=True)
class Trial:
    """Ask how well a frame is restored, instead of asking for a result.

    Args:
        frame: name of the frame; cut-outs are drawn from it, as on the command line.
        reduce: pixels per sample, each way.
        picture: file to draw the frame into instead of scoring it.
    """

    frame: str
    reduce: int
    picture: Path | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a trial.

    Args:
        rows: as `Row.as_json` gives them; none where a picture was drawn.
        unit: of the errors.
    """

    rows: tuple[dict[str, Any], ...]
    unit: str


def attempt(
    trial: Trial, method: Method, files: tuple[Path, Path], unit: Unit | None, device: torch.device
) -> Tried:
    """Score the method on the reduced frame and on the frame with cut-outs, or draw the reduced one.

    Args:
        trial: what is asked.
        method: that is tried.
        files: depth map and image.
        unit: of the depth file; None if the file tells it.
        device: that computes.
    """
    protocol = replace(own_frames([files], trial.reduce, unit), pairs={trial.frame: files})
    if trial.picture is not None:
        draw_frame(protocol, method, trial.frame, device, trial.picture)
        return Tried((), protocol.unit)
    rows: list[Row] = []
    for part in protocol.parts(None):
        for scale in part.scales:
            row = score(method, part.load(None, trial.frame, scale), device)
            rows.append(replace(row, variant=part.variant))
    return Tried(tuple(row.as_json() for row in rows), protocol.unit)
