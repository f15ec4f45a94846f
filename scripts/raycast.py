"""A small ray caster in numpy: vectors, lattice noise, and shapes that rays can hit.

It uses only + - * / sqrt, floor and integer hashing, which every machine rounds alike, so the same scene
gives the same picture everywhere. Vectors are arrays (3, N).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Paint = Callable[[Array, Array], Array]  # (local point, world point) -> linear albedo (3, N)


# Vectors and noise


def dot(a: Array, b: Array) -> Array:
    """Inner product per column, in a fixed order."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def unit(a: Array) -> Array:
    """Columns scaled to length 1."""
    return a / np.sqrt(dot(a, a))


def cross(a: Array, b: Array) -> Array:
    """Vector product per column."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def column(*values: float) -> Array:
    """(3, 1)."""
    return np.array(values, dtype=np.float64)[:, None]


def hashed(*parts: NDArray[np.int64]) -> Array:
    """A number in [0, 1) per tuple of integers (32-bit avalanche)."""
    h = np.full(np.broadcast_shapes(*(part.shape for part in parts)), 0x9E3779B9, np.uint32)
    for part in parts:
        h = (h ^ (part & 0xFFFFFFFF).astype(np.uint32)) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h = h ^ (h >> np.uint32(16))
    return h / 4294967296.0


def value_noise(p: Array) -> Array:
    """Smooth lattice noise in [0, 1)."""
    cell = np.floor(p).astype(np.int64)
    f = p - np.floor(p)
    f = f * f * (3.0 - 2.0 * f)
    total = np.zeros(p.shape[1])
    for corner in range(8):
        bits = (corner & 1, corner >> 1 & 1, corner >> 2)
        weight = np.ones(p.shape[1])
        for axis, bit in enumerate(bits):
            weight = weight * (f[axis] if bit else 1.0 - f[axis])
        total = total + weight * hashed(*(cell[axis] + bit for axis, bit in enumerate(bits)))
    return total


def fractal(p: Array, frequency: float, octaves: int = 4) -> Array:
    """Octaves of value noise, each half as strong and twice as fine; about [-0.5, 0.5]."""
    total, weight = np.zeros(p.shape[1]), 0.5
    for octave in range(octaves):
        total = total + weight * (value_noise(p * (frequency * 2**octave) + 17.0 * octave) - 0.5)
        weight = weight / 2
    return total


def parity(*coordinates: Array) -> Array:
    """0 or 1 per cell of a checkerboard."""
    return sum(np.floor(c) for c in coordinates) % 2.0


def blend(first: Array, second: Array, amount: Array) -> Array:
    """Mix: first (1 - amount) + second amount."""
    return first * (1.0 - amount) + second * amount


# Shapes: hit() gives the distance along rays in the shape's own frame, normal() the outward normal there


@dataclass(frozen=True)
class Plane:
    """Y = 0, seen from above."""

    def hit(self, origin: Array, ray: Array) -> Array:
        """Distance, inf where the ray runs away."""
        t = -origin[1] / np.where(ray[1] < 0, ray[1], -1.0)
        return np.where((ray[1] < 0) & (t > 1e-6), t, np.inf)

    def normal(self, p: Array) -> Array:
        """Up."""
        return np.broadcast_to(column(0, 1, 0), p.shape)


@dataclass(frozen=True)
class Sphere:
    """Around the origin."""

    radius: float

    def hit(self, origin: Array, ray: Array) -> Array:
        """Nearest root of |origin + t ray| = radius."""
        a, b, c = dot(ray, ray), dot(origin, ray), dot(origin, origin) - self.radius * self.radius
        root = b * b - a * c
        t = (-b - np.sqrt(np.maximum(root, 0.0))) / a
        return np.where((root > 0) & (t > 1e-6), t, np.inf)

    def normal(self, p: Array) -> Array:
        """Radial."""
        return p / self.radius


@dataclass(frozen=True)
class Cuboid:
    """|x|, |y|, |z| within half the edges."""

    half: tuple[float, float, float]

    def hit(self, origin: Array, ray: Array) -> Array:
        """Slabs: the last entry, if it comes before the first exit."""
        near, far = np.full(ray.shape[1], 1e-6), np.full(ray.shape[1], np.inf)
        for axis in range(3):
            slope = np.where(ray[axis] == 0, 1e-300, ray[axis])
            a, b = (-self.half[axis] - origin[axis]) / slope, (self.half[axis] - origin[axis]) / slope
            near, far = np.maximum(near, np.minimum(a, b)), np.minimum(far, np.maximum(a, b))
        return np.where((near < far) & (near > 1e-6), near, np.inf)

    def normal(self, p: Array) -> Array:
        """The face whose slab the point is closest to the end of."""
        relative = p / column(*self.half)
        face = np.argmax(np.abs(relative), axis=0)
        return np.where(np.arange(3)[:, None] == face, np.sign(relative), 0.0)


@dataclass(frozen=True)
class Cylinder:
    """x^2 + z^2 within radius, |y| within half the height, with caps."""

    radius: float
    half: float

    def hit(self, origin: Array, ray: Array) -> Array:
        """The nearer of mantle and caps."""
        a = ray[0] * ray[0] + ray[2] * ray[2] + 1e-300
        b = origin[0] * ray[0] + origin[2] * ray[2]
        root = b * b - a * (origin[0] * origin[0] + origin[2] * origin[2] - self.radius * self.radius)
        t = (-b - np.sqrt(np.maximum(root, 0.0))) / a
        best = np.where((root > 0) & (t > 1e-6) & (np.abs(origin[1] + t * ray[1]) <= self.half), t, np.inf)
        slope = np.where(ray[1] == 0, 1e-300, ray[1])
        t = (np.where(slope < 0, self.half, -self.half) - origin[1]) / slope
        x, z = origin[0] + t * ray[0], origin[2] + t * ray[2]
        cap = (t > 1e-6) & (x * x + z * z <= self.radius * self.radius)
        return np.where(cap & (t < best), t, best)

    def normal(self, p: Array) -> Array:
        """Up or down on the caps, else radial."""
        cap = np.abs(p[1]) > self.half * (1 - 1e-9)
        side = np.stack([p[0], np.zeros_like(p[0]), p[2]]) / self.radius
        return np.where(cap, np.stack([np.zeros_like(p[0]), np.sign(p[1]), np.zeros_like(p[0])]), side)


@dataclass(frozen=True)
class Thing:
    """A painted shape at a place; `axes` holds its own x, y, z directions as rows."""

    shape: Plane | Sphere | Cuboid | Cylinder
    centre: tuple[float, float, float]
    axes: tuple[tuple[float, float, float], ...]
    paint: Paint
    gloss: float = 0.0

    def local(self, v: Array) -> Array:
        """World direction to the shape's frame."""
        return np.stack([row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in self.axes])

    def world(self, v: Array) -> Array:
        """The shape's direction to the world."""
        return np.stack([sum(self.axes[k][axis] * v[k] for k in range(3)) for axis in range(3)])

    def place(self, p: Array) -> Array:
        """World point to the shape's frame."""
        return self.local(p - column(*self.centre))

    def hit(self, origin: Array, ray: Array) -> Array:
        """Distance along world rays."""
        return self.shape.hit(self.place(origin), self.local(ray))


# Rays


def nearest_hit(things: list[Thing], origin: Array, ray: Array) -> tuple[Array, NDArray[np.int64]]:
    """Distance and index of the first thing on each ray."""
    best, index = np.full(ray.shape[1], np.inf), np.full(ray.shape[1], -1)
    for number, thing in enumerate(things):
        t = thing.hit(origin, ray)
        index = np.where(t < best, number, index)
        best = np.minimum(best, t)
    return best, index


def clearance(things: list[Thing], origin: Array, ray: Array, reach: float) -> Array:
    """How far one sees along each ray before anything but the planes, as a share of `reach`."""
    far = np.full(ray.shape[1], reach)
    for thing in things:
        if not isinstance(thing.shape, Plane):
            far = np.minimum(far, thing.hit(origin, ray))
    return far / reach
