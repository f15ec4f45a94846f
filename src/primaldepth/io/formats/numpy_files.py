"""npy and npz: numpy's own files, read without pickle and without trusting their headers.

Invalid pixels are written as NaN in floating point arrays (0 would count in a mean) and 0 in integer ones.
An npz holds `depth` and `valid`; a mask found there decides together with the values.
"""

import ast
import io
import math
import re
import struct
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import (
    Codec,
    Pixels,
    Raster,
    Source,
    library_errors,
    listing,
    native,
)

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000
_MAX_CHANNELS = 4
_MAX_MEMBERS = 1000
_REAL_TYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


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
    """Parse a npy header; every claim in it is checked."""
    wide = data[6:7] != b"\x01"
    start = 12 if wide else 10
    if data[:6] != _MAGIC or data[6:7] not in (b"\x01", b"\x02", b"\x03") or len(data) < start:
        raise source.error("not a numpy array of version 1, 2 or 3; save it again with numpy.save")
    (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    if length > _MAX_HEADER or start + length > len(data):
        raise source.error("numpy header is truncated or damaged; save it again with numpy.save")
    try:
        fields = ast.literal_eval(data[start : start + length].decode("latin1").strip())
        descr, shape, fortran = fields["descr"], fields["shape"], fields["fortran_order"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise source.error("numpy header is damaged; save it again with numpy.save") from error
    return _Header(_dtype(source, descr), _shape(source, shape), fortran is True, start + length)


def _dtype(source: Source, descr: object) -> np.dtype[np.generic]:
    if not isinstance(descr, str) or not _REAL_TYPE.fullmatch(descr):
        raise source.error(
            f"array of type {str(descr)[:60]!r}; expected real numbers, save it as float32 or an integer type"
        )
    return np.dtype(descr)


def _shape(source: Source, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(type(n) is int and 0 < n < 2**40 for n in shape):
        raise source.error(f"array of shape {str(shape)[:60]}; expected (H, W) with at least one pixel")
    while shape[0:1] == (1,) and (len(shape) > 3 or (len(shape) == 3 and shape[2] > _MAX_CHANNELS)):
        shape = shape[1:]  # a batch of one, or the one channel that torch puts first
    if not 2 <= len(shape) <= 3:
        raise source.error(
            f"array of shape {str(shape)[:60]}; expected (H, W), pick one map and save it alone"
        )
    if len(shape) == 3 and shape[2] > _MAX_CHANNELS:
        raise source.error(
            f"array of shape {str(shape)[:60]}; a {source.role} has at most {_MAX_CHANNELS} channels"
        )
    source.check_size(shape[0], shape[1])
    return shape


def _array(source: Source, header: _Header, body: bytes) -> Pixels:
    if len(body) != header.nbytes:
        raise source.error(
            f"array of shape {header.shape} needs {header.nbytes} bytes, found {len(body)}; "
            "the file is truncated or damaged, copy or save it again"
        )
    flat = np.frombuffer(body, header.dtype)
    return native(flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape))


def _read_npy(source: Source) -> Raster:
    header = _header(source, source.data)
    return Raster(_array(source, header, source.data[header.offset :]))


def _read_npz(source: Source) -> Raster:
    if source.data.count(b"PK\x01\x02") > _MAX_MEMBERS:  # each costs far more memory than its bytes
        raise source.error(f"npz of more than {_MAX_MEMBERS} arrays; save the map alone")
    with library_errors(source, "npz"), zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        arrays = [name for name in names if name != "valid"]
        wanted = source.role if source.role in names else arrays[0] if len(arrays) == 1 else None
        if wanted is None:
            raise source.error(f"holds {listing(names)} but no '{source.role}'; save the map under that name")
        pixels = _member(source, archive, wanted)
        if "valid" not in names or source.role != "depth":
            return Raster(pixels)
        return Raster(pixels, valid=_mask(source, _member(source, archive, "valid"), pixels.shape))


def _member(source: Source, archive: zipfile.ZipFile, name: str) -> Pixels:
    """One array of the archive; the stream is never read further than its header claims."""
    listed = archive.namelist()
    info = archive.getinfo(f"{name}.npy" if f"{name}.npy" in listed else name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise source.error(
            "compressed in a way numpy does not use; save it again with numpy.savez_compressed"
        )
    with archive.open(info) as stream:
        head = stream.read(12 + _MAX_HEADER)
        header = _header(source, head)
        needed = header.nbytes - (len(head) - header.offset)
        return _array(source, header, head[header.offset :] + stream.read(max(needed, 0) + 1))


def _mask(source: Source, mask: Pixels, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if mask.shape != shape:
        raise source.error(f"'valid' has shape {mask.shape}, but the map has {shape}; save both in one size")
    return mask.astype(bool)


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
