"""Direct light on what a ray meets: lamps with soft shadows, and ambient light with occlusion.

Surfaces reflect by Lambert's law plus a glossy lobe (GGX). Everything is written once over arrays of rays;
`mi` and `dr` are Mitsuba and Dr.Jit with the variant set, and scenes are data, never constants of a kernel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from primaldepth.scenes.packing import ATLAS_TILES, LAMPS
from primaldepth.scenes.textures import TILE

FILL = 0.35
"""How bright what stands in the way of ambient light is itself, relative to that light."""


@dataclass(frozen=True, slots=True)
class Data:
    """A packed scene on the device; see `packing.Packed` for the arrays."""

    scene: Any
    shape_ids: Any
    face_ids: Any
    surfaces: Any
    atlas: Any
    lamps: Any
    ambient: Any


@dataclass(frozen=True, slots=True)
class Hit:
    """What a ray met first.

    Args:
        t: distance along the ray.
        point: where.
        normal: unit, of the smooth surface, towards the viewer.
        number: object id, 0 for nothing.
        albedo: linear RGB.
        roughness: of the glossy lobe.
        metallic: share of the metal's reflection.
        spawn: makes a ray that leaves the surface.
    """

    t: Any
    point: Any
    normal: Any
    number: Any
    albedo: Any
    roughness: Any
    metallic: Any
    spawn: Any


def first_hit(mi: Any, dr: Any, data: Any, ray: Any) -> Hit:
    """Intersect, and look up the object's id, texture and material."""
    si = data.scene.ray_intersect(ray)
    found = si.is_valid()
    shape = dr.gather(mi.UInt32, data.shape_ids, dr.reinterpret_array(mi.UInt32, si.shape), found)
    on_mesh = found & (shape == 0)
    number = dr.select(on_mesh, dr.gather(mi.UInt32, data.face_ids, si.prim_index, on_mesh), shape)
    column, row, roughness, metallic = (
        dr.gather(mi.Float, data.surfaces, 4 * number + k, found) for k in range(4)
    )
    # Half a texel inside the tile, so that no neighbour shows.
    uv = (mi.Point2f(column, row) * TILE + 0.5 + si.uv * (TILE - 1)) / (ATLAS_TILES * TILE)
    albedo = mi.Color3f(*data.atlas.eval(uv, found))
    normal = si.sh_frame.n
    normal = dr.select(dr.dot(normal, ray.d) > 0, -normal, normal)
    return Hit(si.t, si.p, normal, number, albedo, roughness, metallic, si.spawn_ray)


def radiance(mi: Any, dr: Any, data: Any, ray: Any, sampler: Any, share: Any) -> Any:
    """Radiance along each ray: one random point of one lamp, and one random direction of ambient light.

    Args:
        mi: Mitsuba.
        dr: Dr.Jit.
        data: the scene.
        ray: (N,) rays.
        sampler: of random numbers, seeded for N.
        share: (N,) in [0, 1), evenly spread over each pixel's samples: chooses the lamp.
    """
    hit = first_hit(mi, dr, data, ray)
    lit = from_lamp(mi, dr, data, ray, hit, sampler.next_2d(), share)
    lit += from_ambient(mi, dr, data, hit, sampler.next_2d())
    return dr.select(hit.number > 0, lit, 0)


def from_lamp(mi: Any, dr: Any, data: Any, ray: Any, hit: Hit, point: Any, share: Any) -> Any:
    """L Omega f(l, v) (n . l) / p for a direction l, uniform in the cone Omega that a ball of light fills."""
    chosen, below = mi.UInt32(0), mi.Float(0)
    for index in range(LAMPS - 1):
        below += dr.gather(mi.Float, data.lamps, mi.UInt32(8 * index + 7))
        chosen = dr.select(share >= below, index + 1, chosen)
    x, y, z, radius, red, green, blue, chance = (
        dr.gather(mi.Float, data.lamps, 8 * chosen + k) for k in range(8)
    )
    toward = mi.Vector3f(x, y, z) - hit.point
    distance = dr.norm(toward)
    # 1 - cos of the cone's half angle, without cancellation for small lamps
    sine2 = dr.minimum(dr.square(radius / distance), 1)
    versine = sine2 / (1 + dr.sqrt(1 - sine2))
    cosine = 1 - point.x * versine
    sine = dr.sqrt(dr.maximum(1 - dr.square(cosine), 0))
    angle = 2 * dr.pi * point.y
    local = mi.Vector3f(sine * dr.cos(angle), sine * dr.sin(angle), cosine)
    direction = mi.Frame3f(toward / distance).to_world(local)
    facing = dr.dot(hit.normal, direction)
    active = (hit.number > 0) & (facing > 0) & (chance > 0)
    blocked = data.scene.ray_test(_until(dr, hit.spawn(direction), distance - radius), active)
    light = mi.Color3f(red, green, blue) * (2 * dr.pi * versine * facing / dr.maximum(chance, 1e-6))
    return dr.select(active & ~blocked, light * reflected(mi, dr, hit, -ray.d, direction), 0)


def from_ambient(mi: Any, dr: Any, data: Any, hit: Hit, point: Any) -> Any:
    """Albedo A(l) for l cosine-distributed; A is FILL as strong where something is in the way."""
    local = mi.warp.square_to_cosine_hemisphere(point)
    direction = mi.Frame3f(hit.normal).to_world(local)
    low, high, up = (
        [dr.gather(mi.Float, data.ambient, mi.UInt32(3 * part + k)) for k in range(3)] for part in range(3)
    )
    height = 0.5 + 0.5 * dr.dot(mi.Vector3f(*up), direction)
    sky = dr.lerp(mi.Color3f(*low), mi.Color3f(*high), height)
    blocked = data.scene.ray_test(hit.spawn(direction), hit.number > 0)
    return hit.albedo * sky * dr.select(blocked, np.float32(FILL).item(), 1)


def reflected(mi: Any, dr: Any, hit: Hit, view: Any, light: Any) -> Any:
    """F = albedo (1 - metallic) / pi + D V F, with GGX's D, and F = f0 + (1 - f0)(1 - l.h)^5."""
    half = dr.normalize(view + light)
    nh, lh = dr.maximum(dr.dot(hit.normal, half), 0), dr.maximum(dr.dot(light, half), 1e-3)
    alpha2 = dr.square(dr.square(hit.roughness))
    spread = alpha2 / (dr.pi * dr.square(dr.square(nh) * (alpha2 - 1) + 1))
    visible = 1 / (4 * dr.square(lh) * (1 - alpha2) + 4 * alpha2)  # a fit to Smith's masking
    f0 = dr.lerp(mi.Color3f(0.04), hit.albedo, hit.metallic)
    fresnel = f0 + (1 - f0) * (1 - lh) ** 5
    return hit.albedo * (1 - hit.metallic) / dr.pi + spread * visible * fresnel


def _until(dr: Any, ray: Any, limit: Any) -> Any:
    ray.maxt = dr.maximum(limit, 1e-4)
    return ray
