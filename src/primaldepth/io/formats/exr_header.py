"""The header of an OpenEXR file: windows, channels and compression, every claim checked."""

import struct
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from primaldepth.io.formats.base import Source, current_budget

MAGIC = b"\x76\x2f\x31\x01"
LINES = {
    "NONE": 1,
    "RLE": 1,
    "ZIPS": 1,
    "ZIP": 16,
    "PIZ": 32,
    "PXR24": 16,
    "B44": 32,
    "B44A": 32,
    "DWAA": 32,
    "DWAB": 256,
    "HTJ2K256": 256,
    "HTJ2K32": 32,
    "LJ2K": 256,
    "ZSTD": 1,
}
"""Rows in one chunk of each compression, in the order of their numbers in a file."""
_TYPES = (np.dtype("<u4"), np.dtype("<f2"), np.dtype("<f4"))
_TILED, _DEEP, _MULTIPART = 0x200, 0x800, 0x1000
_FLAGS = _TILED | 0x400 | _DEEP | _MULTIPART  # 0x400: long names
_REQUIRED = ("channels", "compression", "dataWindow", "displayWindow")
_MAX_ATTRIBUTES = 1000
_MAX_BYTES = 2**24  # of all headers


@dataclass(frozen=True, slots=True)
class Channel:
    """Name and number type of one channel."""

    name: str
    dtype: np.dtype[np.generic]


@dataclass(frozen=True, slots=True)
class ExrHeader:
    """What is needed to read the pixels.

    Args:
        top: y of the first row, from which the chunks count.
        end: where the header ends and the table of chunks begins.
        simple: one part, scan lines.
        other_parts: names of the channels of each further part.
    """

    height: int
    width: int
    top: int
    channels: tuple[Channel, ...]
    compression: str
    end: int
    simple: bool
    other_parts: tuple[frozenset[str], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole image, all channels."""
        return self.height * self.width * sum(channel.dtype.itemsize for channel in self.channels)


_Attributes = tuple[dict[str, bytes], int]
"""The attributes of one part by name, and where its header ends."""


def parse_header(source: Source) -> ExrHeader:
    """Read the header of the first part; sizes are checked against the limit and against the file."""
    flags = _flags(source)
    (values, end), *others = _headers(source, bool(flags & _MULTIPART))
    missing = [name for name in _REQUIRED if name not in values]
    if missing:
        raise source.damaged(f"EXR header lacks '{missing[0]}'")
    x0, y0, x1, y1 = _box(source, values["dataWindow"])
    if (x0, y0, x1, y1) != _box(source, values["displayWindow"]):
        raise source.error(
            "EXR is cropped or has overscan", "export it with the data window equal to the display"
        )
    height, width = y1 - y0 + 1, x1 - x0 + 1
    source.check_size(height, width)
    _check_tiles(source, values.get("tiles"), height, width)
    return ExrHeader(
        height=height,
        width=width,
        top=y0,
        channels=_channels(source, values["channels"]),
        compression=_compression(source, values["compression"]),
        end=end,
        simple=not flags & (_TILED | _MULTIPART),
        other_parts=tuple(_names(source, other) for other, _ in others),
    )


def _flags(source: Source) -> int:
    if len(source.data) < 9:
        raise source.damaged("EXR ends in its header")
    (version,) = struct.unpack_from("<I", source.data, 4)
    if version & 0xFF != 2 or version & ~0xFF & ~_FLAGS:
        raise source.damaged(f"EXR has the unknown version {version & 0xFF}")
    if version & _DEEP:
        _refuse_deep(source)
    return int(version)


def _refuse_deep(source: Source) -> NoReturn:
    raise source.error("EXR with deep pixels, which hold many depths each", "flatten it first")


def _name(source: Source, at: int, end: int) -> tuple[str, int]:
    """Return a string that ends in a zero byte, and where it ends."""
    stop = source.data.find(b"\0", at, min(end, at + 256))
    if stop < 0:
        raise source.damaged("EXR header ends inside a name")
    return source.data[at:stop].decode("utf-8", "replace"), stop + 1


def _headers(source: Source, several: bool) -> list[_Attributes]:
    """Yield the header of every part; in a file of several parts an empty header ends them."""
    found = [_attributes(source, 8, _MAX_ATTRIBUTES)]
    while several:
        left = _MAX_ATTRIBUTES - sum(len(each) for each, _ in found)
        following = _attributes(source, found[-1][1], left)
        if not following[0]:
            break
        found.append(following)
    if found[-1][1] > _MAX_BYTES:
        raise source.error(f"EXR has a header of more than {_MAX_BYTES} bytes", "export it without metadata")
    if any(each.get("type", b"").startswith(b"deep") for each, _ in found):
        _refuse_deep(source)
    return found


def _attributes(source: Source, at: int, most: int) -> _Attributes:
    """Return the attributes of the header that begins at `at`."""
    data, found = source.data, dict[str, bytes]()
    for _ in range(most + 1):
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
    raise source.damaged("EXR ends in its header")


def _box(source: Source, body: bytes) -> tuple[int, int, int, int]:
    if len(body) != 16:
        raise source.damaged("EXR has a window that is not four numbers")
    x0, y0, x1, y1 = struct.unpack("<4i", body)
    return x0, y0, x1, y1


def _compression(source: Source, body: bytes) -> str:
    if len(body) != 1 or body[0] >= len(LINES):
        raise source.damaged(f"EXR has an unknown compression (bytes {body[:4].hex() or 'none'})")
    return list(LINES)[body[0]]


def _check_tiles(source: Source, body: bytes | None, height: int, width: int) -> None:
    """Refuse tiles that are too many, or far larger than the image."""
    if body is None:
        return
    if len(body) != 9:
        raise source.damaged("EXR has tiles without a size")
    across, down = struct.unpack_from("<II", body)
    if not across or not down or across * down > 4 * max(height * width, 2**16):
        raise source.damaged(f"EXR has tiles of {across}x{down} pixels")
    source.check_parts(-(-height // down) * -(-width // across), "tiles")


def _names(source: Source, attributes: dict[str, bytes]) -> frozenset[str]:
    return frozenset(channel.name for channel in _channels(source, attributes.get("channels", b"")))


def _channels(source: Source, body: bytes) -> tuple[Channel, ...]:
    at, inner = 0, Source(source.path, body, source.role)
    found: list[Channel] = []
    most = current_budget().members
    while at < len(body) and body[at]:
        if len(found) == most:
            raise source.error(f"EXR has more than {most} channels", "export the wanted one alone")
        name, at = _name(inner, at, len(body))
        if at + 16 > len(body):
            raise source.damaged("EXR list of channels is cut off")
        kind, _, across, down = struct.unpack_from("<iIii", body, at)
        if not 0 <= kind < len(_TYPES):
            raise source.damaged("EXR channel {} has an unknown number type", repr(name[:40]))
        if (across, down) != (1, 1):
            raise source.error(
                "EXR channel {} is subsampled", "export it at full resolution", repr(name[:40])
            )
        found.append(Channel(name, _TYPES[kind]))
        at += 16
    if not found or len({channel.name for channel in found}) < len(found):
        raise source.damaged("EXR has no channels, or two of one name")
    return tuple(found)
