"""Objects from files: meshes of a folder, each with its own picture, among the generated shapes."""

import itertools
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.files import read_file
from primaldepth.scenes.description import Material, SceneObject, Texture
from primaldepth.scenes.meshes import Floats, Ints, ShapeMesh
from primaldepth.scenes.shapes import SCAN
from primaldepth.scenes.textures import IMAGE_SUFFIXES, RGB, decoded_picture, fingerprint

REPLACED = ("box", "cylinder", "cup", "vase", "turned", "superquadric", "blob", "polyhedron")
SHARE = 0.6  # of the things that may be replaced
LARGEST, FLATTEST = 1.0, 0.2  # metres, and shortest over longest side, of what is replaced
MOST_FACES, MOST_BYTES = 4_000, 2**24
Corner = tuple[int, int]  # of a face: numbers of its point and of its place in the picture
MOST_SCANS = 16  # of a scene, so that its triangles fit the renderer's buffers


class ScannedObjects:
    """The OBJ files of a folder, in the order of their names.

    A picture of the same name beside a mesh is its texture. Meshes stand upright: y is up.

    Args:
        folder: with .obj files at any depth below it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(folder, "is not a folder", "--meshes names a folder of OBJ files")
        self.files = sorted(self.folder.rglob("*.obj"), key=lambda file: file.relative_to(folder).as_posix())
        if not self.files:
            raise InputError(folder, "no mesh found below it (.obj)")
        self._mesh = lru_cache(maxsize=1024)(read_obj)
        self._pictures = lru_cache(maxsize=1024)(decoded_picture)

    def fingerprint(self) -> str:
        """Return a short hash of the names and sizes of all meshes and their pictures."""
        both = (each for file in self.files for each in (file, _picture_of(file)))
        return fingerprint(self.folder, filter(None, both))

    def placed(self, item: SceneObject) -> ShapeMesh:
        """Return the mesh of an item in the room: in proportion, standing in the middle of the item's box."""
        mesh = self._mesh(self.files[int(item.options["seed"]) % len(self.files)])
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        size = np.asarray(item.size)
        factor = float((size / np.maximum(high - low, 1e-9)).min())
        foot = np.array([(low[0] + high[0]) / 2, low[1], (low[2] + high[2]) / 2])
        standing = (mesh.vertices - foot) * factor - [0.0, size[1] / 2, 0.0]
        return replace(mesh, vertices=standing @ np.asarray(item.rotation).T + np.asarray(item.position))

    def picture(self, texture: Texture) -> RGB | None:
        """Return the tile of a scan's texture; None where no picture lies beside its mesh."""
        file = _picture_of(self.files[texture.seed % len(self.files)])
        return None if file is None else self._pictures(file)


def with_scans(
    items: list[SceneObject], textures: list[Texture], rng: np.random.Generator, most_textures: int
) -> tuple[list[SceneObject], list[Texture]]:
    """Return the items and textures of a scene in which scanned objects stand for some of its small solids.

    Args:
        items: generated ones.
        textures: of the items.
        rng: decides which are replaced, and by what.
        most_textures: of a scene.
    """
    items, textures, left = list(items), list(textures), MOST_SCANS
    users = Counter(item.material.texture for item in items)
    for index, item in enumerate(items):
        draw, seed, old = rng.random(), int(rng.integers(1 << 30)), item.material.texture
        shared = users[old] > 1
        if not (_may_go(item) and draw < SHARE and left) or (shared and len(textures) >= most_textures):
            continue
        slot = len(textures) if shared else old
        users[old] -= 1
        changes = {"pattern": SCAN, "seed": seed, "repeat": 1, "turn": 0}
        textures[slot:] = [textures[old].model_copy(update=changes), *textures[slot + 1 :]]
        material = Material(texture=slot, roughness=item.material.roughness)
        items[index] = item.model_copy(
            update={"shape": SCAN, "options": {"seed": float(seed)}, "material": material}
        )
        left -= 1
    return items, textures


def _may_go(item: SceneObject) -> bool:
    size = np.asarray(item.size)
    small = size.max() <= LARGEST and size.min() >= FLATTEST * size.max()
    return item.shape in REPLACED and bool(small)


def read_obj(file: Path) -> ShapeMesh:
    """Read the triangles of an OBJ file: `v`, `vt` and `f` lines; faces with more corners become fans.

    Raises:
        FileFormatError: a line cannot be read, or the mesh is empty or too large.
    """
    points: list[tuple[float, float, float]] = []
    places: list[tuple[float, float]] = []
    corners: list[Corner] = []
    known: dict[str, Corner] = {}
    for number, line in enumerate(read_file(file, MOST_BYTES).decode("latin1").splitlines(), start=1):
        word, *values = line.split() or [""]
        try:
            if word == "v":
                x, y, z = values[:3]
                points.append((float(x), float(y), float(z)))
            elif word == "vt":
                u, v = values[:2]
                places.append((float(u), float(v)))
            elif word == "f":
                corners += _fan(_polygon(values, known, len(points), len(places)))
        except (ValueError, IndexError) as error:
            raise FileFormatError(file, f"line {number} cannot be read", "export the mesh again") from error
        if len(corners) > 3 * MOST_FACES:
            raise FileFormatError(file, f"more than {MOST_FACES} triangles", "decimate the mesh")
    return _mesh(file, points, places, corners)


def _mesh(
    file: Path,
    points: list[tuple[float, float, float]],
    places: list[tuple[float, float]],
    corners: list[Corner],
) -> ShapeMesh:
    """Make one vertex of each point and place in the picture; those at one point share a normal."""
    pairs, faces = _different(np.array(corners, np.int64).reshape(-1, 2))
    vertices: Floats = np.array(points, np.float64).reshape(-1, 3)[pairs[:, 0]]
    if not len(vertices) or not np.isfinite(vertices).all():
        raise FileFormatError(file, "no triangles, or vertices that are not finite", "export it again")
    known: Floats = np.array([*places, [0.0, 0.0]], np.float64).reshape(-1, 2)
    uv = known[pairs[:, 1]]  # the last one, at -1, for corners without a place
    uv = np.stack([uv[:, 0] % 1.0001, 1.0 - uv[:, 1] % 1.0001], axis=1).clip(0.0, 1.0)
    weld: Ints = np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)
    return ShapeMesh(vertices, faces.reshape(-1, 3), uv, weld)


def _different(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the different ones of (N, 2) pairs of numbers from -1 on, in order, and which each pair is."""
    width = int(pairs[:, 1].max(initial=-1)) + 2
    numbers, which = np.unique(pairs[:, 0] * width + pairs[:, 1] + 1, return_inverse=True)
    return np.stack([numbers // width, numbers % width - 1], axis=1), which


def _polygon(values: list[str], known: dict[str, Corner], points: int, places: int) -> list[Corner]:
    """Return the corners of a face; those counted from the start of the file are added to `known`."""
    polygon = []
    for value in values:
        corner = known.get(value)
        if corner is None:
            corner = _corner(value, points, places)
            if "-" not in value:
                known[value] = corner
        polygon.append(corner)
    return polygon


def _corner(text: str, points: int, places: int) -> Corner:
    """Return the numbers of the point and of the place in the picture, from 0; -1 for no place.

    Raises:
        ValueError: it names what does not exist.
    """
    first, second = [*text.split("/"), ""][:2]
    point, place = _index(first, points), _index(second, places) if second else -1
    return point, place


def _index(text: str, count: int) -> int:
    number = int(text)
    index = number - 1 if number > 0 else count + number
    if not 0 <= index < count:
        raise ValueError(text)
    return index


def _fan(polygon: list[Corner]) -> list[Corner]:
    if len(polygon) == 3:
        return polygon
    triangles = ((polygon[0], *pair) for pair in itertools.pairwise(polygon[1:]))
    return list(itertools.chain.from_iterable(triangles))


def _picture_of(file: Path) -> Path | None:
    beside = (file.with_suffix(suffix) for suffix in IMAGE_SUFFIXES)
    return next((each for each in beside if each.is_file()), None)
