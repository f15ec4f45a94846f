import json
import struct

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.geometry.clouds import PointCloud
from primaldepth.io.glb import linear_from_srgb
from primaldepth.io.pointcloud import read_ply, write_cloud


def random_cloud(count, measured=True, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 3)).astype(np.float32)
    colors = rng.integers(0, 256, (count, 3), dtype=np.uint8)
    return PointCloud(points, colors, rng.random(count) > 0.5 if measured else None)


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
@pytest.mark.parametrize("measured", [True, False])
def test_ply_round_trip(tmp_path, count, measured):
    cloud = random_cloud(count, measured)
    path = tmp_path / "cloud.ply"
    write_cloud(path, cloud)
    back = read_ply(path)
    np.testing.assert_array_equal(back.points, cloud.points)
    np.testing.assert_array_equal(back.colors, cloud.colors)
    if measured:
        np.testing.assert_array_equal(back.measured, cloud.measured)
    else:
        assert back.measured is None


def test_ply_bytes(tmp_path):
    cloud = PointCloud(
        np.array([[1, -2, 3]], np.float32), np.array([[10, 20, 30]], np.uint8), np.array([True])
    )
    write_cloud(tmp_path / "one.PLY", cloud)
    header, body = (tmp_path / "one.PLY").read_bytes().split(b"end_header\n")
    assert header.startswith(b"ply\nformat binary_little_endian 1.0\n")
    assert b"element vertex 1\nproperty float x\nproperty float y\nproperty float z\n" in header
    assert header.endswith(
        b"property uchar red\nproperty uchar green\nproperty uchar blue\nproperty uchar measured\n"
    )
    assert body == struct.pack("<3f4B", 1, -2, 3, 10, 20, 30, 1)


def test_ply_of_other_programs_with_doubles_normals_and_faces(tmp_path):
    layout = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8"), ("nx", "<f4")])
    rows = np.array([(1, 2, 3, 9), (4, 5, 6, 9)], layout)
    header = "ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty double x\nproperty double y\n"
    header += "property double z\nproperty float32 nx\nelement face 0\n"
    header += "property list uchar int vertex_indices\nend_header\n"
    (tmp_path / "other.ply").write_bytes(header.encode() + rows.tobytes())
    cloud = read_ply(tmp_path / "other.ply")
    np.testing.assert_array_equal(cloud.points, [[1, 2, 3], [4, 5, 6]])
    assert (cloud.colors == 128).all()


PLY = "ply\nformat binary_little_endian 1.0\nelement vertex 1\n{}end_header\n"
XYZ = "property float x\nproperty float y\nproperty float z\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a PLY"),
        ("ply\nformat binary_little_endian 1.0\n", "not a PLY"),
        ("ply\nformat binary_big_endian 1.0\nelement vertex 0\nend_header\n", "binary_little_endian"),
        ("ply\nformat binary_little_endian 1.0\nelement face 1\nend_header\n", "vertex"),
        ("ply\nformat binary_little_endian 1.0\nelement vertex -1\nend_header\n", "vertex"),
        ("ply\nformat binary_little_endian 1.0\nend_header\n", "vertex"),
        ("ply\nformat binary_little_endian 1.0\nelement vertex " + "9" * 5000 + "\nend_header\n", "vertex"),
        (PLY.format("property float x\n"), "expected x, y, z"),
        (PLY.format(XYZ + "property float x\n"), "twice"),
        (PLY.format(XYZ + "property list uchar int i\n"), "not a scalar"),
        (PLY.format(XYZ + "property half q\n"), "not a scalar"),
        (PLY.format(XYZ) + "12345678901", "cut short, 0 of 1"),
    ],
)
def test_broken_ply_is_refused(tmp_path, text, message):
    (tmp_path / "broken.ply").write_text(text)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_ply(tmp_path / "broken.ply")
    assert "broken.ply" in str(caught.value)


def parse_glb(data):
    """Header and chunks as the glTF 2.0 specification lays them out (section 4, GLB file format)."""
    magic, version, length = struct.unpack_from("<III", data)
    assert (magic, version, length) == (0x46546C67, 2, len(data))
    json_length, json_type = struct.unpack_from("<II", data, 12)
    assert json_type == 0x4E4F534A
    bin_at = 20 + json_length
    bin_length, bin_type = struct.unpack_from("<II", data, bin_at)
    assert bin_type == 0x004E4942
    assert json_length % 4 == bin_length % 4 == 0
    assert bin_at + 8 + bin_length == len(data)
    return json.loads(data[20:bin_at]), data[bin_at + 8 :]


def accessor_array(gltf, blob, index):
    accessor = gltf["accessors"][index]
    view = gltf["bufferViews"][accessor["bufferView"]]
    dtype = {5126: np.dtype("<f4"), 5121: np.dtype("u1")}[accessor["componentType"]]
    width = {"VEC3": 3, "VEC4": 4}[accessor["type"]]
    start = view["byteOffset"] + accessor.get("byteOffset", 0)
    assert view["buffer"] == 0
    assert view["target"] == 34962
    assert start % 4 == 0
    assert width * dtype.itemsize % 4 == 0  # every vertex attribute element is aligned to 4 bytes
    assert accessor["count"] * width * dtype.itemsize == view["byteLength"]
    assert view["byteOffset"] + view["byteLength"] <= gltf["buffers"][0]["byteLength"] <= len(blob)
    return np.frombuffer(blob, dtype, accessor["count"] * width, start).reshape(-1, width)


@pytest.mark.parametrize("count", [1, 3, 500])
def test_glb_follows_the_specification(tmp_path, count):
    cloud = random_cloud(count)
    write_cloud(tmp_path / "cloud.glb", cloud)
    gltf, blob = parse_glb((tmp_path / "cloud.glb").read_bytes())
    assert gltf["asset"]["version"] == "2.0"
    assert "uri" not in gltf["buffers"][0]
    node = gltf["nodes"][gltf["scenes"][gltf["scene"]]["nodes"][0]]
    (primitive,) = gltf["meshes"][node["mesh"]]["primitives"]
    assert primitive["mode"] == 0
    positions = accessor_array(gltf, blob, primitive["attributes"]["POSITION"])
    np.testing.assert_array_equal(positions, cloud.points * [1, -1, -1])
    stated = gltf["accessors"][primitive["attributes"]["POSITION"]]
    np.testing.assert_array_equal(np.float32(stated["min"]), positions.min(axis=0))
    np.testing.assert_array_equal(np.float32(stated["max"]), positions.max(axis=0))
    assert gltf["accessors"][primitive["attributes"]["COLOR_0"]]["normalized"] is True
    colors = accessor_array(gltf, blob, primitive["attributes"]["COLOR_0"])
    np.testing.assert_array_equal(colors[:, :3], linear_from_srgb(cloud.colors))
    assert (colors[:, 3] == 255).all()


def test_an_empty_ply_is_an_empty_cloud_and_float_colours_are_left_out(tmp_path):
    head = "ply\nformat binary_little_endian 1.0\nelement vertex {}\n" + XYZ
    (tmp_path / "empty.ply").write_text(head.format(0) + "end_header\n")
    assert len(read_ply(tmp_path / "empty.ply").points) == 0
    colors = "".join(f"property float {name}\n" for name in ("red", "green", "blue"))
    text = head.format(1) + colors + "end_header\n"
    (tmp_path / "floats.ply").write_bytes(text.encode() + struct.pack("<6f", 1, 2, 3, 0.1, 0.2, 0.3))
    np.testing.assert_array_equal(read_ply(tmp_path / "floats.ply").colors, [[128, 128, 128]])


def test_linear_light_has_the_standard_values():
    np.testing.assert_array_equal(linear_from_srgb(np.array([0, 128, 188, 255], np.uint8)), [0, 55, 128, 255])


def test_what_cannot_be_written_is_refused_and_leaves_nothing_behind(tmp_path):
    cloud = random_cloud(3)
    with pytest.raises(FileFormatError, match=r"\.obj.*\.ply or \.glb"):
        write_cloud(tmp_path / "cloud.obj", cloud)
    with pytest.raises(InputError, match="no valid pixel"):
        write_cloud(tmp_path / "cloud.ply", random_cloud(0))
    broken = PointCloud(np.full((1, 3), np.nan, np.float32), np.zeros((1, 3), np.uint8))
    with pytest.raises(InputError, match="NaN"):
        write_cloud(tmp_path / "cloud.glb", broken)
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_another_shape_or_type_are_named():
    points, colors = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.uint8)
    with pytest.raises(InputError, match=r"points: .*float64"):
        PointCloud(points.astype(np.float64), colors)
    with pytest.raises(InputError, match="colours"):
        PointCloud(points, colors[:1])
    with pytest.raises(InputError, match="measured"):
        PointCloud(points, colors, np.ones((2, 1), bool))
