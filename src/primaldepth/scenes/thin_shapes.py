"""Thin and flat shapes: planes, cloth, paper, leaves, outlines cut from boards."""

from dataclasses import replace

import numpy as np

from primaldepth.scenes.meshes import Floats, ShapeMesh, block, facets, grid, merge
from primaldepth.scenes.solid_shapes import Options


def plane(options: Options) -> ShapeMesh:
    """Make a rectangle in x and y with `tiles` copies of the texture a side, each second mirrored."""
    tiles = int(options.get("tiles", 1))
    edges = np.linspace(-1, 1, tiles + 1)
    x0, y0 = np.meshgrid(edges[:-1], edges[:-1])
    x1, y1 = np.meshgrid(edges[1:], edges[1:])
    odd_x, odd_y = np.meshgrid(np.arange(tiles) % 2 == 1, np.arange(tiles) % 2 == 1)
    left, right = np.where(odd_x, x1, x0), np.where(odd_x, x0, x1)
    low, high = np.where(odd_y, y1, y0), np.where(odd_y, y0, y1)
    corners = [(left, low), (right, low), (right, high), (left, high)]
    quads = np.stack([np.stack([x, y, 0 * x], -1).reshape(-1, 3) for x, y in corners], axis=1)
    return facets(quads)


def cloth(options: Options) -> ShapeMesh:
    """Make folded cloth: waves along one direction that fade and bend, from `seed`; `folds` of them."""
    rng = np.random.default_rng(int(options["seed"]))
    x, y = np.meshgrid(np.linspace(-1, 1, 61), np.linspace(-1, 1, 41))
    phase = (
        options.get("folds", 4.0) * np.pi * (x + 0.25 * np.sin(2 * y + rng.uniform(0, 6)) * rng.uniform(0, 1))
    )
    depth = (0.55 + 0.45 * np.sin(1.7 * y + rng.uniform(0, 6))) * np.sin(phase + rng.uniform(0, 6))
    depth += 0.4 * np.sin(0.37 * phase + 2 * y + rng.uniform(0, 6))
    depth += options.get("crumple", 0.1) * _wrinkles(rng, x, y)
    sway = 0.04 * np.sin(3 * y + rng.uniform(0, 6)) + 0.05 * np.cos(phase)
    return grid(np.stack([x + sway, y, depth], -1))


def drape(options: Options) -> ShapeMesh:
    """Make a cloth thrown over a box: flat on top, falling in folds that widen towards the hem."""
    rng = np.random.default_rng(int(options["seed"]))
    s, t = np.meshgrid(np.linspace(-1, 1, 57), np.linspace(-1, 1, 57))
    reach = options.get("reach", 0.55)
    out = np.maximum(np.abs(s), np.abs(t)) - reach
    fall = np.maximum(out, 0) / (1 - reach)
    angle = np.arctan2(t, s)
    folds = np.sin(options.get("folds", 9.0) * angle + rng.uniform(0, 6) + 2 * np.sin(angle * 2))
    spread = 0.25 * fall + 0.12 * fall * folds
    x = np.clip(s, -reach, reach) + spread * np.cos(angle)
    z = np.clip(t, -reach, reach) + spread * np.sin(angle)
    y = -(fall**1.1) + 0.02 * _wrinkles(rng, s, t)
    return grid(np.stack([x, y, z], -1)[::-1])


def curl(options: Options) -> ShapeMesh:
    """Make paper rolled along x: a random smooth curve in x and z, from `seed`, drawn out along y."""
    rng = np.random.default_rng(int(options["seed"]))
    t = np.linspace(0, 1, 41)
    turning = options.get("bend", 4.0) * (rng.uniform(-1, 1) * t + rng.uniform(-1, 1) * np.sin(3 * t))
    x, z = np.cumsum(np.cos(turning)), np.cumsum(np.sin(turning))
    y = np.linspace(-1, 1, 9)[:, None]
    return grid(np.stack([x + 0 * y, y + 0 * x, z + 0 * y], -1))


def corrugated(options: Options) -> ShapeMesh:
    """Make a wavy board, `waves` across."""
    x = np.linspace(-1, 1, 81)
    y = np.linspace(-1, 1, 3)[:, None]
    z = np.sin(np.pi * options.get("waves", 8.0) * x)
    return grid(np.stack([x + 0 * y, y + 0 * x, z + 0 * y], -1))


def open_book(options: Options) -> ShapeMesh:
    """Make an open book lying on its back: two heaps of pages that bow towards the fold."""
    bow = options.get("bow", 0.5)
    x = np.concatenate([np.linspace(-1, -0.02, 24), [0.0], np.linspace(0.02, 1, 24)])
    top = bow * np.sin(np.pi * np.abs(x) ** 0.7) + 0.35 * (1 - np.abs(x)) * (np.abs(x) > 0.01)
    z = np.linspace(-1, 1, 3)[:, None]
    pages = grid(np.stack([x + 0 * z, top + 0 * z, -z + 0 * x], -1))
    return merge([pages, block([-1, -0.35, -1], [1, -0.05, 1])])


def ribbon(options: Options) -> ShapeMesh:
    """Make a strip that runs in a ring and turns over `twists` half times: 1 is Moebius' band."""
    angle = np.linspace(0, 2 * np.pi, 65)[:, None]
    across = np.linspace(-1, 1, 7)[None] * options.get("wide", 0.35)
    turn = options.get("twists", 1.0) * angle / 2
    radius = 1 + across * np.cos(turn)
    points = np.stack([radius * np.cos(angle), across * np.sin(turn) + 0 * angle, radius * np.sin(angle)], -1)
    return grid(points)


def plant(options: Options) -> ShapeMesh:
    """Make a tuft of `leaves` bent leaves from `seed`."""
    rng = np.random.default_rng(int(options["seed"]))
    leaves = [_leaf(rng, options.get("wide", 0.12)) for _ in range(int(options.get("leaves", 9)))]
    return merge(leaves)


def outline(options: Options) -> ShapeMesh:
    """Make a board cut along r(angle) = 1 + `depth` wave(`points` angle), with a round hole of radius `hole`.

    `kind` 0 is a smooth flower, 1 a star, 2 a gear, 3 a random smooth outline.
    """
    rng = np.random.default_rng(int(options.get("seed", 0)))
    angle = np.linspace(0, 2 * np.pi, 97)
    angle[-1] = 0.0
    radius = 1 + options.get("depth", 0.3) * _wave(int(options.get("kind", 0)), angle, options, rng)
    edge = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    hole = options.get("hole", 0.0) * np.stack([np.cos(angle), np.sin(angle)], 1) * radius.min()
    return _board(edge, hole, 0.1)


def glyphs(options: Options) -> ShapeMesh:
    """Make letter-like strokes cut from a board: random bars on a raster of `letters` signs, from `seed`."""
    rng = np.random.default_rng(int(options["seed"]))
    letters = int(options.get("letters", 3))
    cells = np.zeros((7, 6 * letters - 1), dtype=bool)
    for k in range(letters):
        sign = cells[:, 6 * k : 6 * k + 5]
        for column in rng.choice(3, rng.integers(1, 3), replace=False):
            sign[rng.integers(0, 2) : 7 - rng.integers(0, 2), 2 * column] = True
        for row in rng.choice(3, rng.integers(1, 4), replace=False):
            sign[3 * row, :] = True
    cells[-1] = True  # joins them
    return raised(cells, 0.15)


def lattice(options: Options) -> ShapeMesh:
    """Make a board of `rows` times `columns` square holes, `open` cells wide each way."""
    rows, columns = int(options.get("rows", 4)), int(options.get("columns", 4))
    open_cells, bar = int(options.get("open", 3)), 1
    pattern = np.zeros((rows * (open_cells + bar) + bar, columns * (open_cells + bar) + bar), dtype=bool)
    pattern[:: open_cells + bar] = True
    pattern[:, :: open_cells + bar] = True
    return raised(pattern, 0.08)


def raised(cells: np.ndarray, thick: float) -> ShapeMesh:
    """Make a board of the cells that are True, with front, back, and a wall where a cell ends.

    Args:
        cells: (rows, columns) bool.
        thick: in widths of the longer side.
    """
    rows, columns = cells.shape
    r, c = np.nonzero(cells)
    z = thick * max(rows, columns) / 2
    quads = [_quads(c, r, [(0, 0), (1, 0), (1, 1), (0, 1)], [side] * 4) for side in (-z, z)]
    padded = np.pad(cells, 1)
    walls = [
        ((0, -1), (0, 0), (1, 0)),
        ((0, 1), (0, 1), (1, 1)),
        ((-1, 0), (0, 0), (0, 1)),
        ((1, 0), (1, 0), (1, 1)),
    ]
    for (dx, dy), start, end in walls:
        r, c = np.nonzero(cells & ~padded[1 + dy : rows + 1 + dy, 1 + dx : columns + 1 + dx])
        quads.append(_quads(c, r, [start, end, end, start], [-z, -z, z, z]))
    points = np.concatenate(quads)
    mesh = facets(points)
    uv = mesh.vertices[:, :2] / [columns, rows]  # one texture over the whole board
    return replace(mesh, vertices=mesh.vertices * [1, -1, 1], uv=uv)


def _quads(c: np.ndarray, r: np.ndarray, corners: list[tuple[int, int]], z: list[float]) -> Floats:
    points = [
        np.stack([c + dx, r + dy, np.full(len(c), depth)], -1)
        for (dx, dy), depth in zip(corners, z, strict=True)
    ]
    return np.stack(points, axis=1).astype(np.float64)


def _board(edge: Floats, hole: Floats, thick: float) -> ShapeMesh:
    """Return the flat ring between two outlines, with its walls."""

    def at(line: Floats, z: float) -> Floats:
        return np.column_stack([line, np.full(len(line), z)])

    strips = [
        (at(hole, -thick), at(edge, -thick)),
        (at(edge, -thick), at(edge, thick)),
        (at(edge, thick), at(hole, thick)),
        (at(hole, thick), at(hole, -thick)),
    ]
    parts = [grid(np.stack(strip)) for strip in strips]
    span = np.abs(edge).max()
    for side in (0, 2):  # one texture over the whole front, and back
        flat = parts[side]
        parts[side] = replace(flat, uv=flat.vertices[:, :2] / (2 * span) + 0.5)
    return merge(parts)


def _wave(kind: int, angle: Floats, options: Options, rng: np.random.Generator) -> Floats:
    turns = options.get("points", 5.0) * angle
    if kind == 0:
        return np.asarray(np.cos(turns))
    if kind == 1:
        return np.asarray(2 * np.abs((turns / (2 * np.pi)) % 1 - 0.5) * 2 - 1)
    if kind == 2:
        return np.sign(np.cos(turns))
    waves = [rng.normal() / k * np.cos(k * angle + rng.uniform(0, 6.28)) for k in range(1, 7)]
    return np.asarray(np.clip(np.sum(waves, axis=0), -1.5, 1.5))


def _leaf(rng: np.random.Generator, wide: float) -> ShapeMesh:
    t = np.linspace(0, 1, 11)[:, None]
    across = np.linspace(-1, 1, 3)[None]
    width = wide * np.sin(np.pi * t**0.8) * rng.uniform(0.6, 1.3) + 0.01
    heading, lean, bend = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.9), rng.uniform(0.2, 1.5)
    out, up = lean * t + 0.4 * bend * t**2, t - 0.35 * bend * t**2
    x = out * np.cos(heading) - width * across * np.sin(heading)
    z = out * np.sin(heading) + width * across * np.cos(heading)
    return grid(np.stack([x, (up + 0.1 * width * np.abs(across)) * rng.uniform(0.6, 1), z], -1))


def _wrinkles(rng: np.random.Generator, x: Floats, y: Floats) -> Floats:
    total = np.zeros_like(x)
    for _ in range(5):
        a, b = rng.normal(0, 5, 2)
        total += np.sin(a * x + b * y + rng.uniform(0, 6.28)) / 2.5
    return total
