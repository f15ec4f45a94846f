"""Point clouds as scanners write them, each written here byte by byte."""

import struct

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError
from primaldepth.io.scanner_clouds import is_cloud, read_points

POINTS = np.array([[0.5, -1.25, 2.0], [1.0, 0.0, 3.5], [-2.0, 0.75, 1.0]])
ROWS = "\n".join(" ".join(map(str, row)) for row in POINTS.tolist())


def ply_text():
    axes = "".join(f"property float {axis}\n" for axis in "xyz")
    return f"ply\nformat ascii 1.0\nelement vertex 3\n{axes}end_header\n{ROWS}\n".encode()


def pcd(kind, body):
    head = "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 3\nHEIGHT 1\nPOINTS 3\n"
    return (head + f"DATA {kind}\n").encode() + body


def las():
    """LAS 1.2, records of 20 bytes, in units of 0.25 m."""
    head = bytearray(227)
    head[:4] = b"LASF"
    struct.pack_into("<HI", head, 94, 227, 227)
    struct.pack_into("<BHI", head, 104, 0, 20, 3)
    struct.pack_into("<6d", head, 131, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0)
    rows = [struct.pack("<3i8x", *(round(4 * value) for value in row)) for row in POINTS.tolist()]
    return bytes(head) + b"".join(rows)


FILES = {
    "text.ply": ply_text(),
    "text.pcd": pcd("ascii", ROWS.encode()),
    "binary.pcd": pcd("binary", POINTS.astype("<f4").tobytes()),
    "scan.las": las(),
}


@pytest.mark.parametrize("name", FILES)
def test_points_come_back(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert is_cloud(path)
    np.testing.assert_allclose(read_points(path), POINTS)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_short_is_an_error(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name][:-9])
    with pytest.raises(FileFormatError):
        read_points(path)


def test_arrays_of_numpy_are_clouds_if_they_are_long(tmp_path):
    np.save(tmp_path / "cloud.npy", np.ones((200, 4)))
    np.save(tmp_path / "map.npy", np.ones((3, 3)))
    assert is_cloud(tmp_path / "cloud.npy")
    assert not is_cloud(tmp_path / "map.npy")
    assert read_points(tmp_path / "cloud.npy").shape == (200, 3)


def test_points_that_are_not_finite_are_left_out(tmp_path):
    cloud = np.ones((150, 3))
    cloud[::2] = np.nan
    np.save(tmp_path / "cloud.npy", cloud)
    assert len(read_points(tmp_path / "cloud.npy")) == 75
