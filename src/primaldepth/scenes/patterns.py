"""Procedural textures: square grey pictures in [0, 1], each a pure function of its random numbers."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Grey = NDArray[np.float32]
Pattern = Callable[[np.random.Generator, int], Grey]


def noise(rng: np.random.Generator, size: int) -> Grey:
    """Draw fractal noise: octaves of smoothed random numbers, each twice as fine and `fall` as strong."""
    fall, first = rng.uniform(0.35, 0.8), int(rng.integers(2, 9))
    total, weight = np.zeros((size, size), np.float32), 1.0
    cells = first
    while cells <= size // 2:
        total += weight * smooth(rng.random((cells, cells), dtype=np.float32), size)
        weight, cells = weight * fall, cells * 2
    return _stretched(total)


def marble(rng: np.random.Generator, size: int) -> Grey:
    """Draw veins: sin of a plane wave bent by noise; with little bending, the grain of wood."""
    x, y = _turned(rng, size)
    bent = rng.uniform(3, 12) * x + rng.uniform(0, 3) * y + rng.uniform(0.5, 4) * noise(rng, size)
    return _stretched(np.sin(2 * np.pi * bent).astype(np.float32) + 0.3 * noise(rng, size))


def stripes(rng: np.random.Generator, size: int) -> Grey:
    """Draw parallel bands of random widths and greys, or of one width and two greys."""
    x, _ = _turned(rng, size)
    bands = int(rng.integers(3, 20))
    place = (x + 1) / 2 * bands
    if rng.random() < 0.5:
        return np.asarray((place % 1 < rng.uniform(0.2, 0.8)), np.float32)
    greys = rng.random(bands * 2 + 4, dtype=np.float32)
    return np.asarray(greys[np.clip(place + bands / 2, 0, len(greys) - 1).astype(int)], np.float32)


def checks(rng: np.random.Generator, size: int) -> Grey:
    """Draw a chessboard, or tartan: the mean of two sets of stripes across each other."""
    x, y = _turned(rng, size)
    n = rng.uniform(1.5, 8)
    if rng.random() < 0.4:
        return np.asarray((np.floor(n * x) + np.floor(n * y)) % 2, np.float32)
    greys = rng.random(97, dtype=np.float32)
    across = greys[np.floor(3 * n * (x + 2)).astype(int) % 97]
    along = greys[np.floor(3 * n * (y + 2)).astype(int) % 97]
    return np.asarray((across + along) / 2, np.float32)


def dots(rng: np.random.Generator, size: int) -> Grey:
    """Draw round dots on a turned square raster."""
    x, y = _turned(rng, size)
    n = rng.uniform(2, 10)
    distance = np.hypot((n * x) % 1 - 0.5, (n * y) % 1 - 0.5)
    return np.asarray(np.clip((rng.uniform(0.15, 0.45) - distance) * size / n / 2 + 0.5, 0, 1), np.float32)


def cells(rng: np.random.Generator, size: int) -> Grey:
    """Draw stones: every pixel takes the grey of the nearest of some random points, dark between two."""
    count = int(rng.integers(12, 70))
    points, greys = rng.random((count, 2)), rng.random(count).astype(np.float32)
    axis = (np.arange(128) + 0.5) / 128
    distance = (axis[:, None, None] - points[:, 0]) ** 2 + (axis[None, :, None] - points[:, 1]) ** 2
    nearest = np.partition(distance, 1, axis=-1)
    joint = np.clip((np.sqrt(nearest[..., 1]) - np.sqrt(nearest[..., 0])) * 30, 0, 1)
    return smooth((greys[distance.argmin(-1)] * 0.7 + 0.3) * joint.astype(np.float32), size)


def grain(rng: np.random.Generator, size: int) -> Grey:
    """Draw fine random grain, sometimes drawn out along one direction like brushed metal or fibre."""
    stretch = int(rng.choice([1, 1, 2, 8, 32]))
    fine = rng.random((size, max(2, size // stretch)), dtype=np.float32)
    return _stretched(smooth(fine, size) + 0.3 * noise(rng, size))


def gradient(rng: np.random.Generator, size: int) -> Grey:
    """Draw a smooth change from one side to the other, or from the middle outwards."""
    x, y = _turned(rng, size)
    return _stretched(x + 0.2 * y if rng.random() < 0.6 else np.hypot(x - rng.uniform(-1, 1), y))


def text(rng: np.random.Generator, size: int) -> Grey:
    """Draw lines of word-like marks, sometimes with a headline and a picture, as on a printed page."""
    page = np.ones((size, size), np.float32)
    height = int(rng.integers(5, 22))
    y = int(rng.integers(2, 20))
    while y + height < size:
        _print_line(rng, page, y, height)
        y += int(height * rng.uniform(1.5, 2.2))
        if rng.random() < 0.08:
            height = int(rng.integers(5, 30))
    if rng.random() < 0.4:
        top, left, side = (*rng.integers(0, size // 2, 2), size // 3)
        page[top : top + side, left : left + side] = noise(rng, size)[:side, :side]
    return page


def scribble(rng: np.random.Generator, size: int) -> Grey:
    """Draw level lines of smooth noise: a drawing, a map, a crackled glaze."""
    levels = noise(rng, size) * rng.uniform(3, 10)
    return np.asarray(np.clip(np.abs(levels % 1 - 0.5) * rng.uniform(4, 10), 0, 1), np.float32)


def patches(rng: np.random.Generator, size: int) -> Grey:
    """Draw random rectangles over each other: a collage, a quilt, a facade."""
    page = np.full((size, size), rng.random(), np.float32)
    for _ in range(int(rng.integers(10, 60))):
        top, left = rng.integers(0, size, 2)
        high, wide = (size * rng.uniform(0.03, 0.4, 2)).astype(int) + 1
        page[top : top + high, left : left + wide] = rng.random()
    return page


PATTERNS: dict[str, Pattern] = {
    pattern.__name__: pattern
    for pattern in (
        noise, marble, stripes, checks, dots, cells, grain, gradient, text, scribble, patches
    )
}  # fmt: skip


def smooth(values: Grey, size: int) -> Grey:
    """Return (n, m) numbers interpolated to (size, size)."""
    return np.asarray(Image.fromarray(values).resize((size, size), Image.Resampling.BICUBIC), np.float32)


def _turned(rng: np.random.Generator, size: int) -> tuple[Grey, Grey]:
    """Return coordinates x and y in [-1, 1] of each pixel, turned by a random angle in four cases of ten."""
    angle = 0.0 if rng.random() < 0.6 else rng.uniform(0, np.pi)
    axis = ((np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1).astype(np.float32)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return c * x + s * y, c * y - s * x


def _stretched(values: Grey) -> Grey:
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) / max(high - low, 1e-6), np.float32)


def _print_line(rng: np.random.Generator, page: Grey, y: int, height: int) -> None:
    """Draw words as rows of strokes; a word is a run of letters, a letter one to three strokes."""
    size, x = page.shape[1], int(rng.integers(2, 12))
    end = size - int(rng.integers(2, 12)) if rng.random() < 0.8 else int(size * rng.uniform(0.3, 0.9))
    stroke = max(1, height // 6)
    while x < end:
        letters = int(rng.integers(2, 10))
        for _ in range(letters):
            wide = max(2, int(height * rng.uniform(0.35, 0.7)))
            top = y - int(height * 0.3) * int(rng.random() < 0.25)
            page[max(top, 0) : y + height, x : x + stroke] = 0
            if rng.random() < 0.7:
                bar = y + int(rng.integers(0, 3)) * (height - stroke) // 2
                page[bar : bar + stroke, x : x + wide - 1] = 0
            if rng.random() < 0.5:
                page[y : y + height, x + wide - stroke - 1 : x + wide - 1] = 0
            x += wide + stroke
            if x >= end:
                break
        x += height // 2 + 2
