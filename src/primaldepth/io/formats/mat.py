"""MATLAB .mat: one two-dimensional numeric array; invalid pixels are 0 in integers and NaN in floats.

Version 5 (and 6, 7) is read here, without trusting a single length in it: scipy would be one more package to
install, and would be started twice for each file in a process of its own. Version 7.3 is HDF5 and needs h5py.
A file with one variable needs no name; among several one must be called depth, disparity or the like.
"""

import io
import math
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import (
    DEFLATE_RATIO,
    Codec,
    Pixels,
    Raster,
    Source,
    current_budget,
    inflated,
    library_errors,
    listing,
    native,
    row_blocks,
)

_HEADER = 128
_HEAD_TABLES = 4096  # bytes, more than deflate needs before its first output
_HEAD = 1024  # bytes of a variable that hold its flags, dimensions and name
_COMPRESSED, _MATRIX, _INT8, _INT32, _UINT32 = 15, 14, 1, 5, 6
_COMPLEX, _LOGICAL = 0x0800, 0x0200
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE_RATIO = 2**30  # HDF5 fills in what was never written, at no cost to the file
_HDF5 = b"\x89HDF\r\n\x1a\n"
_WORDS = {"depth": ("depth", "disp"), "guide": ("guide", "image", "rgb"), "confidence": ("conf",)}


@dataclass(frozen=True, slots=True)
class MatVariable:
    """A variable of a MATLAB file.

    Args:
        source: the file.
        name: of the variable.
        shape: as MATLAB counts.
        numeric: whether it is a plain array of real numbers.
        decode: gives its numbers.
    """

    source: Source
    name: str
    shape: tuple[int, ...]
    numeric: bool
    decode: Callable[[], Pixels]

    def read(self) -> Pixels:
        """Return the numbers of a numeric array."""
        with library_errors(self.source, "MATLAB"):
            return self.decode()


@dataclass(frozen=True, slots=True)
class _Version5:
    """An array of version 5; `body` holds it from its flags on, its numbers from `start` on."""

    shape: tuple[int, ...]
    dtype: str | None
    order: str
    body: memoryview
    deflated: bool
    start: int


def _read(source: Source) -> Raster:
    return Raster(_choose(source, list_variables(source)).read())


def list_variables(source: Source) -> list[MatVariable]:
    """Return everything in the file; no number is decoded."""
    with library_errors(source, "MATLAB"):
        return list(_hdf5_variables(source) if _is_hdf5(source.data) else _variables(source))


def _choose(source: Source, found: list[MatVariable]) -> MatVariable:
    """Return the one map in the file."""
    if not found:
        raise source.damaged("MATLAB file holds no variable")
    sides = (2, 3) if source.role == "guide" else (2,)
    plain = [each for each in found if each.numeric and len(each.shape) in sides]
    named = [each for each in plain if any(word in each.name.lower() for word in _WORDS[source.role])]
    exact = [each for each in plain if each.name.lower() == source.role]
    for fitting in (exact, named, plain if len(found) == 1 else []):
        if len(fitting) == 1:
            return fitting[0]
    every = [f"{each.name} ({'x'.join(map(str, each.shape))})" for each in found]
    hint = f"expected one plain numeric map, or one named '{source.role}': save it alone"
    raise source.error("holds {}", hint, listing(every))


def _variables(source: Source) -> Iterator[MatVariable]:
    """Yield the head of every top-level array, without decompressing more than that."""
    data, at = memoryview(source.data), _HEADER  # parts of it are no copies
    order = "<" if source.data[126:128] == b"IM" else ">"
    for _ in range(current_budget().members):
        if at == len(data):
            return
        if at + 8 > len(data):
            break
        kind, size = struct.unpack_from(order + "II", data, at)
        body, at = data[at + 8 : at + 8 + size], at + 8 + size
        if at > len(data):
            break
        if kind not in (_MATRIX, _COMPRESSED):
            raise source.damaged(f"MATLAB file has an element of type {kind}")
        yield _variable(source, body, kind == _COMPRESSED, order)
    raise source.damaged("MATLAB file ends inside a variable")


def _variable(source: Source, body: memoryview, deflated: bool, order: str) -> MatVariable:
    """Parse flags, dimensions and name; `start` is where the numbers' tag lies."""
    head, at = (_inflated_head(body, _HEAD), 8) if deflated else (bytes(body[:_HEAD]), 0)
    flags, at = _element(source, head, at, order)
    dims, at = _element(source, head, at, order)
    name, start = _element(source, head, at, order)
    if len(flags) < 4 or len(dims) % 4 or not 8 <= len(dims) <= 128:
        raise source.damaged("MATLAB file has a variable without flags or dimensions")
    (word,) = struct.unpack_from(order + "I", flags)
    dtype = None if word & (_COMPLEX | _LOGICAL) else _CLASSES.get(word & 0xFF)
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims)
    stored = _Version5(shape, dtype, order, body, deflated, start)
    decode = partial(_values, source, stored)
    return MatVariable(source, name.decode("latin1"), shape, dtype is not None, decode)


def _element(source: Source, data: bytes, at: int, order: str) -> tuple[bytes, int]:
    """Return the bytes of the element at `at`, and where the next one starts."""
    _, start, size = _tag(source, data, at, order)
    if start + size > len(data):
        raise source.damaged("MATLAB file ends inside a variable")
    return data[start : start + size], at + 8 if start < at + 8 else start + -(-size // 8) * 8


def _tag(source: Source, data: bytes | memoryview, at: int, order: str) -> tuple[int, int, int]:
    """Return type, start and length of the element at `at`."""
    if at + 8 > len(data):
        raise source.damaged("MATLAB file ends inside a variable")
    kind, size = struct.unpack_from(order + "II", data, at)
    if kind >> 16:  # up to four bytes packed into the tag itself
        return kind & 0xFFFF, at + 4, min(kind >> 16, 4)
    return kind, at + 8, size


def _values(source: Source, variable: _Version5) -> Pixels:
    """Return the numbers, which may be stored in a smaller type than the array's class."""
    height, width = variable.shape[:2]
    count = math.prod(variable.shape)
    source.check_size(height, width)
    body: bytes | memoryview = variable.body
    if variable.deflated:
        body = _inflated_head(variable.body, variable.start + 8)
    kind, start, size = _tag(source, body, variable.start, variable.order)
    stored = _STORED.get(kind)
    if stored is None or size != count * int(stored[1]):
        raise source.damaged(f"MATLAB file has {size} bytes for {'x'.join(map(str, variable.shape))} numbers")
    ratio = DEFLATE_RATIO if variable.deflated else 1
    source.check_size(height, width, stored_bytes=size, ratio=ratio)
    source.check_size(height, width, stored_bytes=count * np.dtype(variable.dtype).itemsize, ratio=8 * ratio)
    if variable.deflated:
        body = inflated(variable.body, start + size + 8)
    if start + size > len(body):
        raise source.damaged("MATLAB file ends inside a variable")
    numbers = np.frombuffer(body, variable.order + stored, count, start).reshape(variable.shape, order="F")
    return np.array(numbers, variable.dtype, order="C")


def _inflated_head(packed: memoryview, length: int) -> bytes:
    """Return the first bytes of a stream; the rest is not checked."""
    return zlib.decompressobj().decompress(packed[: length + _HEAD_TABLES], length)


def _is_hdf5(head: bytes) -> bool:
    return head[:8] == _HDF5 or head[512:520] == _HDF5


def _hdf5_variables(source: Source) -> Iterator[MatVariable]:
    """Yield every variable of version 7.3 but those whose names begin with #, which are MATLAB's own."""
    from primaldepth.io.formats.isolated import read_listing

    for each in read_listing(source, "hdf5"):
        name, shape = str(each["name"]), tuple(each["shape"])
        if not name.startswith("#"):
            decode = partial(_read_hdf5, source, name, shape, int(each["nbytes"]))
            yield MatVariable(source, name, shape, each["numeric"], decode)


def _read_hdf5(source: Source, name: str, shape: tuple[int, ...], nbytes: int) -> Pixels:
    from primaldepth.io.formats.isolated import read_array

    source.check_size(*shape[:2], stored_bytes=nbytes, ratio=_SPARSE_RATIO)
    return native(read_array(source, "hdf5", nbytes, name)[0])


def _tagged(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    """Return the bytes of a file of version 5 with one variable, `depth`, not compressed."""
    code = f"{pixels.dtype.kind}{pixels.dtype.itemsize}"
    mat_class = next(number for number, name in _CLASSES.items() if name == code)
    mat_type = next(number for number, name in _STORED.items() if name == code)
    parts = (
        _tagged(_UINT32, struct.pack("<II", mat_class, 0)),
        _tagged(_INT32, struct.pack("<2i", *pixels.shape)),
        _tagged(_INT8, b"depth"),
        struct.pack("<II", mat_type, pixels.nbytes),
    )
    head, filling = b"".join(parts), bytes(-pixels.nbytes % 8)
    text = b"MATLAB 5.0 MAT-file, written by primaldepth".ljust(116)
    stream = io.BytesIO()
    stream.write(text + bytes(8) + struct.pack("<H", 0x0100) + b"IM")
    stream.write(struct.pack("<II", _MATRIX, len(head) + pixels.nbytes + len(filling)) + head)
    columns = pixels.astype("<" + code, copy=False).T
    for block in row_blocks(*columns.shape):
        stream.write(columns[block].tobytes())
    stream.write(filling)
    return stream.getvalue()


def _recognises(head: bytes) -> bool:
    order_and_version = head[124:128] in (b"\x00\x01IM", b"\x01\x00MI")
    return order_and_version or _is_hdf5(head)


CODEC = Codec(
    name="MATLAB",
    extensions=(".mat",),
    recognises=_recognises,
    read=_read,
    dtypes=("uint16", "uint32", "float32", "float64"),
    missing=math.nan,
    encode=_encode,
)
