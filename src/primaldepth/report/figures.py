"""Plots as SVG: readable in print and, since they are narrow, on a phone."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from primaldepth.core.errors import MissingDependencyError
from primaldepth.pictures.preview import DEPTH_COLORS, ERROR_COLORS, ColorLimits, Colors
from primaldepth.report.columns import TOLERANCE, Value

INK, GRID, FAINT = "#22262b", "#dfe2e6", "#8a9099"
OURS, THEIRS = "#0b6e99", "#c8641b"
FAMILIES = {  # colour-blind safe, and a shape each
    "interpolation": ("#6b7078", "o"),
    "filter": ("#0072b2", "s"),
    "optimisation": ("#007d5a", "D"),
    "variational": ("#c8501b", "^"),
    "network": ("#a1417f", "P"),
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "primaldepth",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


class Point(NamedTuple):
    """A method in the plane of accuracy against runtime."""

    name: str
    family: str
    seconds: float
    rmse: float


def require_matplotlib() -> None:
    """Raise where the plots could not be drawn in the end."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "report", "the plots need matplotlib", "install it with pip install 'primaldepth[report]'"
        ) from error


class Canvas:
    """A figure while it is drawn; `svg` is there once it is done."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.svg = b""


@contextmanager
def drawing(width: float, height: float) -> Iterator[Canvas]:
    """Yield a canvas of so many inches in the report's style."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        canvas = Canvas(width, height)
        yield canvas
        buffer = io.BytesIO()
        canvas.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    # the browser's own sans-serif: the text stays text, and nothing is embedded
    canvas.svg = re.sub(rb"'DejaVu Sans'", b"system-ui, 'DejaVu Sans', sans-serif", buffer.getvalue())


def ratio_figure(names: Sequence[str], ratios: Mapping[int, Sequence[Value]]) -> bytes:
    """Draw ours / published: one row per method, one marker per scale.

    Args:
        names: of the methods.
        ratios: by scale, then by method.

    Returns:
        SVG.
    """
    with drawing(4.4, 0.9 + 0.3 * len(names)) as canvas:
        axes = canvas.figure.subplots()
        axes.axvspan(0, TOLERANCE, color="#eef5ee", zorder=0)
        axes.axvline(1.0, color=FAINT, linewidth=1.2, zorder=1)
        offsets = [0.24, 0.08, -0.08, -0.24]
        shapes = ["o", "s", "D", "^"]
        colors = ["#7fb8d4", "#3d93bd", "#0b6e99", "#063f5c"]
        for k, (scale, values) in enumerate(ratios.items()):
            known = [(v, i) for i, v in enumerate(values) if v is not None]
            axes.scatter(
                [v for v, _ in known],
                [i - offsets[k % 4] for _, i in known],
                s=26,
                marker=shapes[k % 4],
                color=colors[k % 4],
                label=f"x{scale}",
                zorder=3,
            )
        every = [v for values in ratios.values() for v in values if v is not None] or [1.0]
        axes.set_xlim(min(0.9, min(every) - 0.03), max(1.15, max(every) + 0.03))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), list(names))
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("geometric mean of RMSE, ours / published")
        axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), handletextpad=0.2, columnspacing=1.2)
    return canvas.svg


def window_figure(title: str, ours: Mapping[str, Mapping[int, float]], theirs: Mapping[int, float]) -> bytes:
    """Draw one quantity against the side of the window, with a legend if there are several curves.

    Args:
        title: the quantity and its unit.
        ours: label -> side -> value.
        theirs: the published curve, or nothing.
    """
    with drawing(3.6, 2.7) as canvas:
        axes = canvas.figure.subplots()
        for (label, curve), line in zip(ours.items(), ("o-", "^-"), strict=False):
            axes.plot(list(curve), list(curve.values()), line, color=OURS, markersize=4.5, label=label)
        if theirs:
            label = "paper, FCN + NLH"
            axes.plot(list(theirs), list(theirs.values()), "s--", color=THEIRS, markersize=4.5, label=label)
            axes.legend()
        else:
            axes.set_ylim(bottom=0)
        axes.set_xticks(list(next(iter(ours.values()))))
        axes.set_xlabel("side of the window [px]")
        axes.set_title(title, fontsize=9.5, loc="left")
    return canvas.svg


def bars_figure(depth: ColorLimits, error: ColorLimits, unit: str) -> bytes:
    """Draw what the colours of depth and error pictures mean.

    Args:
        depth: limits of the colours of depth.
        error: limits of the colours of errors.
        unit: of both.

    Returns:
        SVG.
    """
    with drawing(3.0, 2.37) as canvas:
        top, bottom = canvas.figure.subplots(2, 1)
        for axes, title, limits, colors in (
            (top, f"depth [{unit}]", depth, DEPTH_COLORS),
            (bottom, f"error [{unit}]", error, ERROR_COLORS),
        ):
            axes.pcolormesh(*_ramp(limits), cmap=colormap(colors), shading="auto", rasterized=True)
            axes.set_yticks([])
            axes.set_title(title, fontsize=10)
            axes.grid(visible=False)
            axes.set_box_aspect(0.14)
    return canvas.svg


def colormap(colors: Colors) -> Any:
    """Return equally spaced control colours as matplotlib wants them."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("own", [tuple(c / 255 for c in color) for color in colors])


def _ramp(limits: ColorLimits) -> tuple[list[float], list[float], list[list[float]]]:
    steps = [limits[0] + (limits[1] - limits[0]) * i / 128 for i in range(129)]
    return steps, [0.0, 1.0], [steps[:-1]]
