"""The names of the shapes, and a shape's mesh in its place in the room."""

from collections.abc import Callable

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.scenes import sheets, solids
from primaldepth.scenes.description import Item
from primaldepth.scenes.meshes import Mesh, fitted

SPHERE = "sphere"
"""Not a mesh: the renderer's own, exact sphere."""

SHAPES: dict[str, Callable[[solids.Options], Mesh]] = {
    maker.__name__: maker
    for maker in (
        solids.box, solids.cylinder, solids.cup, solids.vase, solids.turned, solids.superquadric, solids.blob,
        solids.polyhedron, solids.torus, solids.handle, solids.spring, solids.wire, solids.stick, solids.rack,
        solids.table, solids.shelf, solids.stairs, solids.cover,
        sheets.plane, sheets.cloth, sheets.drape, sheets.curl, sheets.corrugated, sheets.open_book,
        sheets.ribbon, sheets.plant, sheets.outline, sheets.glyphs, sheets.lattice,
    )
}  # fmt: skip


def mesh_of(item: Item) -> Mesh:
    """The item's triangles in the room: x = R fitted(shape) + position."""
    if item.shape not in SHAPES:
        known = ", ".join([SPHERE, *SHAPES])
        raise InputError(f"scene: shape '{item.shape}' has no mesh; known: {known}")
    mesh = fitted(SHAPES[item.shape](item.options), item.size)
    vertices = mesh.vertices @ np.asarray(item.rotation).T + np.asarray(item.position)
    return Mesh(vertices, mesh.faces, mesh.uv, mesh.weld)
