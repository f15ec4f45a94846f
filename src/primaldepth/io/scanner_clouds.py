"""Point clouds that scanners write: PLY, PCD, LAS, LAZ and arrays of numpy, as (N, 3) points.

What a header claims is held against the bytes of the file before anything of that size is made.
"""

import io
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.io.files import optional, read_file
from primaldepth.io.pointcloud import ply_header, read_ply
from primaldepth.io.rasters import read_raster

Points = NDArray[np.float64]
MAX_POINTS = 2**27
_MAX_BYTES = 2**32
_MAX_HEADER = 2**16
_LEAST_ROWS = 100  # of an array of points: a smaller one may be a depth map
_PCD_TYPES = {
    (kind, size): f"<{kind.lower()}{size}"
    for kind in "FUI"
    for size in ((4, 8) if kind == "F" else (1, 2, 4, 8))
}
_LAZ_RATIO = 64  # bytes of points for one of a packed file; what is measured takes about 10
_LAS_1_4 = 375  # bytes of the header that counts in 64 bits


def is_cloud(path: Path) -> bool:
    """Return whether a file holds points: by its extension, or an array of numpy with 3 or 4 columns."""
    if path.suffix.lower() in _READERS:
        return True
    if path.suffix.lower() != ".npy" or not path.is_file():
        return False
    with path.open("rb") as file:
        shape = re.search(rb"'shape': \((\d+), ([34])\)", file.read(256))
    return shape is not None and int(shape[1]) >= _LEAST_ROWS


def read_points(path: Path) -> Points:
    """Read the points of a cloud; those that are not finite are left out.

    Args:
        path: of a PLY, PCD, LAS, LAZ or npy file.

    Returns:
        (N, 3) in the unit of the file.

    Raises:
        FileFormatError: the file is damaged, or holds no point.
    """
    points = _READERS.get(path.suffix.lower(), _npy)(path)
    found: Points = np.asarray(points, np.float64)
    found = found[np.isfinite(found).all(axis=1)]
    if len(found) == 0:
        raise FileFormatError(path, "holds no point")
    return found


def _npy(path: Path) -> Points:
    pixels = read_raster(path, "depth").pixels
    if pixels.ndim != 2 or pixels.shape[1] < 3 or pixels.dtype.kind not in "iuf":
        raise FileFormatError(path, f"an array of {pixels.shape}, expected (N, 3) numbers")
    return pixels[:, :3]


def _ply(path: Path) -> Points:
    """Read the points of a PLY file, binary or text."""
    data = read_file(path, _MAX_BYTES)
    if re.search(rb"^format ascii 1\.0\s*$", data[:_MAX_HEADER], re.MULTILINE) is None:
        return np.asarray(read_ply(path).points)
    count, layout, start = ply_header(path, data)
    names = list(layout.names or ())
    return _table(path, data[start:], count, len(names), [names.index(axis) for axis in "xyz"])


def _table(path: Path, text: bytes, count: int, columns: int, axes: list[int]) -> Points:
    """Read rows of numbers as text; each number takes at least a digit and a space."""
    if count > MAX_POINTS or 2 * count * columns > len(text) + 1:
        raise FileFormatError(path, f"claims {count} points, which {len(text)} bytes cannot hold")
    words = text.split(None, count * columns)[: count * columns]
    if len(words) < count * columns:
        raise FileFormatError(path, f"cut short, {len(words) // columns} of {count} points")
    try:
        chosen = [[float(word) for word in words[axis::columns]] for axis in axes]
    except ValueError as error:
        raise FileFormatError(path, f"{shortened(str(error))}", "export the cloud again") from error
    return np.array(chosen).T.reshape(count, 3)


def _pcd(path: Path) -> Points:
    """Read the points of PCD 0.7, as text or binary."""
    data = read_file(path, _MAX_BYTES)
    match = re.search(rb"^DATA (\w+)[^\n]*\n", data[:_MAX_HEADER], re.MULTILINE)
    if match is None:
        raise FileFormatError(path, "not a PCD file (no line 'DATA')")
    head = {
        words[0]: words[1:]
        for line in data[: match.start()].decode("ascii", "replace").splitlines()
        if (words := line.split()) and not words[0].startswith("#")
    }
    layout, count = _pcd_layout(path, head)
    body, names = data[match.end() :], list(layout.names or ())
    if match[1] == b"ascii":
        if any(layout[name].shape for name in names):
            raise FileFormatError(path, "fields of several numbers as text", "save it as binary")
        return _table(path, body, count, len(names), [names.index(axis) for axis in "xyz"])
    if match[1] != b"binary":
        raise FileFormatError(path, f"packed as {shortened(match[1].decode())}", "save it as binary")
    if count > MAX_POINTS or count * layout.itemsize > len(body):
        raise FileFormatError(path, f"cut short, {len(body) // layout.itemsize} of {count} points")
    rows = np.frombuffer(body, layout, count)
    return np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=1)


def _pcd_layout(path: Path, head: dict[str, list[str]]) -> tuple[np.dtype[Any], int]:
    """Return the layout of a point, and the number of points."""
    names, kinds, sizes = (head.get(key, []) for key in ("FIELDS", "TYPE", "SIZE"))
    counts, points = head.get("COUNT", ["1"] * len(names)), head.get("POINTS", ["?"])
    numbers = [*sizes, *counts, *points]
    alike = len(names) == len(kinds) == len(sizes) == len(counts) <= 64
    if not alike or not all(each.isdecimal() and len(each) <= 10 for each in numbers):
        raise FileFormatError(path, "a PCD header that is not understood", "export the cloud again")
    types = [_PCD_TYPES.get((kind, int(size))) for kind, size in zip(kinds, sizes, strict=True)]
    if None in types or not {"x", "y", "z"} <= set(names) or max(map(int, counts)) > 4096:
        raise FileFormatError(path, f"fields {shortened(names)} of {shortened(kinds)}, expected x, y and z")
    shapes = [() if int(many) == 1 else (int(many),) for many in counts]
    fields = [
        (name if name in "xyz" else f"_{index}", str(kind), shape)
        for index, (name, kind, shape) in enumerate(zip(names, types, shapes, strict=True))
    ]
    try:
        return np.dtype(fields), int(points[0])
    except ValueError as error:
        raise FileFormatError(path, f"fields {shortened(names)}, one of them twice") from error


def _las(path: Path) -> Points:
    """Read LAS 1.0 to 1.4: x, y, z are the first three whole numbers of each record, scaled and shifted."""
    data = read_file(path, _MAX_BYTES)
    start, size, count, packed = _las_header(path, data)
    if packed:
        return _laz(path, data, size, count)
    if count > MAX_POINTS or start + count * size > len(data):
        raise FileFormatError(path, f"cut short, it cannot hold {count} points")
    rows = np.frombuffer(data, np.uint8, count * size, start).reshape(count, size)[:, :12]
    whole = np.ascontiguousarray(rows).view("<i4").astype(np.float64)
    numbers = struct.unpack_from("<6d", data, 131)
    return np.asarray(whole * numbers[:3] + numbers[3:])


def _las_header(path: Path, data: bytes) -> tuple[int, int, int, bool]:
    """Return (first byte of the points, bytes of a point, their number, whether they are packed)."""
    if data[:4] != b"LASF" or len(data) < 227:
        raise FileFormatError(path, "not a LAS file, or cut short")
    start, kind, size, count = struct.unpack_from("<I4xBHI", data, 96)
    length = struct.unpack_from("<H", data, 94)[0]
    if count == 0 and length >= _LAS_1_4 and len(data) >= _LAS_1_4:
        count = struct.unpack_from("<Q", data, 247)[0]
    if size < 12:
        raise FileFormatError(path, f"records of {size} bytes, expected at least 12")
    return start, size, count, kind >= 128


def _laz(path: Path, data: bytes, size: int, count: int) -> Points:
    """Read a LAZ file, unpacked by lazrs after its size was checked."""
    if count > MAX_POINTS or count * size > _LAZ_RATIO * len(data):
        raise FileFormatError(path, f"claims {count} points, which {len(data)} bytes cannot hold")
    laspy, _ = (optional(package, "las", path) for package in ("laspy", "lazrs"))
    try:
        cloud = laspy.read(io.BytesIO(data))
        return np.stack([np.asarray(getattr(cloud, axis), np.float64) for axis in "xyz"], axis=1)
    except BaseException as error:  # its panics are no exceptions
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise FileFormatError(path, f"not readable ({shortened(str(error))})", "export it again") from error


_READERS: dict[str, Callable[[Path], Points]] = {".ply": _ply, ".pcd": _pcd, ".las": _las, ".laz": _las}
EXTENSIONS = frozenset(_READERS)
