"""npy and npz: numpy's own files, read without pickle and without trusting their headers.

Invalid pixels are written as NaN in floating point arrays (0 would count in a mean) and 0 in integer ones.
An npz holds `depth` and `valid`; a mask found there decides together with the values.
"""

import io
import math
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from primaldepth.io.formats.base import (
    DEFLATE_RATIO,
    Codec,
    Pixels,
    Raster,
    Source,
    current_budget,
    library_errors,
    listing,
    native,
)

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000
_MAX_CHANNELS = 4
_PIECE = 1 << 20  # bytes that are inflated at a time
_RATIO = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: DEFLATE_RATIO}


@dataclass(frozen=True, slots=True)
class _Header:
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _header(source: Source, data: bytes) -> _Header:
    """Read a npy header by numpy's own reader; every claim in it is checked."""
    stream = io.BytesIO(data)
    with library_errors(source, "numpy"):
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(stream, max_header_size=_MAX_HEADER)
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or version > (3, 0):
        hint = "expected real numbers, save it as float32 or an integer type"
        raise source.error("array of type {}", hint, repr(str(dtype)[:60]))
    return _Header(dtype, _shape(source, shape), fortran, stream.tell())


def _shape(source: Source, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not all(type(n) is int and 0 < n < 2**40 for n in shape):
        raise source.error(f"array of shape {str(shape)[:60]}", "expected (H, W) with at least one pixel")
    while shape[0:1] == (1,) and (len(shape) > 3 or (len(shape) == 3 and shape[2] > _MAX_CHANNELS)):
        shape = shape[1:]  # a batch of one, or the one channel that torch puts first
    if not 2 <= len(shape) <= 3:
        raise source.error(
            f"array of shape {str(shape)[:60]}", "expected (H, W), pick one map and save it alone"
        )
    if len(shape) == 3 and shape[2] > _MAX_CHANNELS:
        raise source.error(
            f"array of shape {str(shape)[:60]}", f"a {source.role} has at most {_MAX_CHANNELS} channels"
        )
    if len(shape) == 3 and shape[2] > 1 and source.role != "guide":
        raise source.error(f"array of {shape[2]} channels", f"a {source.role} map has one: save it alone")
    source.check_size(shape[0], shape[1])
    return shape


def _array(source: Source, header: _Header, body: bytearray | memoryview) -> Pixels:
    if len(body) != header.nbytes:
        raise source.damaged(f"array of shape {header.shape} needs {header.nbytes} bytes, found {len(body)}")
    flat = np.frombuffer(body, header.dtype)
    return native(flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape))


def _read_npy(source: Source) -> Raster:
    header = _header(source, source.data)
    return Raster(_array(source, header, memoryview(source.data)[header.offset :]))


def _read_npz(source: Source) -> Raster:
    most = current_budget().members
    if source.data.count(b"PK\x01\x02") > most:  # each costs far more memory than its bytes
        raise source.error(f"npz of more than {most} arrays", "save the map alone")
    with library_errors(source, "npz"), zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        members = _members(source, archive)
        arrays = [name for name in members if name != "valid"]
        wanted = source.role if source.role in members else arrays[0] if len(arrays) == 1 else None
        if wanted is None:
            found = f"holds {{}} but no '{source.role}'"
            raise source.error(found, "save the map under that name", listing(list(members)))
        pixels = _read_member(source, archive, members[wanted])
        if "valid" not in members or source.role != "depth":
            return Raster(pixels)
        return Raster(pixels, _read_member(source, archive, members["valid"], pixels).astype(bool))


def _members(source: Source, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name; raise if a name occurs twice."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in found:
            raise source.error(
                "npz holds {} twice", "save it again with numpy.savez_compressed", repr(name[:40])
            )
        found[name] = info
    return found


def _read_member(
    source: Source, archive: zipfile.ZipFile, info: zipfile.ZipInfo, beside: Pixels | None = None
) -> Pixels:
    """Return an array of the same shape as the one beside it; its header is checked before it is inflated."""
    if info.compress_type not in _RATIO:
        raise source.error(
            "compressed in a way numpy does not use", "save it again with numpy.savez_compressed"
        )
    with archive.open(info) as stream:
        head = stream.read(12 + _MAX_HEADER)
        header = _header(source, head)
        if beside is not None and header.shape != beside.shape:
            raise source.error(
                f"'valid' has shape {header.shape}, but the map has {beside.shape}", "save both in one size"
            )
        height, width = header.shape[:2]
        source.check_size(height, width, stored_bytes=header.nbytes, ratio=_RATIO[info.compress_type])
        source.check_size(
            height, width, stored_bytes=header.nbytes + (0 if beside is None else beside.nbytes)
        )
        body = bytearray(head[header.offset :])
        while len(body) <= header.nbytes and (part := stream.read(_PIECE)):
            body += part
        return _array(source, header, body)


def _encode_npy(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, pixels, allow_pickle=False)
    return stream.getvalue()


def _encode_npz(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, depth=pixels, valid=valid)
    return stream.getvalue()


_DTYPES = ("uint16", "uint32", "float32", "float64")
NPY = Codec(
    name="npy",
    extensions=(".npy",),
    recognises=lambda head: head[:6] == _MAGIC,
    read=_read_npy,
    dtypes=_DTYPES,
    missing=math.nan,
    encode=_encode_npy,
)
NPZ = Codec(
    name="npz",
    extensions=(".npz",),
    recognises=lambda head: head[:4] in (b"PK\x03\x04", b"PK\x05\x06"),
    read=_read_npz,
    dtypes=_DTYPES,
    missing=math.nan,
    encode=_encode_npz,
)
