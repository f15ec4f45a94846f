"""The study of window sizes with networks, as `benchmarks/quality/window_heads.py` measured it."""

from functools import cache
from importlib import resources
from typing import NamedTuple

from primaldepth.core.documents import parse_json


class WindowHeads(NamedTuple):
    """Networks that were trained alike, one for each window.

    Args:
        steps: of each training.
        rmse: side of the window -> mean RMSE over noisy-middlebury at x8.
    """

    steps: int
    rmse: dict[int, float]


@cache
def window_heads() -> WindowHeads:
    """Return the figures, read once."""
    text = resources.files("primaldepth.report").joinpath("window_heads.json").read_text(encoding="utf-8")
    stored = parse_json(text, "window_heads.json")
    rows = stored["rows"]["noisy-middlebury"]
    return WindowHeads(stored["steps"], {int(side): value for side, value in rows.items()})
