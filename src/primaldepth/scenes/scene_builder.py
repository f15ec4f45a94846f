"""Build a scene object by object: random numbers, textures to share, items in their places."""

import colorsys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primaldepth.scenes.description import IDENTITY, Colour, Material, Rotation, SceneObject, Texture, Vector
from primaldepth.scenes.patterns import PATTERNS
from primaldepth.scenes.scene_arrays import SPHERES, TEXTURES
from primaldepth.scenes.shapes import SPHERE

Matrix = NDArray[np.float64]

FULL = 180
"""Items after which no new group is begun; the largest groups have about twenty."""


class SceneBuilder:
    """A scene under construction: collects the items and textures of one scene.

    Args:
        rng: the scene's random numbers.
        glossy: share of surfaces with a visible highlight.
    """

    def __init__(self, rng: np.random.Generator, glossy: float = 0.35) -> None:
        self.rng = rng
        self.glossy = glossy
        self.items: list[SceneObject] = []
        self.textures: list[Texture] = []

    def between(self, low: float, high: float) -> float:
        """Draw a number uniformly from [low, high)."""
        return float(self.rng.uniform(low, high))

    def about(self, middle: float, spread: float = 0.4) -> float:
        """Draw a number log-normally around `middle`, for sizes."""
        return float(middle * np.exp(spread * self.rng.standard_normal()))

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < probability)

    def seed(self) -> int:
        """Draw a seed for a shape or a texture."""
        return int(self.rng.integers(1 << 30))

    @property
    def full(self) -> bool:
        """Whether the scene has room for no more objects."""
        return len(self.items) >= FULL

    def add(
        self,
        shape: str,
        size: ArrayLike,
        position: ArrayLike,
        rotation: ArrayLike = IDENTITY,
        material: Material | None = None,
        /,
        **options: float,
    ) -> None:
        """Put an object into the scene; a sphere too many becomes a superquadric ball.

        Args:
            shape: "sphere" or a name of `shapes.SHAPES`.
            size: extent along the shape's axes before it is turned.
            position: of its middle.
            rotation: (3, 3) from the shape's axes to the room's.
            material: of its surface; one is drawn if None.
            options: the shape's own numbers.
        """
        if shape == SPHERE and sum(item.shape == SPHERE for item in self.items) >= SPHERES:
            shape, options = "superquadric", {"e1": 1.0, "e2": 1.0}
        item = SceneObject(
            shape=shape,
            options=options,
            size=vector(size),
            rotation=rotation_of(rotation),
            position=vector(position),
            material=material or self.material(),
        )
        self.items.append(item)

    def stand(
        self,
        shape: str,
        size: tuple[float, float, float],
        foot: NDArray[np.float64],
        rotation: ArrayLike = IDENTITY,
        material: Material | None = None,
        /,
        **options: float,
    ) -> None:
        """Put an upright object onto a place; arguments as for `add`, but `foot` is below its middle."""
        middle = np.add(foot, [0.0, size[1] / 2, 0.0])
        self.add(shape, size, middle, rotation, material, **options)

    def material(self, texture: int | None = None) -> Material:
        """Draw a material: some glossy, few metallic; one in four has a texture already in the scene."""
        if texture is None:
            shared = self.textures and (len(self.textures) >= TEXTURES - 4 or self.chance(0.25))
            texture = int(self.rng.integers(len(self.textures))) if shared else self.texture()
        glossy = self.chance(self.glossy)
        return Material(
            texture=texture,
            roughness=self.between(0.2, 0.6) if glossy else 1.0,
            metallic=self.between(0.5, 1.0) if glossy and self.chance(0.12) else 0.0,
        )

    def texture(self, *patterns: str) -> int:
        """Add a texture, of one of the patterns if any are named, and return its index."""
        if len(self.textures) >= TEXTURES:
            return int(self.rng.integers(len(self.textures)))
        pattern = str(self.rng.choice(patterns)) if patterns else self._pattern()
        dark, light = self._colours(pattern)
        repeat = int(self.rng.choice([1, 1, 1, 1, 2, 3, 4])) if pattern != "plain" else 1
        turn = int(self.rng.integers(4))
        self.textures.append(
            Texture(pattern=pattern, seed=self.seed(), dark=dark, light=light, repeat=repeat, turn=turn)
        )
        return len(self.textures) - 1

    def _pattern(self) -> str:
        draw = self.rng.random()
        if draw < 0.45:
            return "image"
        return "plain" if draw < 0.65 else str(self.rng.choice(list(PATTERNS)))

    def _colours(self, pattern: str) -> tuple[Colour, Colour]:
        """Draw two colours: far apart for prints, close for stone and cloth, a mere tint for images."""
        light = self._colour(0.35, 1.0)
        if pattern == "image":
            tint = np.asarray(light) ** self.rng.choice([0.15, 0.5, 1.0])
            return (0.0, 0.0, 0.0), vector(tint / tint.max() * self.between(0.6, 1.0))
        mix = self.rng.beta(1.2, 1.5)
        dark = np.asarray(light) * mix + np.asarray(self._colour(0.03, 0.7)) * (1 - mix)
        return vector(dark), light

    def _colour(self, low: float, high: float) -> Colour:
        hue, value = self.rng.random(), self.between(low, high)
        saturation = min(1.0, self.rng.beta(1.2, 2.6))
        return colorsys.hsv_to_rgb(float(hue), float(saturation), value)


def vector(values: ArrayLike) -> Vector:
    """Return a vector as three plain floats."""
    x, y, z = np.asarray(values, dtype=np.float64).tolist()
    return x, y, z


def rotation_of(matrix: ArrayLike) -> Rotation:
    """Return a rotation matrix as nine plain floats."""
    a, b, c = (vector(row) for row in np.asarray(matrix, dtype=np.float64))
    return a, b, c


def turn(axis: int, angle: float) -> Matrix:
    """Return the (3, 3) right-handed rotation about axis 0, 1 or 2."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix


def any_turn(rng: np.random.Generator) -> Matrix:
    """Draw a uniformly random rotation, from a unit quaternion."""
    w, x, y, z = (q := rng.standard_normal(4)) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def upright_to(direction: ArrayLike) -> Matrix:
    """Return a (3, 3) rotation that takes the y axis to the direction."""
    y = np.asarray(direction, dtype=np.float64)
    y = y / np.linalg.norm(y)
    x = np.cross(y, [0.0, 0.0, 1.0] if abs(y[2]) < 0.9 else [1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    return np.stack([x, y, np.cross(x, y)], axis=1)
