"""Accuracy against runtime, every point with its name beside it."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from primaldepth.report.figures import FAINT, FAMILIES, Point, drawing

_WIDTH, _HEIGHT = 4.6, 5.0
_TICKS = [m * 10.0**e for e in range(-1, 4) for m in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)]
_TRIES = 60  # orders in which names take their places
_NEAR = 7.0  # points between a mark and its name
_LETTER, _LINE = 5.0, 9.5  # points that a letter and a line of 8-point text take


class Rectangle(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "Rectangle") -> bool:
        """Whether they share area."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.top <= other.bottom or other.top <= self.bottom)

    def holds(self, other: "Rectangle") -> bool:
        """Whether the other lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.bottom <= other.bottom and other.top <= self.top


def runtime_figure(points: Sequence[Point], unit: str) -> bytes:
    """Draw the geometric mean of RMSE against seconds per frame, on logarithmic axes.

    Args:
        points: a method each.
        unit: of the RMSE.

    Returns:
        SVG.
    """
    with drawing(_WIDTH, _HEIGHT) as canvas:
        axes = canvas.figure.subplots()
        for family, (color, shape) in FAMILIES.items():
            own = [point for point in points if point.family == family]
            if own:
                x, y = [p.seconds for p in own], [p.rmse for p in own]
                axes.scatter(x, y, s=34, marker=shape, color=color, label=family, zorder=3)
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.15, y=0.15)
        low, high = axes.get_ylim()
        axes.set_yticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlabel("seconds per frame, one thread")
        axes.set_ylabel(f"geometric mean of RMSE [{unit}]")
        columns = min(3, len({point.family for point in points}))
        axes.legend(ncols=columns, loc="lower left", bbox_to_anchor=(0, 1.0), handletextpad=0.2)
        canvas.figure.draw_without_rendering()
        inch = canvas.figure.dpi / 72
        drawn = axes.transData.transform([(p.seconds, p.rmse) for p in points])
        places = [(float(x) / inch, float(y) / inch) for x, y in drawn]
        window = axes.get_window_extent()
        frame = Rectangle(window.x0 / inch, window.y0 / inch, window.x1 / inch, window.y1 / inch)
        offsets = label_offsets([point.name for point in points], places, frame)
        for point, offset in zip(points, offsets, strict=True):
            far = abs(offset[1]) > _NEAR or offset[0] > 2 * _NEAR
            axes.annotate(
                point.name,
                (point.seconds, point.rmse),
                offset,
                textcoords="offset points",
                fontsize=8,
                color=FAMILIES[point.family][0],
                va="center",
                arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.7, "shrinkB": 3}
                if far
                else None,
            )
    return canvas.svg


def label_offsets(
    names: Sequence[str], places: Sequence[tuple[float, float]], frame: Rectangle
) -> list[tuple[float, float]]:
    """Return where each name starts, in points from its own place.

    Names take the nearest free place one after the other; of several orders the one with the shortest
    ways wins. The orders are the same every time.
    """
    orders = [list(range(len(names))) for _ in range(_TRIES)]
    for seed, order in enumerate(orders):
        random.Random(seed).shuffle(order)  # noqa: S311
    found = [_placed(names, places, frame, order) for order in orders]
    return min(found, key=lambda offsets: sum(_way(name, *o) for name, o in zip(names, offsets, strict=True)))


def _way(name: str, dx: float, dy: float) -> float:
    """Return the squared distance from the mark to the nearest point of the text."""
    across = max(0.0, dx, -dx - _LETTER * len(name))
    return across**2 + dy**2


def _placed(
    names: Sequence[str], places: Sequence[tuple[float, float]], frame: Rectangle, order: Sequence[int]
) -> list[tuple[float, float]]:
    taken = [Rectangle(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    found = dict.fromkeys(range(len(names)), (0.0, 0.0))
    for index in order:
        (x, y), width = places[index], _LETTER * len(names[index])
        for dx, dy in _around(width):
            box = Rectangle(x + dx, y + dy - _LINE / 2, x + dx + width, y + dy + _LINE / 2)
            if frame.holds(box) and not any(box.meets(other) for other in taken):
                break
        taken.append(box)
        found[index] = (dx, dy)
    return list(found.values())


def _around(width: float) -> Iterator[tuple[float, float]]:
    """Yield places for a text of this width near the origin: right, left, above and below, ever farther."""
    yield from ((_NEAR, 0.0), (-_NEAR - width, 0.0))
    for dy in range(8, 96, 6):
        for dx in (-width / 2, _NEAR, -_NEAR - width, 2.5 * _NEAR, -2.5 * _NEAR - width):
            yield from ((dx, float(dy)), (dx, float(-dy)))
