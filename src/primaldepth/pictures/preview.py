"""Coloured pictures of depth maps, for people to look at: numpy and Pillow, nothing else.

Depth: `DEPTH_COLORS`, plum (small) over blue and green to cream (large), in equal steps of OKLab lightness
from 0.28 to 0.96, interpolated linearly; darker is always smaller. Errors: `ERROR_COLORS`, blue (too small)
over white (right) to red (too large). Pixels without a value are mid-grey.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from primaldepth.core.errors import InputError

RGB = NDArray[np.uint8]
Map = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
ColorLimits = tuple[float, float]
Colors = tuple[tuple[int, int, int], ...]


def _colors(text: str) -> Colors:
    """Read colours as web pages write them."""
    return tuple((int(each[:2], 16), int(each[2:4], 16), int(each[4:], 16)) for each in text.split())


DEPTH_COLORS = _colors("3f0550 511c7c 5938aa 4560d0 278eca 3db790 99cd5d edd650 fdf3b4")
ERROR_COLORS = _colors("0c2c84 4a8ad0 fafaf8 e27454 8c0e18")
INVALID = 128
MAX_WIDTH, MIN_HEIGHT, MAX_HEIGHT = 2400, 240, 1000
_INK, _PAPER, _FAINT = (34, 34, 38), (255, 255, 255), (150, 150, 156)


@dataclass(frozen=True, slots=True)
class Bar:
    """A colour bar below the pictures: what the colours mean, in numbers.

    Args:
        title: what is shown, with its unit if it has one, e.g. "Depth [mm]".
        limits: values at its two ends.
        colors: the table the pictures were coloured with.
    """

    title: str
    limits: ColorLimits
    colors: Colors = DEPTH_COLORS


def robust_limits(depth: Map, valid: Mask) -> ColorLimits:
    """Return the 1st and 99th percentile of the valid values; widened if equal, (0, 1) if none is valid.

    Args:
        depth: (H, W) any unit.
        valid: (H, W).
    """
    values = depth[valid]
    if values.size == 0:
        return 0.0, 1.0
    low, high = (float(value) for value in np.percentile(values.astype(np.float64), (1, 99)))
    if high - low > 1e-6 * max(abs(low), abs(high)):
        return low, high
    spread = 0.01 * abs(low) or 1.0
    return low - spread, high + spread


def colorize(
    depth: Map, valid: Mask, limits: ColorLimits | None = None, colors: Colors = DEPTH_COLORS
) -> RGB:
    """Colour (depth - low) / (high - low), clipped to [0, 1], by the table; mid-grey where not valid.

    Args:
        depth: (H, W) any unit.
        valid: (H, W).
        limits: (low, high), shared by pictures that are compared; None for `robust_limits`.
        colors: control colours, equally spaced.

    Returns:
        (H, W, 3).
    """
    if depth.ndim != 2 or valid.shape != depth.shape:
        raise InputError(
            "depth", f"shape {depth.shape}, valid: shape {valid.shape}, expected (H, W) for both"
        )
    low, high = robust_limits(depth, valid) if limits is None else limits
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError("colour limits", f"({low}, {high}), expected two finite numbers, the smaller first")
    place = (np.where(valid, depth, low).astype(np.float64) - low) / (high - low) * (len(colors) - 1)
    stops = np.arange(len(colors))
    channels = [np.interp(place, stops, channel) for channel in np.array(colors, np.float64).T]
    rgb: RGB = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    rgb[~valid] = INVALID
    return rgb


def error_map(pred: Map, truth: Map, valid: Mask, limit: float) -> RGB:
    """Draw the signed error pred - truth: blue at -limit, white at 0, red at +limit, grey where not valid.

    Args:
        pred: (H, W).
        truth: (H, W) in the same unit.
        valid: (H, W) True where both have a value.
        limit: error that gets the full colour, > 0.
    """
    if pred.shape != truth.shape:
        raise InputError("error map", f"prediction {pred.shape} and truth {truth.shape} differ in shape")
    error = np.where(valid, pred, 0).astype(np.float64) - np.where(valid, truth, 0)
    return colorize(error, valid, (-limit, limit), ERROR_COLORS)


def robust_error(pred: Map, truth: Map, valid: Mask) -> float:
    """Return a limit for `error_map`: the 95th percentile of |pred - truth|, or 1 if there is no error.

    Args:
        pred: (H, W).
        truth: (H, W) in the same unit.
        valid: (H, W) True where both have a value.
    """
    errors = np.abs(pred[valid].astype(np.float64) - truth[valid])
    return (float(np.percentile(errors, 95)) if errors.size else 0.0) or 1.0


def enlarge(rgb: RGB, height: int, width: int) -> RGB:
    """Enlarge by nearest neighbour, so that pixels can be seen: row i shows floor((i + 1/2) h / height).

    Args:
        rgb: (h, w, C).
        height: of the result.
        width: of the result.
    """
    rows = (np.arange(height) * 2 + 1) * rgb.shape[0] // (2 * height)
    columns = (np.arange(width) * 2 + 1) * rgb.shape[1] // (2 * width)
    large: RGB = rgb[rows[:, None], columns]
    return large


def spread(depth: Map, valid: Mask, reach: int) -> tuple[Map, Mask]:
    """Draw every sample as a square of 2 reach + 1 pixels, cut where another one is nearer.

    Args:
        depth: (H, W).
        valid: (H, W), few of them.
        reach: pixels; 0 changes nothing.
    """
    rows, columns = np.nonzero(valid)
    values, mask = depth.copy(), np.zeros_like(valid)
    steps = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    for i, j in sorted(steps, key=lambda step: -math.hypot(*step)):  # what is nearest is drawn last
        y, x = rows + i, columns + j
        inside = (y >= 0) & (y < depth.shape[0]) & (x >= 0) & (x < depth.shape[1])
        values[y[inside], x[inside]] = depth[rows[inside], columns[inside]]
        mask[y[inside], x[inside]] = True
    return values, mask


def draw_samples(
    depth: Map, valid: Mask, limits: tuple[float, float], size: tuple[int, int], reach: int
) -> RGB:
    """Draw samples in colours at the result's `size`; lone ones are larger by `reach` pixels each way.

    Args:
        depth: (h, w) any unit.
        valid: (h, w).
        limits: of the colours.
        size: (H, W) of the picture.
        reach: pixels of `depth`; 0 for samples that lie side by side.
    """
    return enlarge(colorize(*spread(depth, valid, reach), limits), *size)


def mark_filled(rgb: RGB, measured: Mask) -> RGB:
    """Make colours paler and hatched where `measured` is False: depth that was filled in.

    Args:
        rgb: (H, W, 3).
        measured: (H, W).
    """
    if measured.shape != rgb.shape[:2]:
        raise InputError("measured", f"shape {measured.shape}, but the picture has {rgb.shape[:2]}")
    period = max(6, min(rgb.shape[:2]) // 40)
    diagonal = np.add.outer(np.arange(rgb.shape[0]), np.arange(rgb.shape[1]))
    hatch = diagonal % period < max(1, period // 5)
    color = rgb.astype(np.float64)
    luma = color @ np.array([0.299, 0.587, 0.114])
    pale = 0.6 * color + 0.4 * luma[..., None]
    line = np.where(luma < 128, 255.0, 0.0)[..., None]
    filled = np.where(hatch[..., None], 0.6 * pale + 0.4 * line, pale)
    return np.where(measured[..., None], color, np.rint(filled)).astype(np.uint8)


def panel(images: Sequence[tuple[str, RGB]], bars: Sequence[Bar] = (), max_width: int = MAX_WIDTH) -> RGB:
    """Put pictures side by side at one height, each below its title, with colour bars at the bottom.

    Args:
        images: (title, (H, W, 3)) in order; they are brought to the tallest one's height, within bounds.
        bars: what the colours of the pictures mean.
        max_width: of the whole panel, in pixels.
    """
    if not images:
        raise InputError("panel", "no picture was given, at least one is needed")
    for title, rgb in images:
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or rgb.size == 0:
            raise InputError(
                f"picture '{title}'", f"shape {rgb.shape}, {rgb.dtype}, expected uint8 (H, W, 3)"
            )
    gap = 12
    sizes = _panel_sizes([rgb.shape for _, rgb in images], max_width - gap * (len(images) + 1))
    text = round(min(26, max(14, min(width for width, _ in sizes) / 20)))
    top, height = gap // 2 + 2 * text, sizes[0][1]
    total = sum(width for width, _ in sizes) + gap * (len(images) + 1)
    canvas = Image.new("RGB", (total, top + height + gap + (4 * text if bars else 0)), _PAPER)
    left = gap
    for (title, rgb), size in zip(images, sizes, strict=True):
        picture = Image.fromarray(rgb)
        smaller = size[1] < picture.height
        canvas.paste(
            picture.resize(size, Image.Resampling.BOX if smaller else Image.Resampling.NEAREST), (left, top)
        )
        _write(canvas, (left, top - text // 2), title, text, size[0], "ls")
        left += size[0] + gap
    for index, bar in enumerate(bars):
        span = (total - gap) // len(bars)
        _draw_bar(canvas, bar, (gap + index * span, top + height + gap), span - gap, text)
    return np.asarray(canvas)


def overview(
    guide: RGB,
    low: Map,
    low_valid: Mask,
    depth: Map,
    valid: Mask,
    *,
    name: str = "Depth",
    unit: str = "",
    measured: Mask | None = None,
    truth: Map | None = None,
    truth_valid: Mask | None = None,
    reach: int = 0,
) -> RGB:
    """Draw the picture of one result: guide, input, result, and with `truth` also the truth and the error.

    Args:
        guide: (H, W, 3).
        low: (h, w) what the sensor gave.
        low_valid: (h, w).
        depth: (H, W) the result, in the unit of `low`.
        valid: (H, W).
        name: what the values are, e.g. "Disparity"; shown at the colour bar with `unit`.
        unit: e.g. "mm"; empty for none.
        measured: (H, W) False where holes were filled; they are hatched.
        truth: (H, W) in the unit of `low`.
        truth_valid: (H, W); None where all of it is.
        reach: pixels of `low` by which lone samples are drawn larger.

    Returns:
        The picture, (h, w, 3).
    """
    height, width = depth.shape
    known = np.ones_like(valid) if truth_valid is None else truth_valid
    limits = robust_limits(depth, valid) if truth is None else robust_limits(truth, known)
    label = f" [{unit}]" if unit else ""
    filled = np.zeros_like(valid) if measured is None else valid & ~measured
    result = mark_filled(colorize(depth, valid, limits), ~filled)
    samples = draw_samples(low, low_valid, limits, (height, width), reach)
    larger = " (samples drawn larger)" if reach else ""
    images = [
        (f"Guide {width} x {height}", guide),
        (f"Input {low.shape[1]} x {low.shape[0]}{larger}", samples),
        (f"Result {width} x {height}" + (" (hatched: filled in)" if filled.any() else ""), result),
    ]
    bars = [Bar(f"{name}{label}", limits)]
    if truth is not None:
        both = valid & known
        limit = robust_error(depth, truth, both)
        images += [("Truth", colorize(truth, known, limits)), ("Error", error_map(depth, truth, both, limit))]
        bars.append(Bar(f"Error{label}", (-limit, limit), ERROR_COLORS))
    return panel(images, bars)


def _panel_sizes(shapes: Sequence[tuple[int, ...]], room: int) -> list[tuple[int, int]]:
    """Return (width, height) of each picture: one height, widths in proportion, together within `room`."""
    aspects = [shape[1] / shape[0] for shape in shapes]
    height = min(MAX_HEIGHT, max(MIN_HEIGHT, *(shape[0] for shape in shapes)))
    height = max(1, min(height, math.floor(room / sum(aspects))))
    return [(max(1, math.floor(aspect * height)), height) for aspect in aspects]


def _write(
    canvas: Image.Image, place: tuple[float, float], text: str, size: int, room: float, anchor: str
) -> None:
    """Write text no wider than `room`: smaller down to 11 pixels, then cut with an ellipsis."""
    font = ImageFont.load_default(size)
    while font.getlength(text) > room and size > 11:
        size -= 1
        font = ImageFont.load_default(size)
    while font.getlength(text) > room and len(text) > 1:
        text = text.rstrip("…")[:-1] + "…"
    ImageDraw.Draw(canvas).text(place, text, _INK, font, anchor)


def _draw_bar(canvas: Image.Image, bar: Bar, corner: tuple[int, int], width: int, text: int) -> None:
    """Draw the title, the bar right of it, and numbers below the bar."""
    left, top = corner
    title = ImageFont.load_default(text).getlength(bar.title)
    _write(canvas, (left, top + text), bar.title, text, width / 2, "lm")
    start = left + min(title, width / 2) + text
    length = max(2, math.floor(min(width - (start - left) - 2 * text, 900)))
    ramp = np.linspace(*bar.limits, length)[None].repeat(text, axis=0)
    strip = colorize(ramp, np.ones(ramp.shape, bool), bar.limits, bar.colors)
    canvas.paste(Image.fromarray(strip), (round(start), top + text // 2))
    draw = ImageDraw.Draw(canvas)
    low, high = bar.limits
    for value, label in ticks(low, high, max(2, length // (5 * text))):
        x = round(start + (value - low) / (high - low) * (length - 1))
        draw.line([(x, top + text // 2 + text), (x, top + text // 2 + text + text // 4)], _FAINT, 1)
        _write(canvas, (x, top + 2 * text + text // 8), label, round(0.85 * text), 5 * text, "ma")


def ticks(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Return about `count` round numbers in [low, high], 1, 2, 2.5 or 5 times a power of ten apart.

    Args:
        low: least value.
        high: largest value, above `low`.
        count: how many are wanted.

    Returns:
        Each number with its text.
    """
    raw = (high - low) / count
    power = math.floor(math.log10(raw))
    step = next(m * 10.0**power for m in (1, 2, 2.5, 5, 10) if m * 10.0**power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = next((d for d in range(6) if abs(step - round(step, d)) < 1e-9 * step), None)
    fixed = decimals is not None and max(abs(low), abs(high)) < 1e7
    values = [index * step for index in range(first, last + 1)]
    return [(value, f"{value:.{decimals}f}" if fixed else f"{value:.4g}") for value in values]
