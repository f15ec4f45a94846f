"""A scene as a few arrays of fixed size, in the guide camera's axes: what a renderer uploads.

Every scene fills the same buffers, so that nothing about a scene is part of the renderer's code and
nothing is compiled again: one mesh with room to spare, one atlas of textures, some spheres, some lamps.
"""

import itertools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primaldepth.core.errors import InputError
from primaldepth.scenes.description import Scene, SceneObject, Texture
from primaldepth.scenes.meshes import ShapeMesh, facets, merge, normals
from primaldepth.scenes.scanned_objects import ScannedObjects
from primaldepth.scenes.shapes import SCAN, SPHERE, mesh_of
from primaldepth.scenes.textures import RGB, TILE, TextureSource

VERTICES, FACES, SPHERES, LAMPS = 98_304, 163_840, 16, 4
ATLAS_TILES = 8
TEXTURES = ATLAS_TILES * ATLAS_TILES
ITEMS = 511
PARKED = (0.0, 0.0, -20.0)
"""Where what a scene does not use lies: behind the camera."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SceneArrays:
    """A scene in the guide camera's axes: x right, y down, z forward.

    Args:
        vertices: (VERTICES, 3); what is not used is parked.
        normals: (VERTICES, 3).
        uv: (VERTICES, 2) in [0, 1] of the object's texture.
        faces: (FACES, 3); what is not used is degenerate.
        face_ids: (FACES,) id of the object each face belongs to.
        spheres: (SPHERES, 4, 4) rows: its x, y and z axis, then its middle and radius; parked if not used.
        sphere_ids: (SPHERES,) 0 where not used.
        surfaces: (ITEMS + 1, 4) by id: left and top of its tile in the atlas, roughness, metallic.
        atlas: (ATLAS_TILES * TILE, ATLAS_TILES * TILE, 3) sRGB.
        lamps: (LAMPS, 8) middle, radius, radiance, probability to be sampled.
        ambient: (9,) linear RGB from straight below, straight above, and the upward direction.
    """

    vertices: Floats
    normals: Floats
    uv: Floats
    faces: NDArray[np.uint32]
    face_ids: NDArray[np.uint32]
    spheres: Floats
    sphere_ids: NDArray[np.uint32]
    surfaces: Floats
    atlas: RGB
    lamps: Floats
    ambient: Floats

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return all arrays but the atlas of textures, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "atlas"}


def pack(scene: Scene, source: TextureSource, scans: ScannedObjects | None = None) -> SceneArrays:
    """Return a scene as arrays of fixed size.

    Args:
        scene: to be rendered.
        source: of its textures.
        scans: of its objects that come from files.

    Raises:
        InputError: the scene has more of something than fits.
    """
    numbered = list(enumerate(scene.items, start=1))
    meshes = [(number, item) for number, item in numbered if item.shape != SPHERE]
    spheres = [(number, item) for number, item in numbered if item.shape == SPHERE]
    _check(scene, "objects", len(numbered), ITEMS)
    _check(scene, "textures", len(scene.textures), TEXTURES)
    _check(scene, "spheres", len(spheres), SPHERES)
    _check(scene, "lamps", len(scene.lamps), LAMPS)
    up = np.asarray(scene.guide.rotation)[1]
    return SceneArrays(
        **_packed_meshes(scene, meshes, scans),
        spheres=_spheres(scene, [item for _, item in spheres]),
        sphere_ids=_padded(np.array([number for number, _ in spheres], np.uint32), SPHERES, 0),
        surfaces=_surfaces(scene),
        atlas=_atlas([_tile(texture, source, scans) for texture in scene.textures]),
        lamps=_lamps(scene),
        ambient=np.concatenate([*scene.ambient, up]).astype(np.float32),
    )


def _tile(texture: Texture, source: TextureSource, scans: ScannedObjects | None) -> RGB:
    """Return the picture of a scan, or a plain colour where it has none; else the texture."""
    if texture.pattern != SCAN:
        return source.tile(texture)
    picture = None if scans is None else scans.picture(texture)
    return source.tile(texture.model_copy(update={"pattern": "plain"})) if picture is None else picture


def _placed(item: SceneObject, scans: ScannedObjects | None) -> ShapeMesh:
    return scans.placed(item) if item.shape == SCAN and scans is not None else mesh_of(item)


def _packed_meshes(
    scene: Scene, numbered: list[tuple[int, SceneObject]], scans: ScannedObjects | None
) -> dict[str, NDArray[Any]]:
    parts = [_placed(item, scans) for _, item in numbered]
    if not parts:
        parts = [facets(np.tile(PARKED, (1, 3, 1)))]
        numbered = [(0, scene.items[0])]
    mesh = merge(parts)
    _check(scene, "vertices", len(mesh.vertices), VERTICES)
    _check(scene, "faces", len(mesh.faces), FACES)
    face_ids = np.repeat([number for number, _ in numbered], [len(part.faces) for part in parts])
    turned = normals(mesh) @ np.asarray(scene.guide.rotation)
    return {
        "vertices": _padded(_to_camera(scene, mesh.vertices).astype(np.float32), VERTICES, PARKED),
        "normals": _padded(turned.astype(np.float32), VERTICES, (0.0, 0.0, 1.0)),
        "uv": _padded(mesh.uv.astype(np.float32), VERTICES, 0.0),
        "faces": _padded(mesh.faces.astype(np.uint32), FACES, VERTICES - 1),
        "face_ids": _padded(face_ids.astype(np.uint32), FACES, 0),
    }


def _padded(values: NDArray[Any], length: int, rest: ArrayLike) -> NDArray[Any]:
    filler = np.asarray(rest, values.dtype)
    full = np.empty((length, *(values.shape[1:] or filler.shape)), values.dtype)
    full[: len(values)] = values.reshape(len(values), *full.shape[1:])
    full[len(values) :] = filler
    return full


def _spheres(scene: Scene, items: list[SceneObject]) -> Floats:
    table = np.zeros((SPHERES, 4, 4), np.float32)
    table[:, 3] = (*PARKED, 1e-3)
    for index, item in enumerate(items):
        table[index, :3, :3] = np.asarray(item.rotation).T @ np.asarray(scene.guide.rotation)
        table[index, 3] = (*_to_camera(scene, np.asarray([item.position]))[0], item.size[0] / 2)
    return table


def _surfaces(scene: Scene) -> Floats:
    table = np.zeros((ITEMS + 1, 4), np.float32)
    for number, item in enumerate(scene.items, start=1):
        row, column = divmod(item.material.texture, ATLAS_TILES)
        table[number] = (column, row, item.material.roughness, item.material.metallic)
    return table


def _atlas(tiles: list[RGB]) -> RGB:
    atlas = np.empty((ATLAS_TILES, TILE, ATLAS_TILES, TILE, 3), np.uint8)
    for index, tile in itertools.zip_longest(range(TEXTURES), tiles, fillvalue=0):
        atlas[index // ATLAS_TILES, :, index % ATLAS_TILES] = tile
    return atlas.reshape(ATLAS_TILES * TILE, ATLAS_TILES * TILE, 3)


def _lamps(scene: Scene) -> Floats:
    """Return the lamps with the probability of sampling each: in proportion to power / d^2."""
    middle = np.mean([item.position for item in scene.items], axis=0)
    table = np.zeros((LAMPS, 8))
    table[:, :4] = (*PARKED, 1e-3)
    for index, lamp in enumerate(scene.lamps):
        distance = np.linalg.norm(np.asarray(lamp.position) - middle)
        radiance = np.asarray(lamp.power) / (np.pi * lamp.radius**2)
        place = _to_camera(scene, np.asarray([lamp.position]))[0]
        share = np.mean(lamp.power) / max(float(distance), 0.1) ** 2 + 1e-9
        table[index] = (*place, lamp.radius, *radiance, share)
    table[:, 7] /= table[:, 7].sum()
    return table.astype(np.float32)


def _to_camera(scene: Scene, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of the room in the camera's axes: X_camera = R^T (X_room - t)."""
    R, t = np.asarray(scene.guide.rotation), np.asarray(scene.guide.position)
    return np.asarray((points - t) @ R)


def _check(scene: Scene, what: str, found: int, most: int) -> None:
    if found > most:
        raise InputError(f"scene {scene.preset}/{scene.seed}", f"{found} {what}, at most {most} fit")
