"""Direct light on what a ray meets: lamps with soft shadows, and ambient light with occlusion.

Surfaces reflect by Lambert's law plus a glossy lobe (GGX). Everything is written once over arrays of rays;
`mi` and `dr` are Mitsuba and Dr.Jit with the variant set, and scenes are data, never constants of a kernel.
"""

from dataclasses import dataclass
from typing import Any

from primaldepth.scenes.scene_arrays import ATLAS_TILES, LAMPS, SPHERES
from primaldepth.scenes.textures import TILE

DIMENSIONS = 7
GOLDEN = 1.096981557798560
FILL = 0.35
"""How bright what stands in the way of ambient light is itself, relative to that light."""


@dataclass(frozen=True, slots=True)
class Data:
    """A packed scene on the device, flattened; see `SceneArrays`. `scene` holds the mesh alone."""

    scene: Any
    vertices: Any
    normals: Any
    uv: Any
    faces: Any
    face_ids: Any
    spheres: Any
    sphere_ids: Any
    surfaces: Any
    atlas: Any
    lamps: Any
    ambient: Any


@dataclass(frozen=True, slots=True)
class Hit:
    """What a ray hit first: place, normal, material and object.

    Args:
        t: distance along the ray.
        point: where.
        normal: unit, of the smooth surface, towards the viewer.
        number: object id, 0 for nothing.
        albedo: linear RGB.
        roughness: of the glossy lobe.
        metallic: share of the metal's reflection.
    """

    t: Any
    point: Any
    normal: Any
    number: Any
    albedo: Any
    roughness: Any
    metallic: Any


def first_hit(mi: Any, dr: Any, data: Data, ray: Any) -> Hit:
    """Intersect the mesh and the spheres, and look up the object's texture and material."""
    pi = data.scene.ray_intersect_preliminary(ray)
    t_sphere, sphere = nearest_sphere(mi, dr, data, ray)
    on_sphere = t_sphere < pi.t
    on_mesh = pi.is_valid() & ~on_sphere
    t = dr.minimum(pi.t, t_sphere)
    point = ray(t)
    normal, uv = on_face(mi, dr, data, pi, on_mesh)
    ball_normal, ball_uv = on_ball(mi, dr, data, sphere, point)
    normal, uv = dr.select(on_sphere, ball_normal, normal), dr.select(on_sphere, ball_uv, uv)
    number = dr.gather(mi.UInt32, data.face_ids, pi.prim_index, on_mesh)
    number = dr.select(on_sphere, dr.gather(mi.UInt32, data.sphere_ids, sphere, on_sphere), number)
    column, row, roughness, metallic = dr.gather(mi.Vector4f, data.surfaces, number)
    # Half a texel inside the tile, so that no neighbour shows.
    texel = mi.Point2f(column, row) * TILE + 0.5 + uv * (TILE - 1)
    albedo = mi.Color3f(*data.atlas.eval(texel / (ATLAS_TILES * TILE)))
    normal = dr.select(dr.dot(normal, ray.d) > 0, -normal, normal)
    return Hit(t, point, normal, number, albedo, roughness, metallic)


def nearest_sphere(mi: Any, dr: Any, data: Data, ray: Any) -> tuple[Any, Any]:
    """Return the first sphere along a ray: t = b - sqrt(r^2 - |c - b d|^2), b = c . d; infinity if none.

    c is the middle seen from the ray's origin. The difference under the root is taken between lengths of
    the sphere's size, not of its distance, and so keeps its digits.
    """
    nearest, which = mi.Float(dr.inf), mi.UInt32(0)
    for index in range(SPHERES):
        x, y, z, radius = dr.gather(mi.Vector4f, data.spheres, mi.UInt32(4 * index + 3))
        toward = mi.Vector3f(x, y, z) - ray.o
        along = dr.dot(toward, ray.d)
        inside = dr.square(radius) - dr.squared_norm(toward - along * ray.d)
        t = along - dr.sqrt(dr.maximum(inside, 0))
        closer = (inside > 0) & (t > 0) & (t < nearest)
        nearest, which = dr.select(closer, t, nearest), dr.select(closer, mi.UInt32(index), which)
    return nearest, which


def on_face(mi: Any, dr: Any, data: Data, pi: Any, active: Any) -> tuple[Any, Any]:
    """Interpolate normal and texture coordinates over a triangle."""
    corners = dr.gather(mi.Vector3u, data.faces, pi.prim_index, active)
    weights = (1 - pi.prim_uv.x - pi.prim_uv.y, pi.prim_uv.x, pi.prim_uv.y)
    normal, uv = mi.Vector3f(0), mi.Point2f(0)
    for corner, weight in zip(corners, weights, strict=True):
        normal += weight * dr.gather(mi.Vector3f, data.normals, corner, active)
        uv += weight * dr.gather(mi.Point2f, data.uv, corner, active)
    return dr.normalize(normal), uv


def on_ball(mi: Any, dr: Any, data: Data, sphere: Any, point: Any) -> tuple[Any, Any]:
    """Return normal and texture coordinates (longitude, latitude) on a sphere."""
    axes = [dr.gather(mi.Vector4f, data.spheres, 4 * sphere + k) for k in range(4)]
    out = dr.normalize(point - mi.Point3f(axes[3].x, axes[3].y, axes[3].z))
    x, y, z = (dr.dot(out, mi.Vector3f(axis.x, axis.y, axis.z)) for axis in axes[:3])
    longitude = dr.atan2(z, x) / (2 * dr.pi) + 0.5
    return out, mi.Point2f(longitude, dr.safe_acos(y) / dr.pi)


def blocked(mi: Any, dr: Any, data: Data, hit: Hit, direction: Any, limit: Any, active: Any) -> Any:
    """Return whether anything lies within `limit` of the surface along a direction."""
    # Off the surface by a few roundings of the largest coordinate.
    scale = 1e-4 * (1 + dr.maximum(dr.abs(hit.point.x), dr.maximum(dr.abs(hit.point.y), dr.abs(hit.point.z))))
    ray = mi.Ray3f(hit.point + scale * hit.normal, direction)
    ray.maxt = limit
    return data.scene.ray_test(ray, active) | (nearest_sphere(mi, dr, data, ray)[0] < limit)


def spread_points(mi: Any, dr: Any, pixel: Any, index: Any, seed: Any) -> list[Any]:
    """Return seven evenly spread numbers in [0, 1) per sample of a pixel: frac(shift + index a_k).

    a_k = g^-k with g^8 = g + 1 is the golden ratio's relative in seven dimensions; the shift is random for
    each pixel.
    """
    numbers = []
    for k in range(DIMENSIONS):
        shift = mi.sample_tea_float32(pixel, seed + k)
        step = mi.Float(index) * (GOLDEN ** -(k + 1))
        numbers.append(shift + step - dr.floor(shift + step))
    return numbers


def radiance(mi: Any, dr: Any, data: Data, ray: Any, points: list[Any]) -> Any:
    """Estimate the radiance along each ray from a random point of a lamp and a random ambient direction.

    Args:
        mi: Mitsuba.
        dr: Dr.Jit.
        data: the scene.
        ray: (N,) rays.
        points: five times (N,) in [0, 1): which lamp, where on it, which direction of ambient light.
    """
    hit = first_hit(mi, dr, data, ray)
    lit = from_lamp(mi, dr, data, ray, hit, mi.Point2f(points[1], points[2]), points[0])
    lit += from_ambient(mi, dr, data, hit, mi.Point2f(points[3], points[4]))
    return dr.select(hit.number > 0, lit, 0)


def from_lamp(mi: Any, dr: Any, data: Data, ray: Any, hit: Hit, point: Any, share: Any) -> Any:
    """Return L Omega f(l, v) (n . l) / p for a direction l, uniform in the cone Omega of a ball of light."""
    chosen, below = mi.UInt32(0), mi.Float(0)
    for index in range(LAMPS - 1):
        below += dr.gather(mi.Float, data.lamps, mi.UInt32(8 * index + 7))
        chosen = dr.select(share >= below, index + 1, chosen)
    x, y, z, radius = dr.gather(mi.Vector4f, data.lamps, 2 * chosen)
    red, green, blue, chance = dr.gather(mi.Vector4f, data.lamps, 2 * chosen + 1)
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
    dark = blocked(mi, dr, data, hit, direction, distance - radius, active)
    light = mi.Color3f(red, green, blue) * (2 * dr.pi * versine * facing / dr.maximum(chance, 1e-6))
    return dr.select(active & ~dark, light * reflected(mi, dr, hit, -ray.d, direction), 0)


def from_ambient(mi: Any, dr: Any, data: Data, hit: Hit, point: Any) -> Any:
    """Return albedo A(l) for l cosine-distributed; A is FILL times as strong where something blocks it."""
    local = mi.warp.square_to_cosine_hemisphere(point)
    direction = mi.Frame3f(hit.normal).to_world(local)
    low, high, up = (
        [dr.gather(mi.Float, data.ambient, mi.UInt32(3 * part + k)) for k in range(3)] for part in range(3)
    )
    height = 0.5 + 0.5 * dr.dot(mi.Vector3f(*up), direction)
    sky = dr.lerp(mi.Color3f(*low), mi.Color3f(*high), height)
    dark = blocked(mi, dr, data, hit, direction, mi.Float(dr.inf), hit.number > 0)
    return hit.albedo * sky * dr.select(dark, FILL, 1.0)


def reflected(mi: Any, dr: Any, hit: Hit, view: Any, light: Any) -> Any:
    """Return the reflectance albedo (1 - metallic) / pi + D V F, GGX's D, F = f0 + (1 - f0)(1 - l.h)^5."""
    half = dr.normalize(view + light)
    nh, lh = dr.maximum(dr.dot(hit.normal, half), 0), dr.maximum(dr.dot(light, half), 1e-3)
    alpha2 = dr.square(dr.square(hit.roughness))
    spread = alpha2 / (dr.pi * dr.square(dr.square(nh) * (alpha2 - 1) + 1))
    visible = 1 / (4 * dr.square(lh) * (1 - alpha2) + 4 * alpha2)  # a fit to Smith's masking
    f0 = dr.lerp(mi.Color3f(0.04), hit.albedo, hit.metallic)
    fresnel = f0 + (1 - f0) * (1 - lh) ** 5
    return hit.albedo * (1 - hit.metallic) / dr.pi + spread * visible * fresnel
