"""Every shape is a sound mesh that fills its box."""

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.scenes.description import SceneObject
from primaldepth.scenes.meshes import normals
from primaldepth.scenes.scene_builder import any_turn, rotation_of, upright_to
from primaldepth.scenes.shapes import SHAPES, mesh_of

CLOSED = (
    "box", "cylinder", "cup", "vase", "turned", "superquadric", "blob", "polyhedron", "torus", "stick",
    "table", "shelf", "stairs", "cover", "rack",
)  # fmt: skip
SIZE = (0.3, 0.5, 0.4)


def item(shape: str, **changes: object) -> SceneObject:
    values = {"shape": shape, "size": SIZE, "position": (0.0, 0.0, 0.0), "options": {"seed": 3.0}}
    return SceneObject(**(values | changes))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_mesh_is_sound(shape: str) -> None:
    mesh = mesh_of(item(shape))
    assert np.isfinite(mesh.vertices).all()
    assert mesh.faces.min() >= 0
    assert mesh.faces.max() < len(mesh.vertices) == len(mesh.uv) == len(mesh.weld)
    assert mesh.uv.min() >= -1e-9
    assert mesh.uv.max() <= 1 + 1e-9
    extent = np.ptp(mesh.vertices, axis=0)
    np.testing.assert_allclose(extent, (*SIZE[:2], 0.0) if shape == "plane" else SIZE, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(normals(mesh), axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("shape", CLOSED)
def test_a_solid_is_closed(shape: str) -> None:
    """Its faces' areas, as vectors, add up to nothing."""
    mesh = mesh_of(item(shape))
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    area = np.cross(b - a, c - a) / 2
    unsigned = np.abs(area).sum()
    assert np.abs(area.sum(axis=0)).max() < 1e-6 * unsigned


@pytest.mark.parametrize("shape", ["cylinder", "torus", "superquadric", "blob"])
def test_a_round_shape_has_no_seam(shape: str) -> None:
    """Vertices at one place on a smooth surface have one normal, unless a crease is meant."""
    mesh = mesh_of(item(shape))
    found = normals(mesh)
    for group in np.unique(mesh.weld):
        members = found[mesh.weld == group]
        assert np.ptp(members, axis=0).max() < 1e-12


def test_an_item_is_turned_about_its_middle_and_moved() -> None:
    rotation = any_turn(np.random.default_rng(1))
    plain, moved = mesh_of(item("box")), mesh_of(
        item("box", rotation=rotation_of(rotation), position=(1.0, 2.0, 3.0))
    )  # fmt: skip
    np.testing.assert_allclose(moved.vertices, plain.vertices @ rotation.T + [1, 2, 3], atol=1e-12)


@pytest.mark.parametrize("direction", [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0.3, -2.0, 0.7)])
def test_upright_things_can_lean_anywhere(direction: tuple[float, float, float]) -> None:
    matrix = upright_to(direction)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(matrix) > 0
    np.testing.assert_allclose(matrix[:, 1], np.asarray(direction) / np.linalg.norm(direction), atol=1e-12)


def test_an_unknown_shape_says_which_are_known() -> None:
    with pytest.raises(InputError, match="'pyramid' has no mesh; known: sphere, box"):
        mesh_of(item("pyramid"))
