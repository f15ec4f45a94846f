"""Colour bars and histograms as HTML and SVG: in the page's own colours, light or dark, without a script."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from primaldepth.pictures.preview import DEPTH_COLORS, ColorLimits, Colors, ticks

_WIDTH, _HEIGHT, _FOOT = 600, 220, 24
_BINS = 64


def colour_bar(title: str, limits: ColorLimits, colors: Colors = DEPTH_COLORS) -> str:
    """Draw what the colours of a picture mean, in numbers.

    Args:
        title: with the unit.
        limits: values at the two ends.
        colors: of the picture.

    Returns:
        HTML.
    """
    stops = ", ".join(f"rgb{color}" for color in colors)
    marks = "".join(f'<span style="left:{at:.2f}%">{label}</span>' for at, label in _marks(limits, 5))
    spoken = f"{escape(title)} from {limits[0]:.4g} to {limits[1]:.4g}"
    return (
        f'<div class="pd-bar" role="img" aria-label="{spoken}">'
        f"<div>{escape(title)}</div>"
        f'<div class="pd-ramp" style="background:linear-gradient(to right, {stops})"></div>'
        f'<div class="pd-marks">{marks}</div></div>'
    )


def histogram(
    title: str, limits: ColorLimits, before: NDArray[np.float64], after: NDArray[np.float64]
) -> str:
    """Draw a histogram: the samples as a line, the result as an area, in equal bins.

    Args:
        title: with the unit.
        limits: values at the two ends; what lies beyond counts there.
        before: values of the samples.
        after: values of the result.

    Returns:
        HTML with an SVG in it.
    """
    edges = np.linspace(*limits, _BINS + 1)
    shares = [_shares(values, edges) for values in (before, after)]
    top = max(float(np.max(share)) for share in shares) or 1.0
    line, area = (_path(share / top) for share in shares)
    axis = "".join(
        f'<text x="{at / 100 * _WIDTH:.1f}" y="{_HEIGHT + 17}" text-anchor="middle">{label}</text>'
        for at, label in _marks(limits, 6)
    )
    return (
        f'<figure class="pd-histogram"><svg viewBox="-20 -6 {_WIDTH + 40} {_HEIGHT + _FOOT + 6}" role="img" '
        f'aria-label="Histogram: {escape(title)}">'
        f'<polygon class="pd-area" points="0,{_HEIGHT} {area} {_WIDTH},{_HEIGHT}"/>'
        f'<polyline class="pd-line" points="{line}"/>'
        f'<line class="pd-axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>{axis}</svg>'
        f'<figcaption>{escape(title)}: <span class="pd-key pd-key-line"></span> samples, '
        '<span class="pd-key pd-key-area"></span> result</figcaption></figure>'
    )


def _shares(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return counts / max(values.size, 1)


def _path(heights: NDArray[np.float64]) -> str:
    """Return the path of a line with a horizontal step as wide as its bin for each height."""
    points: list[str] = []
    for index, height in enumerate(heights):
        y = f"{_HEIGHT * (1 - height):.1f}"
        points += [f"{index * _WIDTH / _BINS:.1f},{y}", f"{(index + 1) * _WIDTH / _BINS:.1f},{y}"]
    return " ".join(points)


def _marks(limits: ColorLimits, count: int) -> Sequence[tuple[float, str]]:
    """Return (place in per cent, label) of about `count` round numbers."""
    low, high = limits
    return [(100 * (value - low) / (high - low), label) for value, label in ticks(low, high, count)]
