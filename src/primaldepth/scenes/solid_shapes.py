"""Solid shapes: what a hand could hold. Each function makes one from its options."""

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np

from primaldepth.scenes.meshes import Floats, ShapeMesh, block, facets, grid, lathe, merge, tube

Options = Mapping[str, float]


def box(_: Options) -> ShapeMesh:
    """Make a box with the texture on every side."""
    return block([-1, -1, -1], [1, 1, 1])


def cylinder(options: Options) -> ShapeMesh:
    """Make a cylinder; `top`, the ratio of its radii, makes it a frustum (1 is straight, 0 a cone)."""
    top = options.get("top", 1.0)
    return lathe([[(0, -1), (1, -1)], [(1, -1), (top, 1)], [(top, 1), (0, 1)]])


def cup(options: Options) -> ShapeMesh:
    """Make an open vessel with a wall of thickness `wall`; `top` as for the cylinder."""
    top, wall = options.get("top", 1.2), options.get("wall", 0.08)
    return lathe(
        [
            [(0, -1), (1, -1)],
            [(1, -1), (top, 1)],
            [(top, 1), (top - wall, 1)],
            [(top - wall, 1), (1 - wall, wall - 1)],
            [(1 - wall, wall - 1), (0, wall - 1)],
        ]
    )


def vase(options: Options) -> ShapeMesh:
    """Make a turned vessel: a smooth random profile from `seed`, open at the top."""
    rng = np.random.default_rng(int(options["seed"]))
    y = np.linspace(-1, 1, 24)
    radius = 0.6 + 0.1 * rng.random() + _waves(rng, y, 3, 0.35)
    radius = np.maximum(radius, 0.18)
    outside = np.stack([radius, y], 1)
    inside = np.stack([np.maximum(radius - 0.07, 0.02), y], 1)[:5:-1]
    return lathe([[(0, -1), outside[0]], outside, [outside[-1], inside[0]], inside, [inside[-1], (0, y[6])]])


def turned(options: Options) -> ShapeMesh:
    """Make a closed turned body, a chess piece or a bottle: radii from `seed`, some steps sharp."""
    rng = np.random.default_rng(int(options["seed"]))
    heights = np.sort(rng.uniform(-1, 1, 5))
    knots = np.concatenate([[-1.0], heights, [1.0]])
    pieces: list[Floats] = []
    radius = rng.uniform(0.4, 1.0)
    for low, high in itertools.pairwise(knots):
        end = rng.uniform(0.15, 1.0)
        t = np.linspace(0, 1, 6)
        bulge = rng.uniform(-0.2, 0.2) * np.sin(np.pi * t)
        pieces.append(
            np.stack([np.maximum(radius + (end - radius) * t + bulge, 0.05), low + (high - low) * t], 1)
        )
        radius = end if rng.random() < 0.6 else rng.uniform(0.15, 1.0)
    closed: list[Floats] = [np.array([[0.0, -1.0], pieces[0][0]])]
    for piece in pieces:
        closed += [np.stack([closed[-1][-1], piece[0]]), piece]
    return lathe([*closed, np.stack([pieces[-1][-1], [0.0, 1.0]])], segments=28)


def superquadric(options: Options) -> ShapeMesh:
    """Make a superquadric, from pillow to octahedron.

    x = c(eta)^e1 c(omega)^e2, y = s(eta)^e1, z = c(eta)^e1 s(omega)^e2
    """
    e1, e2 = options.get("e1", 0.5), options.get("e2", 0.5)
    eta = np.linspace(-np.pi / 2, np.pi / 2, 25)[:, None]
    omega = np.linspace(-np.pi, np.pi, 41)[None]
    ce, se = _power(np.cos(eta), e1), _power(np.sin(eta), e1)
    co, so = _power(np.cos(omega), e2), _power(np.sin(omega), e2)
    points = np.stack([ce * co, se + 0 * co, ce * so], -1)
    points[:, -1] = points[:, 0]
    points[0], points[-1] = [0, -1, 0], [0, 1, 0]
    return grid(points[:, ::-1], wrap=(False, True))


def blob(options: Options) -> ShapeMesh:
    """Make a ball with bumps: a stone, a head, a toy; `bumps` is their height, `detail` their number."""
    rng = np.random.default_rng(int(options["seed"]))
    theta = np.linspace(0, np.pi, 33)[:, None]
    phi = np.linspace(0, 2 * np.pi, 49)[None]
    phi = np.where(phi > 6.28, 0.0, phi)
    directions = np.stack(
        [np.sin(theta) * np.cos(phi), np.cos(theta) + 0 * phi, np.sin(theta) * np.sin(phi)], -1
    )
    radius = np.ones(directions.shape[:2])
    for _ in range(6):
        wave = rng.normal(0, options.get("detail", 2.0), 3)
        radius += options.get("bumps", 0.3) / 2.5 * np.cos(directions @ wave + rng.uniform(0, 6.28))
    return grid(np.maximum(radius, 0.25)[..., None] * directions, wrap=(False, True))


_GOLDEN = (1 + 5**0.5) / 2
_BODIES = {
    0: ([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)], 2.9),
    1: ([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], 1.5),
    2: ([(0, s, t * _GOLDEN) for s in (-1, 1) for t in (-1, 1)]
        + [(s, t * _GOLDEN, 0) for s in (-1, 1) for t in (-1, 1)]
        + [(t * _GOLDEN, 0, s) for s in (-1, 1) for t in (-1, 1)], 2.1),
}  # fmt: skip


@cache
def _sides(kind: int) -> Floats:
    """Return the triangles around one of the bodies, (n, 3, 3); cached, so they must not be written to."""
    corners, edge = _BODIES[kind]
    p = np.asarray(corners, dtype=np.float64)
    near = np.linalg.norm(p[:, None] - p[None], axis=-1) < edge
    n = len(p)
    triples = [
        (a, b, c) for a in range(n) for b in range(a + 1, n) for c in range(b + 1, n)
        if near[a, b] and near[b, c] and near[a, c]
    ]  # fmt: skip
    triangles = np.array([_outward(p[list(triple)]) for triple in triples])
    triangles.flags.writeable = False
    return triangles


def polyhedron(options: Options) -> ShapeMesh:
    """Make a tetrahedron, octahedron or icosahedron (`kind` 0, 1, 2), a pyramid of `spike` on each face."""
    triangles = _sides(int(options.get("kind", 2)))
    spike = options.get("spike", 0.0)
    if spike <= 0:
        return facets(triangles)
    tips = triangles.mean(axis=1) * (1 + spike)
    around = [np.stack([triangles[:, k], triangles[:, (k + 1) % 3], tips], 1) for k in range(3)]
    return facets(np.concatenate(around))


def torus(options: Options) -> ShapeMesh:
    """Make a ring of round cross-section, `thin` its radius over the ring's."""
    angle = np.linspace(0, 2 * np.pi, 41)
    path = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    path[-1] = path[0]
    return tube(path, options.get("thin", 0.2), sides=14, closed=True)


def handle(options: Options) -> ShapeMesh:
    """Make a bow of round cross-section over 3.6 radians, `thin` its radius over the bow's."""
    angle = np.linspace(-1.8, 1.8, 25)
    return tube(np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1), options.get("thin", 0.12))


def spring(options: Options) -> ShapeMesh:
    """Make a helix of `turns` windings."""
    angle = np.linspace(0, 2 * np.pi * options.get("turns", 5.0), 121)
    path = np.stack([np.cos(angle), angle / angle[-1] * 3, np.sin(angle)], 1)
    return tube(path, options.get("thin", 0.08), sides=7)


def wire(options: Options) -> ShapeMesh:
    """Make a cable: a smooth random path from `seed`."""
    rng = np.random.default_rng(int(options["seed"]))
    t = np.linspace(-1, 1, 61)
    path = np.stack([2 * t + _waves(rng, t, 3, 0.5), _waves(rng, t, 4, 0.6), _waves(rng, t, 3, 0.25)], 1)
    return tube(path, options.get("thin", 0.04), sides=8)


def stick(options: Options) -> ShapeMesh:
    """Make a thin round bar along y; `taper` is the ratio of its ends, `sides` 4 makes it square."""
    taper, sides = options.get("taper", 1.0), int(options.get("sides", 12))
    return lathe([[(0, -1), (1, -1)], [(1, -1), (taper, 1)], [(taper, 1), (0, 1)]], segments=sides)


def rack(options: Options) -> ShapeMesh:
    """Make a fence, grate or drying rack: `bars` thin bars side by side between two beams."""
    bars, thin = int(options.get("bars", 8)), options.get("thin", 0.25)
    step = 2.0 / bars
    parts = [block([-1, -1, -0.1], [1, -0.92, 0.1]), block([-1, 0.92, -0.1], [1, 1, 0.1])]
    for k in range(bars):
        middle = -1 + step * (k + 0.5)
        parts.append(block([middle - thin * step / 2, -0.92, -0.05], [middle + thin * step / 2, 0.92, 0.05]))
    return merge(parts)


def table(options: Options) -> ShapeMesh:
    """Make a board on four legs of width `leg`."""
    leg = options.get("leg", 0.12)
    parts = [block([-1, 0.85, -1], [1, 1, 1])]
    for x in (-1, 1):
        for z in (-1, 1):
            foot, end = np.array([x, -1.0, z]), np.array([x * (1 - leg), 0.85, z * (1 - leg)])
            parts.append(block(np.minimum(foot, end), np.maximum(foot, end)))
    return merge(parts)


def shelf(options: Options) -> ShapeMesh:
    """Make boards with a back: `rows` and `columns` of open boxes."""
    rows, columns, thin = int(options.get("rows", 3)), int(options.get("columns", 3)), 0.04
    parts = [block([-1, -1, 0.95], [1, 1, 1])]
    parts += [block([-1, y, -1], [1, y + thin, 0.95]) for y in np.linspace(-1, 1 - thin, rows + 1)]
    parts += [block([x, -1, -1], [x + thin, 1, 0.95]) for x in np.linspace(-1, 1 - thin, columns + 1)]
    return merge(parts)


def stairs(options: Options) -> ShapeMesh:
    """Make `steps` steps rising away from the viewer."""
    steps = int(options.get("steps", 5))
    parts = []
    for k in range(steps):
        top, front = -1 + 2 * (k + 1) / steps, -1 + 2 * k / steps
        parts.append(block([-1, -1, front], [1, top, front + 2 / steps]))
    return merge(parts)


def cover(options: Options) -> ShapeMesh:
    """Make the cover of a book lying on its back: two boards and the spine at -x, `thin` thick."""
    thin = options.get("thin", 0.12)
    return merge(
        [
            block([-1, -1, -1], [1, thin - 1, 1]),
            block([-1, 1 - thin, -1], [1, 1, 1]),
            block([-1, thin - 1, -1], [thin / 4 - 1, 1 - thin, 1]),
        ]
    )


def _waves(rng: np.random.Generator, t: Floats, count: int, height: float) -> Floats:
    """Return a smooth random curve: a sum of `count` sines of falling amplitude."""
    total = np.zeros_like(t)
    for k in range(1, count + 1):
        total += height / k * rng.uniform(-1, 1) * np.sin(k * 1.6 * t + rng.uniform(0, 6.28))
    return total


def _power(x: Floats, exponent: float) -> Floats:
    return np.asarray(np.sign(x) * np.abs(x) ** exponent)


def _outward(triangle: Floats) -> Floats:
    normal = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
    return triangle if normal @ triangle.mean(axis=0) > 0 else triangle[::-1]
