"""Point clouds as PLY (binary, little-endian) and GLB (glTF 2.0, binary).

PLY keeps the camera's frame: x right, y down, z forward. glTF wants y up and -z forward, so GLB
stores (x, -y, -z), and its vertex colours are linear light, so the sRGB colours are converted.
glTF reads positions as metres.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.clouds import PointCloud
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import read_file
from primaldepth.io.formats.base import MAX_FILE_BYTES
from primaldepth.io.glb import POINTS, document, pack_glb, vertices

CAMERA_AXES = "x right, y down, z forward"


def write_cloud(path: str | Path, cloud: PointCloud, axes: str = CAMERA_AXES) -> None:
    """Write `.ply` or `.glb`, by the extension; GLB has no room for `measured`.

    Args:
        path: of the file.
        cloud: in metres.
        axes: of the cloud, in words, for the header of a PLY file.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.backproject import point_cloud
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> from primaldepth.io.pointcloud import read_ply, write_cloud
        >>> depth = np.full((3, 4), 2.0)
        >>> write_cloud("cloud.ply", point_cloud(depth, depth > 0, Intrinsics.guess(4, 3)))
        >>> read_ply("cloud.ply").points.shape
        (12, 3)
    """
    path = Path(path)
    encode = _ENCODERS.get(path.suffix.lower())
    if encode is None:
        raise FileFormatError(
            path, f"extension '{path.suffix}', but a point cloud is written as .ply or .glb"
        )
    if len(cloud.points) == 0:
        raise InputError(path, "no valid pixel, so there is no point to write")
    if not np.isfinite(cloud.points).all():
        raise InputError(path, "the cloud has NaN or infinite points", "leave them out")
    write_bytes(path, encode(cloud, axes))


def read_ply(path: str | Path) -> PointCloud:
    """Read a binary little-endian PLY whose first element is `vertex` with scalar properties.

    Needs x, y, z; without uchar red, green, blue the points are mid-grey; `measured` is optional.

    Args:
        path: of the file.

    Returns:
        The points.

    Raises:
        FileFormatError: if the file is missing, damaged, or another kind of PLY.
    """
    data = read_file(path, MAX_FILE_BYTES)
    count, layout, start = ply_header(path, data)
    if b"\nformat ascii" in data[:start]:
        raise FileFormatError(path, "text, expected 'format binary_little_endian 1.0'", "convert the file")
    if len(data) < start + count * layout.itemsize:
        found = (len(data) - start) // layout.itemsize
        raise FileFormatError(path, f"cut short, {found} of {count} vertices")
    rows = np.frombuffer(data, layout, count, start)
    names = layout.names or ()
    points = np.stack([rows[name].astype(np.float32) for name in "xyz"], axis=1)
    colors = np.full((count, 3), 128, np.uint8)
    if all(name in names and layout[name] == np.uint8 for name in _RGB):
        colors = np.stack([rows[name] for name in _RGB], axis=1)
    return PointCloud(points, colors, rows["measured"] != 0 if "measured" in names else None)


_LONGEST_HEADER = 2**16
_RGB = ("red", "green", "blue")
_XYZ_FIELDS = [("x", "<f4"), ("y", "<f4"), ("z", "<f4")]
_PLY_TYPES = {"char": "i1", "uchar": "u1", "short": "<i2", "ushort": "<u2", "int": "<i4", "uint": "<u4"} | {
    "float": "<f4",
    "double": "<f8",
    "int8": "i1",
    "uint8": "u1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "float32": "<f4",
    "float64": "<f8",
}


def _encode_ply(cloud: PointCloud, axes: str) -> bytes:
    header, body = ply_vertices(cloud, axes)
    return ("\n".join([*header, "end_header"]) + "\n").encode("ascii") + body


def ply_vertices(cloud: PointCloud, axes: str = CAMERA_AXES) -> tuple[list[str], bytes]:
    """Return (lines of the header up to the vertices' properties, the vertices' bytes)."""
    fields = [*_XYZ_FIELDS, *((name, "u1") for name in _RGB)]
    if cloud.measured is not None:
        fields.append(("measured", "u1"))
    rows = np.empty(len(cloud.points), np.dtype(fields))
    for axis in range(3):
        rows["xyz"[axis]] = cloud.points[:, axis]
        rows[_RGB[axis]] = cloud.colors[:, axis]
    if cloud.measured is not None:
        rows["measured"] = cloud.measured
    words = {"<f4": "float", "u1": "uchar"}
    lines = ["ply", "format binary_little_endian 1.0", f"comment primaldepth: {axes}"]
    lines += [f"element vertex {len(rows)}", *(f"property {words[kind]} {name}" for name, kind in fields)]
    return lines, rows.tobytes()


def ply_header(path: str | Path, data: bytes) -> tuple[int, np.dtype[Any], int]:
    """Return (vertices, layout of one vertex, first byte after the header)."""
    end = data.find(b"end_header", 0, _LONGEST_HEADER)
    newline = data.find(b"\n", end, end + 100)
    if not data.startswith(b"ply") or end < 0 or newline < 0:
        raise FileFormatError(path, "not a PLY file (no 'ply' ... 'end_header')")
    lines = [line.split() for line in data[:end].decode("ascii", "replace").splitlines()]
    known = [["format", name, "1.0"] for name in ("binary_little_endian", "ascii")]
    if not any(each in lines for each in known):
        raise FileFormatError(path, "only text and 'format binary_little_endian 1.0' are read", "convert it")
    elements = [index for index, line in enumerate(lines) if line[:1] == ["element"]]
    first = lines[elements[0]] if elements else []
    if len(first) != 3 or first[1] != "vertex" or not first[2].isdecimal() or len(first[2]) > 15:
        found = shortened(" ".join(first))
        raise FileFormatError(path, f"the first element must be 'vertex' with its count, found {found}")
    body = lines[elements[0] : elements[1] if len(elements) > 1 else None]
    layout = _ply_layout(path, [line[1:] for line in body if line[:1] == ["property"]])
    return int(first[2]), layout, newline + 1


def _ply_layout(path: str | Path, properties: list[list[str]]) -> np.dtype[Any]:
    unknown = [" ".join(words) for words in properties if len(words) != 2 or words[0] not in _PLY_TYPES]
    if unknown:
        raise FileFormatError(
            path, f"vertex property {shortened(unknown[0])} is not a scalar of a known type"
        )
    names = [name for _, name in properties]
    if len(set(names)) != len(names) or not {"x", "y", "z"} <= set(names):
        raise FileFormatError(
            path, f"vertex properties {shortened(names)}, expected x, y, z and no name twice"
        )
    return np.dtype([(name, _PLY_TYPES[kind]) for kind, name in properties])


def _encode_glb(cloud: PointCloud, axes: str) -> bytes:
    positions, colors, accessors = vertices(cloud.points, cloud.colors)
    return pack_glb(document({"mode": POINTS}, accessors, [positions, colors]), positions + colors)


_ENCODERS: dict[str, Callable[[PointCloud, str], bytes]] = {".ply": _encode_ply, ".glb": _encode_glb}
