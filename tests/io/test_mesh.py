"""Mesh files, parsed as their specifications lay them out."""

import json
import struct

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.geometry.clouds import Mesh, PointCloud
from primaldepth.io.glb import linear_from_srgb
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import read_ply

POINTS = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1.5]], np.float32)
COLORS = np.array([[0, 128, 255], [1, 2, 3], [4, 5, 6], [250, 251, 252]], np.uint8)
TRIANGLES = np.array([[0, 2, 1], [1, 2, 3]], np.uint32)
MESH = Mesh(PointCloud(POINTS, COLORS), TRIANGLES)
DTYPES = {5126: "<f4", 5121: "u1", 5125: "<u4"}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


def parse_glb(data):
    magic, version, length = struct.unpack_from("<4sII", data)
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    blob_size, blob_kind = struct.unpack_from("<I4s", data, 20 + size)
    assert (blob_kind, 28 + size + blob_size) == (b"BIN\0", len(data))
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def accessor(gltf, blob, index, target):
    found = gltf["accessors"][index]
    view = gltf["bufferViews"][found["bufferView"]]
    assert view["target"] == target
    assert view["byteOffset"] % 4 == 0
    dtype, width = np.dtype(DTYPES[found["componentType"]]), WIDTHS[found["type"]]
    assert found["count"] * width * dtype.itemsize == view["byteLength"]
    values = np.frombuffer(blob, dtype, found["count"] * width, view["byteOffset"])
    return values.reshape(-1, width)


def test_glb_holds_vertices_colours_and_triangles(tmp_path):
    write_mesh(tmp_path / "mesh.glb", MESH)
    gltf, blob = parse_glb((tmp_path / "mesh.glb").read_bytes())
    (primitive,) = gltf["meshes"][0]["primitives"]
    assert primitive["mode"] == 4
    positions = accessor(gltf, blob, primitive["attributes"]["POSITION"], 34962)
    np.testing.assert_array_equal(positions, POINTS * [1, -1, -1])
    colors = accessor(gltf, blob, primitive["attributes"]["COLOR_0"], 34962)
    np.testing.assert_array_equal(colors[:, :3], linear_from_srgb(COLORS))
    indices = accessor(gltf, blob, primitive["indices"], 34963)
    np.testing.assert_array_equal(indices.reshape(-1, 3), TRIANGLES)
    assert gltf["buffers"][0]["byteLength"] == len(blob)
    material = gltf["materials"][primitive["material"]]
    assert material["doubleSided"] is True
    assert list(material["extensions"]) == gltf["extensionsUsed"] == ["KHR_materials_unlit"]


def test_ply_holds_the_same(tmp_path):
    write_mesh(tmp_path / "mesh.ply", MESH)
    data = (tmp_path / "mesh.ply").read_bytes()
    header, body = data.split(b"end_header\n")
    assert header.endswith(b"element face 2\nproperty list uchar int vertex_indices\n")
    cloud = read_ply(tmp_path / "mesh.ply")
    np.testing.assert_array_equal(cloud.points, POINTS)
    np.testing.assert_array_equal(cloud.colors, COLORS)
    assert body[4 * 15 :] == struct.pack("<B3iB3i", 3, 0, 2, 1, 3, 1, 2, 3)


def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileFormatError, match=r"\.obj.*\.glb or \.ply"):
        write_mesh(tmp_path / "mesh.obj", MESH)
    with pytest.raises(InputError, match="no triangle"):
        write_mesh(tmp_path / "mesh.glb", Mesh(MESH.points, TRIANGLES[:0]))
    broken = PointCloud(np.full((4, 3), np.inf, np.float32), COLORS)
    with pytest.raises(InputError, match="NaN or infinite"):
        write_mesh(tmp_path / "mesh.glb", Mesh(broken, TRIANGLES))
    assert list(tmp_path.iterdir()) == []


def test_wrong_triangles_are_named():
    with pytest.raises(InputError, match="expected uint32"):
        Mesh(MESH.points, TRIANGLES.astype(np.int64))
    with pytest.raises(InputError, match="vertex 4, but there are 4 vertices"):
        Mesh(MESH.points, TRIANGLES + np.uint32(1))
