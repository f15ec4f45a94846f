"""Compressed parts of bags, unpacked to the size they claim and not a byte further.

A few hundred bytes of zstd or bz2 can stand for gigabytes. So the claimed size is compared with the packed
one first, and the decompressor stops when it is reached.
"""

import bz2
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from primaldepth.io.files import open_file

MAX_UNPACKED = 2**27
"""Bytes of a chunk or message: the largest images of cameras have fewer."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SPARE, _RATIO = 2**24, 1000  # a covered lens gives frames that pack to almost nothing
_FILE_RATIO, _PIECE = 100, 2**20
_LEAST_ROOM = 2**12  # small files take none on some file systems


def unpack(data: bytes, how: str, size: int) -> bytes:
    """Unpack to exactly `size` bytes.

    Args:
        data: the packed bytes.
        how: "", "none", "bz2", "lz4" or "zstd".
        size: claimed of the unpacked bytes.

    Raises:
        ValueError: the size is out of proportion or not that of the data, or `how` is not known.
    """
    if how in ("", "none"):
        unpacked = data
    elif how not in _DECOMPRESSORS:
        raise ValueError("compressed in an unknown way")
    elif size > most_unpacked(data):
        raise ValueError(f"{len(data)} bytes claim to hold {size}")
    else:
        unpacked = _run(_DECOMPRESSORS[how](), data, size)
    if len(unpacked) != size:
        raise ValueError(f"a part of {size} bytes holds another number of them")
    return unpacked


def unpack_message(data: bytes) -> bytes:
    """Unpack a message that is packed by itself, whose size is not stated; others are returned as they are.

    Raises:
        ValueError: the message is larger than any image.
    """
    if data[:4] != ZSTD_MAGIC:
        return data
    most = most_unpacked(data)
    unpacked = _run(_zstd(), data, most)
    if len(unpacked) > most:
        raise ValueError(f"{len(data)} bytes of a message hold more than {most}")
    return unpacked


class Allowance:
    """How many more bytes the packed files of one bag may unpack to disk."""

    def __init__(self) -> None:
        self._left = _SPARE

    def add(self, status: os.stat_result) -> None:
        """Add the allowance of a packed file, by its blocks on disk: a sparse file can claim any length."""
        room = max(512 * getattr(status, "st_blocks", 2**50), _LEAST_ROOM)
        self._left += _FILE_RATIO * min(status.st_size, room)

    def take(self, count: int) -> None:
        """Count unpacked bytes; raises ValueError if they are too many."""
        self._left -= count
        if self._left < 0:
            raise ValueError("packed files hold far more than recordings do")


def unpack_file(path: Path, target: Path, allowance: Allowance) -> Path:
    """Unpack a file of zstd, piece by piece.

    Args:
        path: the packed file.
        target: is written.
        allowance: for all files of the bag together.

    Returns:
        the target.

    Raises:
        ValueError: it holds far more than recordings do.
    """
    decompressor = _zstd()
    with open_file(path) as packed, target.open("wb") as file:
        allowance.add(os.fstat(packed.fileno()))
        while not decompressor.eof:
            data = packed.read(_PIECE) if decompressor.needs_input else b""
            if decompressor.needs_input and not data:
                raise ValueError("a packed file is cut short")
            allowance.take(file.write(decompressor.decompress(data, max_length=_PIECE)))
    return target


def most_unpacked(data: bytes) -> int:
    """Return the most bytes that packed data may unpack to."""
    return min(MAX_UNPACKED, _SPARE + _RATIO * len(data))


def _run(decompressor: Any, data: bytes, size: int) -> bytes:
    """Return the unpacked stream, and one byte more than `size` if it is longer."""
    unpacked: bytes = decompressor.decompress(data, max_length=size + 1)
    if len(unpacked) <= size and not decompressor.eof:
        raise ValueError("a packed part is cut short")
    return unpacked


def _zstd() -> Any:
    return import_module(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    ).ZstdDecompressor()


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "lz4": lambda: import_module("lz4.frame").LZ4FrameDecompressor(),
    "zstd": _zstd,
}
