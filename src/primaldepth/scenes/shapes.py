"""Shapes by name, and the mesh of an item at its place in the room."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.scenes import solid_shapes as solid
from primaldepth.scenes import thin_shapes as thin
from primaldepth.scenes.description import SceneObject
from primaldepth.scenes.meshes import ShapeMesh, fitted

SPHERE = "sphere"
"""Not a mesh: the renderer's own, exact sphere."""

SCAN = "scan"
"""Shape of an object, and pattern of a texture, that come from a file; their seed says which."""

SHAPES: dict[str, Callable[[solid.Options], ShapeMesh]] = {
    maker.__name__: maker
    for maker in (
        solid.box, solid.cylinder, solid.cup, solid.vase, solid.turned, solid.superquadric, solid.blob,
        solid.polyhedron, solid.torus, solid.handle, solid.spring, solid.wire, solid.stick, solid.rack,
        solid.table, solid.shelf, solid.stairs, solid.cover,
        thin.plane, thin.cloth, thin.drape, thin.curl, thin.corrugated, thin.open_book,
        thin.ribbon, thin.plant, thin.outline, thin.glyphs, thin.lattice,
    )
}  # fmt: skip


def mesh_of(item: SceneObject) -> ShapeMesh:
    """Return the item's triangles in the room: x = R fitted(shape) + position."""
    if item.shape not in SHAPES:
        known = ", ".join([SPHERE, *SHAPES])
        raise InputError("scene", f"shape '{item.shape}' has no mesh", f"known: {known}")
    mesh = fitted(SHAPES[item.shape](item.options), item.size)
    return replace(mesh, vertices=mesh.vertices @ np.asarray(item.rotation).T + np.asarray(item.position))
