"""Rooms to fill: each layout sets up walls, floor and camera, and puts objects where the camera sees them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primaldepth.scenes import objects
from primaldepth.scenes.description import Camera, Lamp
from primaldepth.scenes.scene_builder import SceneBuilder, any_turn, rotation_of, turn, upright_to, vector

Place = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RoomView:
    """How the camera looks into a room; the floor is y = 0 and the camera stands at z = 0.

    Args:
        wall: distance of the back wall.
        height: of the camera over the floor.
        pitch: radians the camera looks down.
        slope: half width of what it sees at a distance of 1.
    """

    wall: float
    height: float
    pitch: float
    slope: float

    def camera(self, b: SceneBuilder) -> Camera:
        """Return the camera of this view, turned by small random angles as if hand-held."""
        level = turn(2, b.between(-0.06, 0.06)) @ turn(1, b.between(-0.15, 0.15))
        # camera axes: y down, z forward
        axes = turn(0, self.pitch) @ level @ np.diag([1.0, -1.0, 1.0])
        fov = float(np.degrees(2 * np.arctan(self.slope)))
        return Camera(fov_degrees=fov, rotation=rotation_of(axes), position=(0.0, self.height, 0.0))


def still_life(b: SceneBuilder) -> Camera:
    """Crowd a table or floor before a wall with things, the near ones cut off; return the camera."""
    view = _view(b, wall=b.about(2.0, 0.45))
    _floor_and_walls(b, view)
    _on_the_wall(b, view)
    _crowd(b, view, int(b.rng.integers(14, 34)))
    _leaning(b, view, int(b.rng.integers(1, 6)))
    _across(b, view, int(b.rng.integers(0, 4)))
    return view.camera(b)


def room(b: SceneBuilder) -> Camera:
    """Furnish a corner of a room: walls on both sides, furniture, things on it; return the camera."""
    view = _view(b, wall=b.about(4.5, 0.3))
    _floor_and_walls(b, view, sides=True)
    _on_the_wall(b, view)
    for _ in range(int(b.rng.integers(2, 5))):
        place = _spot(b, view, 0.5)
        top = objects.furniture(b, place, view.wall * b.between(0.15, 0.3))
        for _ in range(int(b.rng.integers(1, 4))):
            x, z = place[[0, 2]] + view.wall * 0.06 * b.rng.standard_normal(2)
            on_top = np.array([x, top, z])
            objects.any_thing(b)(b, on_top, view.wall * b.between(0.04, 0.1))
    _crowd(b, view, int(b.rng.integers(8, 22)))
    _across(b, view, int(b.rng.integers(0, 3)))
    return view.camera(b)


def shelf(b: SceneBuilder) -> Camera:
    """Fill a shelf with books and things, some in front of it; return a camera that looks straight at it."""
    view = _view(b, wall=b.about(1.8, 0.3), pitch=b.between(-0.1, 0.1))
    _floor_and_walls(b, view)
    w, h = 2.6 * view.slope * view.wall, 2.4 * view.slope * view.wall
    rows, columns = int(b.rng.integers(2, 5)), int(b.rng.integers(1, 5))
    deep, front = 0.2 * view.wall, view.wall * 0.78
    bottom = max(0.0, view.height - h / 2)
    b.add("shelf", (w, h, deep), (0.0, bottom + h / 2, front + deep / 2), rows=rows, columns=columns)
    for row in range(rows):
        for column in range(columns):
            x = (column + 0.5) / columns * w - w / 2
            y = bottom + row / rows * h + 0.02 * h
            for _ in range(int(b.rng.integers(1, 4))):
                place = np.array(
                    [x + w / columns * b.between(-0.35, 0.35), y, front + deep * b.between(0.3, 0.7)]
                )
                thing = objects.standing_books if b.chance(0.5) else objects.any_thing(b)
                thing(b, place, min(h / rows, deep * 1.5) * b.between(0.5, 0.85))
    _crowd(b, view, int(b.rng.integers(2, 10)), far=0.75)
    _across(b, view, int(b.rng.integers(0, 3)))
    return view.camera(b)


def clutter(b: SceneBuilder) -> Camera:
    """Let objects in any pose float before a slanted background, without a floor; return the camera."""
    view = _view(b, wall=b.about(2.0, 0.5), pitch=b.between(-0.3, 0.3))
    _slanted_background(b, view)
    for _ in range(int(b.rng.integers(25, 70))):
        if b.full:
            break
        z = view.wall * b.between(0.25, 0.95)
        place = _in_view(b, view, z)
        before = len(b.items)
        objects.any_thing(b)(b, place, z * b.about(0.2, 0.5))
        _tumble(b, before, place)
    _across(b, view, int(b.rng.integers(1, 6)))
    return view.camera(b)


def paper(b: SceneBuilder) -> Camera:
    """Put cubes, spheres and planes of any pose and size before a background; return the camera."""
    view = _view(b, wall=b.about(3.0, 0.3), pitch=0.0)
    _slanted_background(b, view)
    for _ in range(int(b.rng.integers(12, 50))):
        z = view.wall * b.between(0.3, 0.95)
        shape = str(b.rng.choice(["box", "sphere", "plane"]))
        side = z * b.about(0.22, 0.45)
        size = {
            "box": side * b.rng.uniform(0.4, 1.0, 3),
            "sphere": np.full(3, side),
            "plane": np.array([side, side, 0]),
        }
        b.add(shape, size[shape], _in_view(b, view, z), any_turn(b.rng))
    return view.camera(b)


def lamps(b: SceneBuilder, camera: Camera, distance: float) -> tuple[Lamp, ...]:
    """Draw one to four lights around the viewer and above: bulbs, windows, a sun.

    Args:
        b: the scene.
        camera: of the viewer.
        distance: of the farthest object.
    """
    found = []
    for _ in range(int(b.rng.choice([1, 2, 3, 4], p=[0.35, 0.35, 0.2, 0.1]))):
        toward = np.array([b.between(-1.3, 1.3), b.between(-0.1, 1.5), b.between(-1.2, 0.1)])
        away = distance * max(b.about(1.2, 0.6), 0.6)
        place = np.asarray(camera.position) + [0, 0, 0.35 * distance] + toward / np.linalg.norm(toward) * away
        place[1] = max(place[1], 0.15 * distance)
        warm = np.array([1.0, b.between(0.8, 1.0), b.between(0.6, 1.1)])
        power = b.about(1.0, 0.7) * away**2 * warm / warm.mean()
        found.append(Lamp(position=vector(place), radius=away * b.about(0.08, 0.8), power=vector(power)))
    return tuple(found)


def _view(b: SceneBuilder, wall: float, pitch: float | None = None) -> RoomView:
    """Draw a view: mostly from above, the foot of the wall near the middle of the picture's height."""
    slope = float(np.tan(np.radians(b.between(32, 62)) / 2))
    down = b.between(0.03, 0.5) if pitch is None else pitch
    height = max(wall * (np.tan(down) + b.between(-0.25, 0.35) * slope), 0.2 * wall)
    return RoomView(wall, float(height), down, slope)


def _floor_and_walls(b: SceneBuilder, view: RoomView, sides: bool = False) -> None:
    """Add floor, back wall and, sometimes or when asked, side walls: large planes with repeated textures."""
    wide, flat = 6 * view.wall, turn(0, np.pi / 2)
    tiles = int(6 / b.between(0.25, 0.8))
    b.add("plane", (wide, wide, 0), (0, 0, view.wall), flat, tiles=tiles)
    slant = turn(1, b.between(-0.35, 0.35) * float(b.chance(0.5)))
    b.add("plane", (wide, wide, 0), (0, wide / 2 - 0.01, view.wall), slant, tiles=tiles)
    for side in (-1, 1):
        if sides or b.chance(0.2):
            x = side * view.wall * view.slope * b.between(0.7, 1.1)
            yaw = turn(1, np.pi / 2 - side * b.between(0.0, 0.4))
            b.add("plane", (wide, wide, 0), (x, wide / 2 - 0.01, view.wall), yaw, tiles=tiles)


def _on_the_wall(b: SceneBuilder, view: RoomView) -> None:
    """Hang posters, boards and cloth on the wall: small steps in depth, or none."""
    half = view.slope * view.wall
    for _ in range(int(b.rng.integers(0, 6))):
        w, h = half * b.between(0.2, 1.2), half * b.between(0.2, 1.2)
        place = np.array([b.between(-half, half), view.height + half * b.between(-0.6, 0.9), 0.0])
        kind = str(b.rng.choice(["poster", "board", "cloth", "lattice"], p=[0.3, 0.3, 0.3, 0.1]))
        deep = view.wall * b.between(0.02, 0.12)
        if kind == "cloth":
            place[2] = view.wall - deep
            size, yaw = (w * 1.3, h * 1.5, deep), turn(1, b.between(-0.2, 0.2))
            b.add(
                "cloth", size, place, yaw, seed=b.seed(), folds=b.between(1.5, 9), crumple=b.between(0, 0.3)
            )
            continue
        thick = {"poster": 0.002, "board": b.between(0.005, 0.04), "lattice": 0.02}[kind] * view.wall
        place[2] = view.wall - thick / 2 - (0 if b.chance(0.5) else deep)
        tilt = turn(2, b.between(-0.1, 0.1)) @ turn(1, b.between(-0.4, 0.4) * float(b.chance(0.3)))
        b.add("lattice" if kind == "lattice" else "box", (w, h, thick), place, tilt)


def _crowd(b: SceneBuilder, view: RoomView, count: int, far: float = 0.97) -> None:
    """Put things on the floor, beside and in front of each other; some carry others."""
    taken: list[tuple[float, float, float]] = []
    for _ in range(count):
        for _ in range(6):
            place = _spot(b, view, far)
            size = b.about(0.21, 0.4) * float(np.sqrt(view.wall * place[2]))
            gap = [np.hypot(place[0] - x, place[2] - z) - (size + s) * 0.35 for x, z, s in taken]
            if not gap or min(gap) > 0:
                break
        if b.full:
            return
        taken.append((place[0], place[2], size))
        top = objects.any_thing(b)(b, place, size)
        while top is not None and b.chance(0.6) and not b.full:
            place, size = np.array([place[0], top, place[2]]), size * b.between(0.4, 0.9)
            top = objects.any_thing(b)(b, place, size)


def _leaning(b: SceneBuilder, view: RoomView, count: int) -> None:
    """Add boards and sticks that lean on the wall or on something out of view."""
    for _ in range(count):
        length, yaw = view.wall * b.between(0.3, 0.9), turn(1, b.between(-0.6, 0.6))
        tilt = b.between(0.1, 0.5)
        foot = _spot(b, view, 0.9)
        direction = yaw @ turn(0, tilt) @ [0.0, 1.0, 0.0]
        middle = foot + direction * length / 2
        if b.chance(0.5):
            thin = length * b.between(0.01, 0.04)
            b.add("stick", (thin, length, thin), middle, upright_to(direction), taper=b.between(0.3, 1.0))
        else:
            size = (length * b.between(0.3, 0.9), length, length * b.between(0.01, 0.05))
            b.add("box", size, middle, yaw @ turn(0, tilt))


def _across(b: SceneBuilder, view: RoomView, count: int) -> None:
    """Put thin things across the picture: bars, wires, sticks, a grate near the camera."""
    for _ in range(count):
        z = view.wall * b.between(0.3, 0.9)
        length = 2.5 * view.slope * z * b.between(0.4, 1.2)
        place = _in_view(b, view, z)
        direction = b.rng.standard_normal(3) * [1, 1, 0.4]
        thin = z * b.about(0.012, 0.5)
        kind = str(b.rng.choice(["stick", "box", "wire", "rack"], p=[0.4, 0.25, 0.25, 0.1]))
        if kind == "wire":
            size, roll = (length, 0.4 * length, 0.2 * length), turn(2, b.between(0, 6))
            b.add("wire", size, place, roll, seed=b.seed(), thin=b.between(0.01, 0.05))
        elif kind == "rack":
            size, roll = (0.6 * length, 0.6 * length, 0.02 * length), turn(2, b.between(0, 6))
            b.add("rack", size, place, roll, bars=int(b.rng.integers(3, 12)), thin=b.between(0.1, 0.5))
        else:
            b.add(kind, (thin, length, thin), place, upright_to(direction))


def _slanted_background(b: SceneBuilder, view: RoomView) -> None:
    """Add one or two planes that fill the frame, tilted by up to 35 degrees."""
    tiles = int(b.rng.integers(2, 9))
    middle = view.height - view.wall * np.tan(view.pitch)
    for _ in range(int(b.rng.integers(1, 3))):
        tilt = turn(1, b.between(-0.6, 0.6)) @ turn(0, b.between(-0.6, 0.6))
        size, away = np.array([10, 10, 0]) * view.wall, view.wall * b.between(1.0, 1.2)
        b.add("plane", size, (0, middle, away), tilt, tiles=4 * tiles)


def _tumble(b: SceneBuilder, first: int, pivot: Place) -> None:
    """Turn the items added since `first` about the pivot, as one."""
    tilt = any_turn(b.rng)
    for index in range(first, len(b.items)):
        item = b.items[index]
        moved = pivot + tilt @ (np.asarray(item.position) - pivot)
        turned = rotation_of(tilt @ np.asarray(item.rotation))
        b.items[index] = item.model_copy(update={"position": vector(moved), "rotation": turned})


def _spot(b: SceneBuilder, view: RoomView, far: float) -> Place:
    """Draw a place on the floor that is in view."""
    steepest = view.pitch + np.arctan(view.slope)
    seen = view.height / np.tan(steepest) if steepest > 0.05 else 0.0
    near = max(0.3 if b.chance(0.2) else 0.45, min(0.9 * seen / view.wall, 0.7))
    z = view.wall * b.between(min(near, 0.8 * far), far)
    return np.array([z * view.slope * b.between(-1.1, 1.1), 0.0, z])


def _in_view(b: SceneBuilder, view: RoomView, z: float) -> Place:
    x, y = z * view.slope * b.rng.uniform(-1.0, 1.0, 2)
    return np.array([x, view.height - z * np.tan(view.pitch) + y, z])
