"""The section on window sizes: classical ones run here, and networks as a benchmark measured them."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from primaldepth.core.documents import parse_json
from primaldepth.report.blocks import Gallery, Paragraph, Picture, Section
from primaldepth.report.figures import window_figure
from primaldepth.report.plan import ReportSettings
from primaldepth.report.published import published
from primaldepth.report.tables import window_table


class WindowCost(NamedTuple):
    """Error and cost of a window of one size, as means over the scenes."""

    rmse: float
    seconds: float
    peak_mib: float | None


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


def section(costs: Mapping[int, WindowCost], settings: ReportSettings, unit: str) -> Section:
    """Return the study of window sizes.

    Args:
        costs: by the side of the window.
        settings: of the report.
        unit: of the errors.
    """
    study = window_heads()
    errors = {
        "ours, classical": {side: cost.rmse for side, cost in costs.items()},
        "ours, networks": {side: study.rmse[side] for side in costs if side in study.rmse},
    }
    plots = [_plot("rmse", f"mean RMSE [{unit}]", errors, published().windows)]
    seconds = {side: cost.seconds for side, cost in costs.items()}
    plots.append(_plot("seconds", "seconds per frame", {"": seconds}))
    memory = {side: cost.peak_mib / 1024 for side, cost in costs.items() if cost.peak_mib is not None}
    if memory:
        plots.append(_plot("memory", "peak memory [GiB]", {"": memory}))
    return Section(
        "Window sizes",
        "windows",
        (
            Paragraph(
                f"Classical is `{settings.shown_energy}` at x{settings.study_scale}, whose weights come from "
                f"the guide, with {settings.iterations} iterations on each of its grids; seconds and memory "
                "are its own. Networks are `fcn-s` with a last layer and a solver of 20 iterations, trained "
                f"for each window in {study.steps} steps (`benchmarks/quality/window_heads.py`). The paper "
                "trained for much longer, so compare how the curves bend, not how high they lie."
            ),
            Gallery(tuple(plots), 3, caption="One thread; memory above what the process held before."),
            window_table(costs, study.rmse),
        ),
    )


def _plot(
    name: str, title: str, ours: Mapping[str, Mapping[int, float]], theirs: Mapping[int, float] | None = None
) -> Picture:
    svg = window_figure(title, ours, theirs or {})
    return Picture(f"window-{name}", "svg", svg, f"{title} against the size of the window")
