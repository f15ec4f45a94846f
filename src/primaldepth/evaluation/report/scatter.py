"""Accuracy against runtime, every point with its name beside it."""

from collections.abc import Sequence
from typing import NamedTuple

from primaldepth.evaluation.report.figures import FAMILIES, INK, Point, drawing

_WIDTH, _HEIGHT = 5.6, 4.4
_LETTER, _LINE = 5.0, 9.5  # points that a letter and a line of 8-point text take


class Box(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "Box") -> bool:
        """Whether they share area."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.top <= other.bottom or other.top <= self.bottom)


def runtime_figure(points: Sequence[Point], unit: str) -> bytes:
    """Geometric mean of RMSE against seconds per frame, on logarithmic axes."""
    with drawing(_WIDTH, _HEIGHT) as canvas:
        axes = canvas.figure.subplots()
        for family, (color, shape) in FAMILIES.items():
            own = [point for point in points if point.family == family]
            if own:
                x, y = [p.seconds for p in own], [p.rmse for p in own]
                axes.scatter(x, y, s=34, marker=shape, color=color, label=family, zorder=3)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.12, y=0.1)
        axes.set_xlabel("seconds per frame, one thread")
        axes.set_ylabel(f"geometric mean of RMSE [{unit}]")
        columns = min(3, len({point.family for point in points}))
        axes.legend(ncols=columns, loc="lower left", bbox_to_anchor=(0, 1.0), handletextpad=0.2)
        canvas.figure.draw_without_rendering()
        inch = canvas.figure.dpi / 72
        drawn = axes.transData.transform([(p.seconds, p.rmse) for p in points])
        places = [(float(x) / inch, float(y) / inch) for x, y in drawn]
        window = axes.get_window_extent()
        frame = Box(window.x0 / inch, window.y0 / inch, window.x1 / inch, window.y1 / inch)
        offsets = label_offsets([point.name for point in points], places, frame)
        for point, offset in zip(points, offsets, strict=True):
            place = (point.seconds, point.rmse)
            axes.annotate(
                point.name, place, offset, textcoords="offset points", fontsize=8, color=INK, va="center"
            )
    return canvas.svg


def label_offsets(
    names: Sequence[str], places: Sequence[tuple[float, float]], frame: Box
) -> list[tuple[float, float]]:
    """Where each name starts, in points from its own: the first place that touches nothing drawn so far."""
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    found = []
    for name, (x, y) in zip(names, places, strict=True):
        width = _LETTER * len(name)
        tries = [
            (dx, dy)
            for dy in (0.0, 9.0, -9.0, 16.0, -16.0, 24.0, -24.0, 32.0, -32.0)
            for dx in (7.0, -7.0 - width, -width / 2)
            if dy or dx != -width / 2
        ]
        boxes = [Box(x + dx, y + dy - _LINE / 2, x + dx + width, y + dy + _LINE / 2) for dx, dy in tries]
        inside = [
            b.left >= frame.left and b.right <= frame.right + 8 and b.bottom >= frame.bottom for b in boxes
        ]
        free = (i for i, b in enumerate(boxes) if inside[i] and not any(b.meets(other) for other in taken))
        best = next(free, 0)
        taken.append(boxes[best])
        found.append(tries[best])
    return found
