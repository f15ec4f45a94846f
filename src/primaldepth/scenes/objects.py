"""Things that stand on something: each function puts one, or a small group, onto a place of given height.

A place is (x, y, z) of the middle of its foot; `size` is its largest extent. All of them return the height
of their top, or None where nothing can stand on it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from primaldepth.scenes.description import IDENTITY, Material
from primaldepth.scenes.scene_builder import SceneBuilder, turn, upright_to

Place = NDArray[np.float64]
Thing = Callable[[SceneBuilder, Place, float], float | None]


def over(place: Place, height: float) -> Place:
    """Return the point `height` above a place."""
    return np.add(place, [0.0, height, 0.0])


def crate(b: SceneBuilder, place: Place, size: float) -> float:
    """Add a box of any proportions."""
    w, h, d = size * b.rng.uniform(0.25, 1.0, 3)
    b.stand("box", (w, h, d), place, turn(1, b.between(0, np.pi)))
    return float(place[1] + h)


def ball(b: SceneBuilder, place: Place, size: float) -> None:
    """Add an exact sphere."""
    size *= 0.7
    b.stand("sphere", (size, size, size), place, upright_to(b.rng.standard_normal(3)))


def drum(b: SceneBuilder, place: Place, size: float) -> float:
    """Add a cylinder or frustum, sometimes lying."""
    w, h = size * b.between(0.25, 0.8), size * b.between(0.2, 1.0)
    top = float(b.rng.choice([1.0, 1.0, b.between(0.5, 1.0), b.between(1.0, 1.4)]))
    if b.chance(0.25):
        lying = turn(1, b.between(0, np.pi)) @ turn(2, np.pi / 2)
        b.add("cylinder", (w, h, w), over(place, w / 2), lying)
        return float(place[1] + 0.9 * w)
    b.stand("cylinder", (w, h, w), place, turn(1, b.between(0, 6)), top=top)
    return float(place[1] + h)


def cone(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a cone, rounded off or not."""
    w = size * b.between(0.3, 0.7)
    b.stand("cylinder", (w, size, w), place, top=b.between(0.0, 0.25))


def round_body(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a turned body, a vase, a superquadric or a bumpy ball."""
    w, h, d = size * b.between(0.4, 0.8), size * b.between(0.5, 1.0), size * b.between(0.4, 0.8)
    shape = str(b.rng.choice(["turned", "vase", "superquadric", "blob"]))
    options: dict[str, float] = {"seed": b.seed()}
    if shape == "superquadric":
        options = {"e1": b.between(0.15, 1.8), "e2": b.between(0.15, 1.8)}
    if shape == "blob":
        options |= {"bumps": b.between(0.1, 0.6), "detail": b.between(1.0, 4.0)}
    d = w if shape in ("turned", "vase") else d
    b.stand(shape, (w, h, d), place, turn(1, b.between(0, 6)), **options)


def mug(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a cup with a handle, and often sticks, brushes or a plant in it."""
    h, w = size * b.between(0.4, 0.7), size * b.between(0.3, 0.5)
    material, yaw = b.material(), turn(1, b.between(0, 6))
    top = b.between(1.0, 1.4)
    b.stand("cup", (w, h, w), place, IDENTITY, material, top=top, wall=b.between(0.05, 0.15))
    if b.chance(0.6):
        ear = (0.5 * h, 0.7 * h, 0.12 * h)
        b.add("handle", ear, place + yaw @ [w / 2 + 0.1 * h, 0, 0] + [0, h / 2, 0], yaw, material)
    if b.chance(0.5):
        _bundle(b, over(place, 0.1 * h), 0.3 * w, size * b.between(0.8, 1.5))
    elif b.chance(0.5):
        w = size * b.between(0.6, 1.2)
        tuft, middle = (w, size * b.between(0.5, 1.0), w), over(place, h + 0.2 * size)
        leaves = {"seed": b.seed(), "leaves": int(b.rng.integers(5, 14)), "wide": b.between(0.05, 0.2)}
        b.add("plant", tuft, middle, **leaves)


def book(b: SceneBuilder, place: Place, size: float, yaw: float | None = None) -> float:
    """Add a book lying: a cover around a block of pages."""
    w, h, d = size * b.between(0.5, 0.8), size * b.between(0.04, 0.25), size
    turned = turn(1, b.between(0, 6.28) if yaw is None else yaw)
    middle = over(place, h / 2)
    _bound(b, middle, turned, (w, h, d))
    return float(place[1] + h)


def books(b: SceneBuilder, place: Place, size: float) -> float:
    """Add a pile of books, each turned a little."""
    top, yaw = float(place[1]), b.between(0, 6.28)
    for _ in range(int(b.rng.integers(2, 7))):
        foot = np.array([place[0], top, place[2]]) + size * 0.05 * b.rng.standard_normal(3) * [1, 0, 1]
        top = book(b, foot, b.about(size, 0.15), yaw + 0.2 * float(b.rng.standard_normal()))
    return top


def standing_books(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a row of upright books, some leaning on their neighbours."""
    yaw = turn(1, b.between(-0.7, 0.7) + (np.pi if b.chance(0.3) else 0))
    x, lean = 0.0, 0.0
    for _ in range(int(b.rng.integers(2, 8))):
        w, h, d = size * b.between(0.04, 0.18), b.about(size, 0.15), size * b.between(0.5, 0.75)
        if b.chance(0.3):
            lean = b.between(0.0, 0.3)
        middle = np.array([x + w / 2 + h / 2 * np.sin(lean), h / 2 * np.cos(lean) + w / 2 * np.sin(lean), 0])
        # the lying book's spine turns to the front, its height upwards
        upright = yaw @ turn(2, -lean) @ np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
        _bound(b, place + yaw @ middle, upright, (d, w, h))
        x += w / max(np.cos(lean), 0.5) + 0.003 * size


def open_book(b: SceneBuilder, place: Place, size: float) -> None:
    """Add an open book on its back, or standing half open like a tent."""
    page = b.material(b.texture("text", "text", "image", "scribble"))
    if b.chance(0.5):
        h = size * b.between(0.05, 0.15)
        yaw = turn(1, b.between(0, 6))
        b.stand("open_book", (size, h, 0.7 * size), place, yaw, page, bow=b.between(0.1, 0.7))
        return
    yaw, half = turn(1, b.between(0, 6)), b.between(0.2, 0.9)
    for side in (-1, 1):
        turned = yaw @ turn(1, side * half)
        w, h = 0.6 * size, 0.85 * size
        middle = over(place, h / 2) + turned @ [side * w / 2, 0, 0]
        b.add("box", (w, h, 0.03 * size), middle, turned, page)


def solid(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a polyhedron, plain or with spikes."""
    size *= b.between(0.4, 0.9)
    spike = b.between(0.3, 1.6) if b.chance(0.5) else 0.0
    middle, tilt = over(place, 0.46 * size), upright_to(b.rng.standard_normal(3))
    b.add("polyhedron", (size, size, size), middle, tilt, kind=int(b.rng.integers(3)), spike=spike)


def sign(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a board that stands: cut-out letters, a lattice, an outline, a fence."""
    w, h, d = size * b.between(0.5, 1.0), size * b.between(0.4, 1.0), size * b.between(0.01, 0.12)
    shape = str(b.rng.choice(["glyphs", "lattice", "outline", "rack"]))
    numbers: dict[str, dict[str, float]] = {
        "glyphs": {"letters": int(b.rng.integers(2, 6))},
        "lattice": {
            "rows": int(b.rng.integers(2, 8)),
            "columns": int(b.rng.integers(2, 8)),
            "open": int(b.rng.integers(1, 6)),
        },
        "outline": outline_options(b),
        "rack": {"bars": int(b.rng.integers(3, 14)), "thin": b.between(0.1, 0.6)},
    }
    tilt = turn(1, b.between(-1.2, 1.2)) @ turn(0, b.between(-0.25, 0.1))
    b.stand(shape, (w, h, d), place, tilt, **{"seed": b.seed(), **numbers[shape]})


def ring_on_rod(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a flat ring with a wide hole on top of a thin rod."""
    material, across = b.material(), size * b.between(0.3, 0.7)
    rod = size * b.between(0.3, 1.2)
    b.stand("stick", (0.02 * size, rod, 0.02 * size), place, IDENTITY, material)
    options = outline_options(b) | {"hole": b.between(0.4, 0.85)}
    flat, yaw = (across, across, size * b.between(0.01, 0.08)), turn(1, b.between(-1, 1))
    b.add("outline", flat, over(place, rod + across / 2), yaw, material, **options)


def ring(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a torus, a spring or a Moebius band lying or standing."""
    w = size * b.between(0.4, 0.9)
    shape = str(b.rng.choice(["torus", "spring", "ribbon"]))
    options = {
        "torus": {"thin": b.between(0.05, 0.4)},
        "spring": {"turns": b.between(2, 8), "thin": b.between(0.03, 0.12)},
        "ribbon": {"twists": float(b.rng.integers(0, 4)), "wide": b.between(0.15, 0.5)},
    }[shape]
    thick = {"torus": w * options.get("thin", 0), "spring": w, "ribbon": 0.4 * w}[shape]
    size3 = (w, w, thick) if shape == "torus" else (w, thick, w)
    lying = shape == "torus" and b.chance(0.5)
    tilt = turn(1, b.between(0, 6)) @ (turn(0, np.pi / 2) if lying else np.eye(3))
    height = thick if lying else size3[1]
    b.add(shape, size3, over(place, height / 2), tilt, **options)


def draped(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a box under a cloth."""
    w, h = size * b.between(0.6, 1.1), size * b.between(0.4, 0.9)
    cloth = b.material(b.texture("checks", "stripes", "image", "plain", "noise"))
    box, yaw = (w, h, w * b.between(0.6, 1.0)), turn(1, b.between(-0.6, 0.6))
    options = {"seed": b.seed(), "folds": float(b.rng.integers(5, 16)), "reach": b.between(0.35, 0.65)}
    b.stand("drape", box, place, yaw, cloth, **options)


def paper(b: SceneBuilder, place: Place, size: float) -> None:
    """Add a curled sheet standing on its edge, or a wavy board."""
    w, h, d = size * b.between(0.5, 1.0), size * b.between(0.4, 1.0), size * b.between(0.1, 0.5)
    yaw = turn(1, b.between(-1.5, 1.5))
    if b.chance(0.6):
        b.stand("curl", (w, h, d), place, yaw, seed=b.seed(), bend=b.between(1, 6))
    else:
        b.stand("corrugated", (w, h, d / 4), place, yaw, waves=float(b.rng.integers(2, 12)))


def furniture(b: SceneBuilder, place: Place, size: float) -> float:
    """Add a small table, or stairs; things stand on them."""
    w, h, d = size * b.between(0.8, 1.6), size * b.between(0.4, 0.9), size * b.between(0.6, 1.2)
    yaw = turn(1, b.between(-0.5, 0.5))
    if b.chance(0.7):
        b.stand("table", (w, h, d), place, yaw, leg=b.between(0.05, 0.2))
    else:
        b.stand("stairs", (w, h, d), place, yaw, steps=int(b.rng.integers(2, 7)))
    return float(place[1] + h)


def pebbles(b: SceneBuilder, place: Place, size: float) -> None:
    """Add many small things: dice, stones, beads."""
    for _ in range(int(b.rng.integers(4, 12))):
        small = size * b.between(0.06, 0.16)
        spot = place + size * 0.5 * b.rng.standard_normal(3) * [1, 0, 1]
        shape = str(b.rng.choice(["box", "polyhedron", "blob", "cylinder"]))
        yaw = turn(1, b.between(0, 6))
        b.stand(shape, (small, small, small), spot, yaw, seed=b.seed(), kind=int(b.rng.integers(3)))


def outline_options(b: SceneBuilder) -> dict[str, float]:
    """Draw random options for the shape `outline`."""
    return {
        "seed": b.seed(),
        "kind": int(b.rng.integers(4)),
        "points": float(b.rng.integers(3, 12)),
        "depth": b.between(0.02, 0.45),
        "hole": b.between(0.2, 0.8) if b.chance(0.5) else 0.0,
    }


THINGS: tuple[tuple[Thing, float], ...] = (
    (crate, 3.0), (ball, 1.2), (drum, 2.0), (cone, 1.0), (round_body, 3.0), (mug, 2.0), (book, 1.0),
    (books, 1.5), (standing_books, 1.2), (open_book, 1.0), (solid, 1.5), (sign, 1.5), (ring_on_rod, 1.2),
    (ring, 1.2), (draped, 0.7), (paper, 1.0), (furniture, 0.8), (pebbles, 0.7),
)  # fmt: skip
"""What can be put down, and how often each is."""


def any_thing(b: SceneBuilder) -> Thing:
    """Return one of THINGS, chosen at random by its weight."""
    weights = np.array([weight for _, weight in THINGS])
    return THINGS[int(b.rng.choice(len(THINGS), p=weights / weights.sum()))][0]


def _bound(
    b: SceneBuilder, middle: Place, turned: NDArray[np.float64], size: tuple[float, float, float]
) -> None:
    """Add a book's cover and pages: x from spine to edge, y its thickness, z its height."""
    w, h, d = size
    b.add("cover", size, middle, turned, thin=b.between(0.06, 0.2))
    pages = Material(texture=b.texture("stripes", "plain", "grain"), roughness=1.0)
    b.add("box", (0.95 * w, 0.9 * h, 0.96 * d), middle, turned, pages)


def _bundle(b: SceneBuilder, foot: Place, radius: float, length: float) -> None:
    """Put sticks into a cup that lean on its rim."""
    for _ in range(int(b.rng.integers(2, 7))):
        tall, thin = length * b.between(0.7, 1.2), length * b.between(0.008, 0.03)
        lean = np.array([*(0.25 * b.rng.standard_normal(2)), 1.0])[[0, 2, 1]]
        direction = lean / np.linalg.norm(lean)
        offset = radius * b.rng.uniform(-1, 1, 3) * [1, 0, 1]
        middle, tilt = foot + offset + direction * tall / 2, upright_to(direction)
        taper, sides = b.between(0.2, 1.5), int(b.rng.choice([4, 8, 12]))
        b.add("stick", (thin, tall, thin), middle, tilt, taper=taper, sides=sides)
