"""A file of named arrays in the safetensors layout, written in one pass and read by offset.

The first eight bytes are the length n of the header (little-endian), the next n the header (JSON, padded with
spaces so that the data starts at a multiple of 64), the rest the arrays, C order, without gaps. The same
arrays and notes always make the same bytes; any safetensors reader opens the file.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.documents import parse_json
from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.io.files import open_file, reading

Array = NDArray[Any]
_DTYPES = {
    code: np.dtype(name)
    for name, code in (
        *(("bool", "BOOL"), ("uint8", "U8"), ("int8", "I8"), ("uint16", "U16"), ("int16", "I16")),
        *(("uint32", "U32"), ("int32", "I32"), ("uint64", "U64"), ("int64", "I64")),
        *(("float16", "F16"), ("float32", "F32"), ("float64", "F64")),
    )
}
_CODES = {dtype.name: code for code, dtype in _DTYPES.items()}
_ALIGNMENT, _LONGEST_HEADER = 64, 1 << 20
_MOST_SIDES = 8


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Type and shape of one array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return self.dtype.itemsize * math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class TensorFileLayout:
    """Where each array lies in a file; `notes` are the texts stored beside them."""

    specs: Mapping[str, ArraySpec]
    offsets: Mapping[str, int]
    nbytes: int
    notes: Mapping[str, str]

    @property
    def row_specs(self) -> dict[str, ArraySpec]:
        """Type and shape of one row of each array."""
        return {name: ArraySpec(spec.dtype, spec.shape[1:]) for name, spec in self.specs.items()}


def specs_of(arrays: Mapping[str, Array]) -> dict[str, ArraySpec]:
    """Return types and shapes of arrays in memory."""
    return {name: ArraySpec(array.dtype, array.shape) for name, array in arrays.items()}


def file_order(specs: Mapping[str, ArraySpec]) -> list[str]:
    """Return the names in the order of the file: wide types first, so that arrays stay aligned."""
    return sorted(specs, key=lambda name: (-specs[name].dtype.itemsize, name))


def header(specs: Mapping[str, ArraySpec], notes: Mapping[str, str]) -> bytes:
    """Return the bytes of a file before its data."""
    fields: dict[str, Any] = {"__metadata__": dict(sorted(notes.items()))} if notes else {}
    place = 0
    for name in file_order(specs):
        spec = specs[name]
        if spec.dtype.name not in _CODES:
            raise InputError(
                f"array '{name}'", f"type {spec.dtype} cannot be stored", f"use {', '.join(_CODES)}"
            )
        span = [place, place + spec.nbytes]
        fields[name] = {"dtype": _CODES[spec.dtype.name], "shape": list(spec.shape), "data_offsets": span}
        place = span[1]
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def data_chunks(arrays: Mapping[str, Array]) -> Iterable[memoryview]:
    """Yield the data of a file, array by array."""
    for name in file_order(specs_of(arrays)):
        little_endian = arrays[name].dtype.newbyteorder("<")
        flat = np.ascontiguousarray(arrays[name], little_endian).reshape(-1)
        yield flat.view(np.uint8).data


def read_layout(path: str | os.PathLike[str]) -> TensorFileLayout:
    """Read and check the header of a file; an error names what is wrong with it."""
    with open_file(path) as file, reading(path):
        size = os.fstat(file.fileno()).st_size
        fields, start = _header_fields(file, Path(path))
    notes = fields.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise FileFormatError(path, "the header's notes are not texts", "copy or make it again")
    specs = {name: _spec(field, name, path) for name, field in fields.items()}
    offsets = {name: start + field["data_offsets"][0] for name, field in fields.items()}
    _check_places(Path(path), specs, offsets, start, size)
    return TensorFileLayout(specs, offsets, size, notes)


def read_arrays(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, Array]:
    """Return arrays of a file as read-only views of it: pages are read when they are touched."""
    layout = read_layout(path)
    return {
        name: np.memmap(
            path, layout.specs[name].dtype, "r", layout.offsets[name], layout.specs[name].shape, "C"
        )
        if layout.specs[name].nbytes
        else np.empty(layout.specs[name].shape, layout.specs[name].dtype)
        for name in (layout.specs if names is None else names)
    }


def _header_fields(file: BinaryIO, path: Path) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= _LONGEST_HEADER:
        raise FileFormatError(path, "not a file of arrays (it does not start with a header)")
    text = file.read(length)
    try:
        fields = parse_json(text, path)
    except FileFormatError as error:
        what = "cut short" if len(text) < length else "not JSON"
        raise FileFormatError(path, f"not a file of arrays (the header is {what})") from error
    if not isinstance(fields, dict):
        raise FileFormatError(path, "not a file of arrays (the header is no object)")
    return fields, 8 + length


def _spec(field: Any, name: str, path: str | os.PathLike[str]) -> ArraySpec:
    """Return type and shape from a header's field, if it has both and says where the array lies."""
    found: dict[str, Any] = field if isinstance(field, dict) else {}
    kind, shape, span = found.get("dtype"), found.get("shape"), found.get("data_offsets")
    known = isinstance(kind, str) and kind in _DTYPES
    if not known or not _are_whole(shape) or not _are_whole(span) or len(span) != 2 or not _is_shape(shape):
        raise FileFormatError(
            path, f"the header does not describe arrays ({shortened(name)})", "copy or make it again"
        )
    return ArraySpec(_DTYPES[str(kind)], tuple(shape))


def _are_whole(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(each) is int and abs(each) < 2**60 for each in values)


def _is_shape(sides: list[int]) -> bool:
    """Return whether numpy accepts this shape; it has limits even for arrays without elements."""
    return len(sides) <= _MOST_SIDES and math.prod(abs(side) or 1 for side in sides) < 2**60


def _check_places(
    path: Path, specs: Mapping[str, ArraySpec], offsets: Mapping[str, int], start: int, size: int
) -> None:
    end = start
    for name in sorted(specs, key=lambda each: (offsets[each], specs[each].nbytes)):
        if offsets[name] != end or min(specs[name].shape, default=0) < 0:
            raise FileFormatError(path, f"the header is wrong about array {shortened(name)}")
        end += specs[name].nbytes
    if end != size:
        state = "cut short" if size < end else "too long"
        raise FileFormatError(path, f"{state}: {size} bytes, its header says {end}")
