"""Make the shipped sample: a ray-cast still life, its true depth, and a small noisy depth map.

Running it again gives the same arrays on every machine (see raycast.py). World: X right, Y up, Z forward,
metres. Vectors are arrays (3, N).

    python scripts/make_sample.py [FOLDER]
"""

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from raycast import (
    Array,
    Cuboid,
    Cylinder,
    Paint,
    Plane,
    Sphere,
    Thing,
    blend,
    clearance,
    column,
    cross,
    dot,
    fractal,
    nearest_hit,
    parity,
    unit,
)

WIDTH, HEIGHT, SCALE, FOCAL = 640, 480, 8, 600.0
SIGMA, SEED, SUPERSAMPLING = 0.01, 20240607, 4
EYE = np.array([[0.0], [0.82], [0.0]])
COS_PITCH, SIN_PITCH = 0.96, 0.28
LIGHT, TARGET, LIGHT_RADIUS = np.array([[-1.5], [2.5], [0.1]]), np.array([[0.05], [0.4], [2.3]]), 0.11
SUN, SKY = np.array([[1.30], [1.16], [0.92]]), np.array([[0.40], [0.46], [0.56]])
HOLE = (30, 50, 4.2, 3.2)  # row, column, half height, half width of the ellipse without samples
FOLDER = Path(__file__).resolve().parents[1] / "src" / "primaldepth" / "samples"


# Paints


def plain(red: float, green: float, blue: float, grain: float = 0.0) -> Paint:
    """One colour, with fine grain if asked."""

    def paint(p: Array, world: Array) -> Array:
        return column(red, green, blue) * (
            1.0 + (grain * fractal(world, 30.0) if grain else np.zeros(p.shape[1]))
        )

    return paint


def plaster(p: Array, world: Array) -> Array:
    """Nearly white; the same on the walls and on the plinth before them."""
    return column(0.64, 0.61, 0.55) * (1.0 + 0.10 * fractal(world, 6.0))


def picture_wall(p: Array, world: Array) -> Array:
    """Plaster with a framed picture that is only painted on: strong edges, no depth."""
    x, y = p[0] + 0.34, -p[2] - 0.79
    color = blend(column(0.72, 0.35, 0.10), column(0.10, 0.22, 0.42), np.clip((y + 0.2) * 2.6, 0.0, 1.0))
    hills = y < -0.10 + 0.30 * fractal(np.stack([x * 3.0, 0 * x, 0 * x]), 2.0)
    color = np.where(hills, column(0.05, 0.13, 0.09), color)
    sun = (x - 0.07) * (x - 0.07) + (y - 0.04) * (y - 0.04) < 0.0042
    color = np.where(sun & ~hills, column(0.95, 0.80, 0.35), color)
    inside = (np.abs(x) < 0.24) & (np.abs(y) < 0.17)
    frame = (np.abs(x) < 0.265) & (np.abs(y) < 0.195)
    return np.where(inside, color, np.where(frame, column(0.05, 0.035, 0.03), plaster(p, world)))


def tiles(p: Array, world: Array) -> Array:
    """Checks through space, so that a slab of the same tiles vanishes against the floor."""
    u, v = (world[0] + 0.35 * world[2]) / 0.26, (world[2] - 0.35 * world[0]) / 0.26
    odd = parity(u, v)
    color = blend(column(0.52, 0.42, 0.31), column(0.30, 0.17, 0.11), odd)
    edge = np.minimum(np.abs(u - np.floor(u + 0.5)), np.abs(v - np.floor(v + 0.5)))
    color = np.where(edge < 0.018, column(0.22, 0.19, 0.16), color)
    return color * (1.0 + 0.45 * fractal(world, 9.0, 5))


def floor(p: Array, world: Array) -> Array:
    """Tiles, and a flat striped rug upon them."""
    x, z = world[0] - 0.28, world[2] - 1.62
    u, v = 0.96 * x + 0.28 * z, -0.28 * x + 0.96 * z
    rug = (np.abs(u) < 0.44) & (np.abs(v) < 0.27)
    stripe = np.floor((u + 0.44) / 0.055) % 4.0
    color = np.where(stripe == 0, column(0.42, 0.06, 0.07), column(0.62, 0.52, 0.38))
    color = np.where(stripe == 2, column(0.07, 0.13, 0.26), color)
    return np.where(rug, color * (1.0 + 0.5 * fractal(world, 60.0, 2)), tiles(p, world))


def checks(p: Array, world: Array) -> Array:
    """Green and cream cubes."""
    odd = parity(*(c / 0.08 + 0.001 for c in p))
    return blend(column(0.66, 0.62, 0.44), column(0.06, 0.25, 0.16), odd)


def bands(width: float, *colors: tuple[float, float, float]) -> Paint:
    """Rings of colour along the shape's y axis."""

    def paint(p: Array, world: Array) -> Array:
        index = (np.floor(p[1] / width + 0.5) % len(colors)).astype(np.int64)
        return np.array(colors).T[:, index]

    return paint


def wood(p: Array, world: Array) -> Array:
    """Growth rings of a plank, bent by noise."""
    bent = p * column(1.0, 0.13, 1.0)
    ring = np.sqrt((bent[0] + 0.31) * (bent[0] + 0.31) + bent[1] * bent[1]) * 26.0 + 5.0 * fractal(bent, 5.0)
    amount = ring - np.floor(ring)
    return blend(column(0.50, 0.29, 0.13), column(0.33, 0.17, 0.07), amount * amount) * (
        1.0 + 0.5 * fractal(bent, 80.0, 2)
    )


def marble(p: Array, world: Array) -> Array:
    """Veins where the fractal noise crosses zero."""
    vein = np.clip(1.0 - np.abs(fractal(p, 9.0, 5)) * 11.0, 0.0, 1.0)
    return blend(column(0.70, 0.68, 0.66), column(0.12, 0.13, 0.17), vein * vein)


# The scene. Rotations are Pythagorean, so their entries are exact enough to write down


def turned(c: float, s: float) -> tuple[tuple[float, float, float], ...]:
    """Axes turned about Y."""
    return ((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c))


UPRIGHT = turned(1.0, 0.0)
BACK = ((0.96, 0.0, -0.28), (-0.28, 0.0, -0.96), (0.0, -1.0, 0.0))
LEFT = ((0.28, 0.0, 0.96), (0.96, 0.0, -0.28), (0.0, -1.0, 0.0))
LEANING = ((0.96, 0.0, -0.28), (0.0784, 0.96, 0.2688), (0.2688, -0.28, 0.9216))
LYING = ((0.0, 1.0, 0.0), (0.8, 0.0, 0.6), (0.6, 0.0, -0.8))
ACROSS = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
SLANTED = ((0.8, -0.6, 0.0), (0.6, 0.8, 0.0), (0.0, 0.0, 1.0))
STEEL, BRASS = plain(0.10, 0.11, 0.13), plain(0.55, 0.38, 0.10)


def rods() -> list[Thing]:
    """A rack of thin bars, 4 to 7 pixels wide: less than one sample of the small depth map."""
    uprights = [
        Thing(Cylinder(0.007, 0.27), (x, 0.27, 1.42), UPRIGHT, STEEL, 0.6) for x in (-0.34, -0.2, -0.06, 0.08)
    ]
    top = Thing(Cylinder(0.008, 0.24), (-0.13, 0.54, 1.42), ACROSS, STEEL, 0.6)
    brace = Thing(Cylinder(0.005, 0.33), (-0.13, 0.275, 1.40), SLANTED, BRASS, 0.6)
    return [*uprights, top, brace]


def scene() -> list[Thing]:
    """Floor, two walls, and the still life."""
    cream, navy, rust = (0.66, 0.60, 0.48), (0.05, 0.09, 0.24), (0.50, 0.14, 0.05)
    return [
        Thing(Plane(), (0.0, 0.0, 0.0), UPRIGHT, floor),
        Thing(Plane(), (0.0, 0.0, 3.35), BACK, picture_wall),
        Thing(Plane(), (-1.25, 0.0, 3.0), LEFT, plaster),
        Thing(Cuboid((0.20, 0.33, 0.14)), (0.16, 0.33, 2.75), turned(0.96, -0.28), plaster),
        Thing(Sphere(0.15), (0.16, 0.81, 2.75), UPRIGHT, plain(0.55, 0.05, 0.04, 0.2), 0.5),
        Thing(Cuboid((0.24, 0.50, 0.014)), (0.93, 0.49, 2.72), LEANING, wood),
        Thing(Cuboid((0.30, 0.035, 0.22)), (0.80, 0.035, 2.0), turned(0.96, 0.28), tiles),
        Thing(Sphere(0.13), (0.84, 0.20, 2.0), UPRIGHT, marble, 0.25),
        Thing(Sphere(0.23), (0.37, 0.23, 1.72), UPRIGHT, plain(0.02, 0.05, 0.09), 1.0),
        Thing(Cuboid((0.20, 0.24, 0.16)), (-0.62, 0.24, 1.98), turned(0.8, 0.6), checks),
        Thing(Cylinder(0.10, 0.11), (-0.62, 0.59, 1.98), UPRIGHT, plain(0.60, 0.40, 0.06, 0.3), 0.2),
        Thing(Cylinder(0.14, 0.36), (-0.52, 0.36, 2.78), UPRIGHT, bands(0.09, cream, navy, cream, rust)),
        Thing(Cylinder(0.055, 0.16), (0.40, 0.055, 1.22), LYING, bands(0.04, cream, rust), 0.2),
        Thing(
            Cuboid((0.05, 0.05, 0.05)), (-0.40, 0.05, 1.24), turned(0.6, 0.8), plain(0.62, 0.44, 0.05, 0.2)
        ),
        Thing(Sphere(0.045), (0.07, 0.045, 1.16), UPRIGHT, plain(0.08, 0.28, 0.30), 0.8),
        *rods(),
    ]


# Light


def spun(sample: int, x: Array, y: Array) -> Array:
    """(2, N): a (cos, sin) per pixel and sample, evenly spread over neighbours (a lattice)."""
    place = 0.7548776662466927 * x + 0.5698402909980532 * y + 0.6180339887498949 * sample
    quarter = 4.0 * (place - np.floor(place))
    t = quarter - np.floor(quarter)
    c, s = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
    odd, sign = np.floor(quarter) % 2 == 1, np.where(quarter >= 2, -1.0, 1.0)
    return np.stack([np.where(odd, -s, c), np.where(odd, c, s)]) * sign


def window(p: Array) -> Array:
    """Light of a window with glazing bars: edges of brightness that ignore the geometry."""
    forward = unit(TARGET - LIGHT)
    right = unit(cross(forward, column(0, 1, 0)))
    d = p - LIGHT
    along = dot(d, forward)
    x, y = dot(d, right) / along, dot(d, cross(right, forward)) / along
    inside = np.clip((0.44 - np.abs(x)) * 40.0, 0.0, 1.0) * np.clip((0.40 - np.abs(y)) * 40.0, 0.0, 1.0)
    for offset in (np.abs(x) - 0.15, y):
        inside = inside * np.clip((np.abs(offset) - 0.014) * 90.0, 0.0, 1.0)
    return 0.2 + 0.8 * inside


def shade(
    things: list[Thing], p: Array, ray: Array, index: NDArray[np.int64], spot: Array, turn: Array
) -> Array:
    """Linear colour of the points p seen along `ray`.

    Args:
        things: the scene.
        p: (3, N) points.
        ray: (3, N) directions they are seen along.
        index: (N,) which thing each point lies on.
        spot: (2, 1) place on the unit disc: of the lamp's disc and of the hemisphere of sky.
        turn: (2, N) rotation of that place per pixel.
    """
    albedo, normal, gloss = np.zeros_like(p), np.zeros_like(p), np.zeros(p.shape[1])
    for number, thing in enumerate(things):
        here = index == number
        own = thing.place(p[:, here])
        albedo[:, here] = thing.paint(own, p[:, here])
        normal[:, here] = thing.world(thing.shape.normal(own))
        gloss[here] = thing.gloss
    a, b = turn[0] * spot[0] - turn[1] * spot[1], turn[1] * spot[0] + turn[0] * spot[1]
    start = p + normal * 1e-4
    lamp = LIGHT + LIGHT_RADIUS * np.stack([a, np.zeros_like(a), b])
    to_lamp = unit(lamp - p)
    cosine = np.maximum(dot(normal, to_lamp), 0.0)
    lit = np.where(clearance(things, start, to_lamp, 9.0) < 1.0, 0.0, window(p + (LIGHT - lamp) * 0.25))
    tangent = unit(cross(normal, np.where(np.abs(normal[1]) > 0.7, column(1, 0, 0), column(0, 1, 0))))
    sky = tangent * a + cross(normal, tangent) * b + normal * np.sqrt(1.0 - a * a - b * b)
    open_sky = (0.2 + 0.8 * np.sqrt(clearance(things, start, sky, 0.7))) * (0.78 + 0.22 * normal[1])
    shine = np.maximum(dot(normal, unit(to_lamp - unit(ray))), 0.0)
    for _ in range(6):
        shine = shine * shine
    return albedo * (SUN * (lit * cosine) + SKY * open_sky) + SUN * (gloss * shine * lit)


# Pictures


def camera_rays(x: Array, y: Array) -> Array:
    """World directions through image places (x, y); their step along the optical axis is 1."""
    right, down = (x - WIDTH / 2) / FOCAL, (y - HEIGHT / 2) / FOCAL
    return np.stack([right, -COS_PITCH * down - SIN_PITCH, -SIN_PITCH * down + COS_PITCH])


def pixel_grid(rows: range) -> tuple[Array, Array]:
    """Column and row of each pixel of those rows."""
    i, j = np.meshgrid(np.arange(rows.start, rows.stop), np.arange(WIDTH), indexing="ij")
    return j.ravel().astype(np.float64), i.ravel().astype(np.float64)


def true_depth() -> NDArray[np.uint16]:
    """(480, 640) z in millimetres, from one ray through each pixel's centre."""
    x, y = pixel_grid(range(HEIGHT))
    z, _ = nearest_hit(scene(), EYE, camera_rays(x + 0.5, y + 0.5))
    return np.rint(z * 1000.0).astype(np.uint16).reshape(HEIGHT, WIDTH)


def guide_rows(rows: range) -> NDArray[np.uint8]:
    """(rows, 640, 3) colour, the mean of 4x4 rays per pixel, each with its own light and sky direction."""
    things, n = scene(), SUPERSAMPLING
    x, y = pixel_grid(rows)
    total = np.zeros((3, x.size))
    for sample in range(n * n):
        a, b = sample % n, sample // n
        ray = camera_rays(x + (a + 0.5) / n, y + (b + 0.5) / n)
        t, index = nearest_hit(things, EYE, ray)
        spot = 0.9 * (2.0 * np.array([[(5 * a + 2 * b) % n + 0.5], [(b + 2 * a) % n + 0.5]]) / n - 1.0)
        total = total + shade(things, EYE + t * ray, ray, index, spot, spun(sample, x, y))
    encoded = np.sqrt(np.clip(total / (n * n), 0.0, 1.0))
    return np.rint(encoded * 255.0).astype(np.uint8).T.reshape(len(rows), WIDTH, 3)


def guide_image() -> NDArray[np.uint8]:
    """(480, 640, 3), in strips that stay in the cache."""
    return np.concatenate([guide_rows(range(top, top + 16)) for top in range(0, HEIGHT, 16)])


def small_depth(truth: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """(60, 80) in millimetres: the mean of 8x8 true depths, noise of 1 % of the depth, and a hole."""
    height, width = HEIGHT // SCALE, WIDTH // SCALE
    mean = truth.reshape(height, SCALE, width, SCALE).sum(axis=(1, 3), dtype=np.int64) / SCALE**2
    noise = np.random.RandomState(SEED).standard_normal((height, width))  # the stream numpy keeps frozen
    noisy = np.rint(mean * (1.0 + SIGMA * noise)).astype(np.uint16)
    row, col, tall, wide = HOLE
    i, j = np.mgrid[0:height, 0:width]
    return np.where(((i - row) / tall) ** 2 + ((j - col) / wide) ** 2 < 1.0, 0, noisy).astype(np.uint16)


def description() -> dict[str, object]:
    """What sample.json says."""
    return {
        "made_by": "scripts/make_sample.py: analytic ray casting, no measured data",
        "guide": {
            "file": "guide.png",
            "width": WIDTH,
            "height": HEIGHT,
            "colour": "8-bit RGB, 4x4 rays per pixel",
        },
        "truth": {
            "file": "truth.png",
            "width": WIDTH,
            "height": HEIGHT,
            "unit": "mm",
            "kind": "z",
            "rays": "centre",
        },
        "depth": {
            "file": "depth.png",
            "width": WIDTH // SCALE,
            "height": HEIGHT // SCALE,
            "unit": "mm",
            "kind": "z",
        },
        "scale": SCALE,
        "reduction": "mean of 8x8 true depths",
        "noise": {"kind": "Gaussian", "sigma_relative_to_depth": SIGMA, "seed": SEED},
        "invalid": "0; an ellipse on the dark sphere has no samples",
    }


def main(folder: Path = FOLDER) -> None:
    """Write every file of the sample."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = true_depth()
    arrays = {"guide": guide_image(), "truth": truth, "depth": small_depth(truth)}
    for name, array in arrays.items():
        Image.fromarray(array).save(folder / f"{name}.png", optimize=True)
    camera = {"fx": FOCAL, "fy": FOCAL, "cx": WIDTH / 2, "cy": HEIGHT / 2, "width": WIDTH, "height": HEIGHT}
    for name, values in {"cameras": {"guide": camera}, "sample": description()}.items():
        (folder / f"{name}.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    print(f"{folder}: truth {truth.min()} to {truth.max()} mm")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:2]))
