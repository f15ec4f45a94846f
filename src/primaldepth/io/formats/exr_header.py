"""The header of an OpenEXR file: windows, channels and compression, every claim checked."""

import struct
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from primaldepth.io.formats.base import Source

MAGIC = b"\x76\x2f\x31\x01"
COMPRESSIONS = ("NONE", "RLE", "ZIPS", "ZIP", "PIZ", "PXR24", "B44", "B44A", "DWAA", "DWAB")
_TYPES = (np.dtype("<u4"), np.dtype("<f2"), np.dtype("<f4"))
_TILED, _DEEP, _MULTIPART = 0x200, 0x800, 0x1000
_FLAGS = _TILED | 0x400 | _DEEP | _MULTIPART  # 0x400: long names
_REQUIRED = ("channels", "compression", "dataWindow", "displayWindow")
_MAX_ATTRIBUTES = 1000


@dataclass(frozen=True, slots=True)
class Channel:
    """Name and number type of one channel."""

    name: str
    dtype: np.dtype[np.generic]


@dataclass(frozen=True, slots=True)
class Header:
    """What is needed to read the pixels.

    Args:
        top: y of the first row, from which the chunks count.
        end: where the header ends and the table of chunks begins.
        simple: one part, scan lines.
    """

    height: int
    width: int
    top: int
    channels: tuple[Channel, ...]
    compression: str
    end: int
    simple: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, all channels."""
        return self.width * sum(channel.dtype.itemsize for channel in self.channels)


def damaged(source: Source, what: str) -> NoReturn:
    """Raise the error for a part of an EXR file that cannot be so."""
    raise source.error(f"EXR {what}; the file is truncated or damaged, copy or export it again")


def parse_header(source: Source) -> Header:
    """Read the (first) header; sizes are checked against the limit and against the file."""
    flags = _flags(source)
    attributes, end = _attributes(source)
    missing = [name for name in _REQUIRED if name not in attributes]
    if missing:
        damaged(source, f"header lacks '{missing[0]}'")
    x0, y0, x1, y1 = _box(source, attributes["dataWindow"])
    if (x0, y0, x1, y1) != _box(source, attributes["displayWindow"]):
        raise source.error(
            "EXR is cropped or has overscan; export it with the data window equal to the display"
        )
    source.check_size(y1 - y0 + 1, x1 - x0 + 1)
    code = (attributes["compression"] or b"\xff")[0]
    return Header(
        height=y1 - y0 + 1,
        width=x1 - x0 + 1,
        top=y0,
        channels=_channels(source, attributes["channels"]),
        compression=COMPRESSIONS[code] if code < len(COMPRESSIONS) else f"method {code}",
        end=end,
        simple=not flags & (_TILED | _MULTIPART),
    )


def _flags(source: Source) -> int:
    if len(source.data) < 9:
        damaged(source, "ends in its header")
    (version,) = struct.unpack_from("<I", source.data, 4)
    if version & 0xFF != 2 or version & ~0xFF & ~_FLAGS:
        damaged(source, f"has the unknown version {version & 0xFF}")
    if version & _DEEP:
        raise source.error("EXR with deep pixels, which hold many depths each; flatten it first")
    return int(version)


def _name(source: Source, at: int, end: int) -> tuple[str, int]:
    """A string that ends in a zero byte, and where it ends."""
    stop = source.data.find(b"\0", at, min(end, at + 256))
    if stop < 0:
        damaged(source, "header ends inside a name")
    return source.data[at:stop].decode("utf-8", "replace"), stop + 1


def _attributes(source: Source) -> tuple[dict[str, bytes], int]:
    data, at = source.data, 8
    found: dict[str, bytes] = {}
    for _ in range(_MAX_ATTRIBUTES):
        name, at = _name(source, at, len(data))
        if not name:
            return found, at
        _, at = _name(source, at, len(data))
        if at + 4 > len(data):
            break
        (size,) = struct.unpack_from("<I", data, at)
        found[name], at = data[at + 4 : at + 4 + size], at + 4 + size
        if at > len(data):
            break
    damaged(source, "ends in its header")


def _box(source: Source, body: bytes) -> tuple[int, int, int, int]:
    if len(body) != 16:
        damaged(source, "has a window that is not four numbers")
    x0, y0, x1, y1 = struct.unpack("<4i", body)
    return x0, y0, x1, y1


def _channels(source: Source, body: bytes) -> tuple[Channel, ...]:
    at, found, inner = 0, [], Source(source.path, body, source.role)
    while at < len(body) and body[at]:
        name, at = _name(inner, at, len(body))
        if at + 16 > len(body):
            damaged(source, "list of channels is cut off")
        kind, _, across, down = struct.unpack_from("<iIii", body, at)
        if not 0 <= kind < len(_TYPES):
            damaged(source, f"channel {name[:40]!r} has an unknown number type")
        if (across, down) != (1, 1):
            raise source.error(f"EXR channel {name[:40]!r} is subsampled; export it at full resolution")
        found.append(Channel(name, _TYPES[kind]))
        at += 16
    if not found or len({channel.name for channel in found}) < len(found):
        damaged(source, "has no channels, or two of one name")
    return tuple(found)
