"""Objects from OBJ files among the generated shapes."""

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.scenes.description import Scene, SceneObject
from primaldepth.scenes.sampler import sample
from primaldepth.scenes.scanned_objects import MOST_FACES, MOST_SCANS, ScannedObjects, read_obj
from primaldepth.scenes.scene_arrays import ATLAS_TILES, TEXTURES, pack
from primaldepth.scenes.scene_source import RenderSettings
from primaldepth.scenes.shapes import SCAN
from primaldepth.scenes.textures import TILE, TextureSource

PYRAMID = """# a pyramid, 2 wide, 1 deep, 4 high
v -1 0 -0.5
v 1 0 -0.5
v 1 0 0.5
v -1 0 0.5
v 0 4 0
vt 0 0
vt 1 0
vt 0.5 1
f 1 2 3 4
f 1/1 2/2 5/3
f 2/1/1 3/2/1 5/3/1
f -3/1 -2/2 -1/3
f 4 1 5
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pyramid.obj").write_text(PYRAMID)
    Image.new("RGB", (TILE, TILE), (200, 30, 40)).save(tmp_path / "pyramid.png")
    (tmp_path / "bare.obj").write_text(PYRAMID.replace("0 4 0", "0 2 0"))
    return tmp_path


def test_polygons_become_triangles_and_shared_points_share_a_normal(folder):
    mesh = read_obj(folder / "pyramid.obj")
    assert mesh.faces.shape == (6, 3)
    assert len(np.unique(mesh.weld)) == 5
    assert np.allclose(mesh.vertices.min(0), [-1, 0, -0.5])
    assert np.allclose(mesh.vertices.max(0), [1, 4, 0.5])
    top = mesh.vertices[:, 1] == 4
    assert any(np.allclose(uv, [0.5, 0.0], atol=1e-3) for uv in mesh.uv[top])  # v runs down in our pictures
    assert mesh.uv.min() >= 0
    assert mesh.uv.max() <= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v 0 0 x\n", "line 1 cannot be read"),
        ("v 0 0 0\nf 1 2 3\n", "line 2 cannot be read"),
        ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1/1 2/1 3/1\n", "line 4 cannot be read"),
        ("v 0 0 0\nf 0 0 0\n", "line 2 cannot be read"),
        ("v 0 0 0\n", "no triangles"),
        ("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
        ("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "line 1 cannot be read"),
    ],
)
def test_files_that_are_no_meshes_are_named(tmp_path, text, message):
    file = tmp_path / "odd.obj"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_obj(file)


def test_a_mesh_that_would_not_fit_is_refused(tmp_path):
    file = tmp_path / "fine.obj"
    file.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * (MOST_FACES + 1))
    with pytest.raises(FileFormatError, match=f"more than {MOST_FACES} triangles; decimate"):
        read_obj(file)


def test_a_folder_without_meshes_is_named(tmp_path):
    with pytest.raises(InputError, match="no mesh found"):
        ScannedObjects(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        ScannedObjects(tmp_path / "none")


def test_an_object_keeps_its_proportions_and_stands_on_the_floor_of_its_box(folder):
    scans = ScannedObjects(folder)
    which = [file.stem for file in scans.files].index("pyramid")
    item = SceneObject(shape=SCAN, options={"seed": which}, size=(1.0, 1.0, 1.0), position=(5.0, 0.5, 3.0))
    vertices = scans.placed(item).vertices
    assert np.allclose(vertices.min(0), [4.75, 0.0, 2.875])
    assert np.allclose(vertices.max(0), [5.25, 1.0, 3.125])


def test_only_some_small_solids_are_replaced_and_the_rest_stays():
    replaced = 0
    for seed in range(12):
        plain, mixed = sample("rich", seed), sample("rich", seed, scans=True)
        assert sample("rich", seed, scans=True) == mixed
        assert Scene.from_json(mixed.to_json()) == mixed
        assert len(mixed.textures) <= TEXTURES
        scans = [item for item in mixed.items if item.shape == SCAN]
        assert len(scans) <= MOST_SCANS
        replaced += len(scans)
        assert mixed.guide == plain.guide
        assert mixed.lamps == plain.lamps
        for before, after in zip(plain.items, mixed.items, strict=True):
            assert (before.position, before.size, before.rotation) == (
                after.position,
                after.size,
                after.rotation,
            )
            if after.shape != SCAN:
                assert after == before
                assert plain.textures[after.material.texture] == mixed.textures[after.material.texture]
            else:
                assert mixed.textures[after.material.texture].seed == int(after.options["seed"])
    assert replaced > 20


def test_scenes_with_objects_fit_the_buffers_and_show_their_pictures(folder):
    scans, shown = ScannedObjects(folder), 0
    for seed in range(8):
        scene = sample("rich", seed, scans=True)
        packed = pack(scene, TextureSource(), scans)
        for index, texture in enumerate(scene.textures):
            if texture.pattern != SCAN:
                continue
            row, column = divmod(index, ATLAS_TILES)
            tile = packed.atlas[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
            pictured = scans.files[texture.seed % 2].stem == "pyramid"
            assert (tile == (200, 30, 40)).all() == pictured
            shown += pictured
    assert shown > 3


def test_a_manifest_names_the_meshes_only_where_there_are_some(folder):
    plain = RenderSettings(variant="llvm").made_with()
    assert "meshes" not in plain
    scans = ScannedObjects(folder)
    made = RenderSettings(variant="llvm", meshes=folder, scans=scans.fingerprint()).made_with()
    assert made == {**plain, "meshes": scans.fingerprint()}
    (folder / "bare.obj").write_text(PYRAMID + "# changed")
    assert ScannedObjects(folder).fingerprint() != made["meshes"]


def test_other_objects_than_those_asked_for_are_refused(folder):
    known = ScannedObjects(folder).fingerprint()
    assert RenderSettings(variant="scalar", meshes=folder, scans=known).resolved().scans == known
    with pytest.raises(InputError, match=f"holds other objects: their fingerprint is {known}, and 0123"):
        RenderSettings(variant="scalar", meshes=folder, scans="0123").resolved()
    with pytest.raises(InputError, match="their fingerprint is none, and 0123"):
        RenderSettings(variant="scalar", scans="0123").resolved()
