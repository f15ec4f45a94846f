"""PGM and PPM (Netpbm): one or three channels of 8- or 16-bit integers, as bytes (P5, P6) or text."""

import re

import numpy as np

from primaldepth.io.formats.base import Codec, Pixels, Raster, Source

_SPACE = rb"(?:\s|#[^\r\n]*[\r\n])+"  # comments go to the end of their line
_HEADER = re.compile(
    rb"P([2356])" + _SPACE + rb"(\d{1,10})" + _SPACE + rb"(\d{1,10})" + _SPACE + rb"(\d{1,10})\s"
)
_MAX_HEADER = 4096
_TEXT_BYTES = 2  # at least a digit and a space for each number


def _read(source: Source) -> Raster:
    match = _HEADER.match(source.data[:_MAX_HEADER])
    if match is None:
        raise source.damaged("PGM or PPM header not understood (P5 or P6, width, height, largest value)")
    channels = 3 if match[1] in b"36" else 1
    width, height, top = int(match[2]), int(match[3]), int(match[4])
    if not 1 <= top <= 65535:
        raise source.damaged(f"the largest value is {top}, expected 1 to 65535")
    source.check_size(height, width)
    shape = (height, width) if channels == 1 else (height, width, 3)
    kind = np.dtype("u1" if top < 256 else "u2")
    numbers = _text if match[1] in b"23" else _binary
    pixels = numbers(source, match.end(), height * width * channels, kind)
    if int(pixels.max()) > top:
        raise source.damaged(f"holds {pixels.max()}, more than its largest value {top}")
    return Raster(_scaled(pixels.reshape(shape), top, source.role))


def _binary(source: Source, start: int, count: int, kind: np.dtype[np.integer]) -> Pixels:
    """Return numbers stored as bytes, the high byte of two first."""
    needed, found = count * kind.itemsize, len(source.data) - start
    if found != needed:
        raise source.damaged(f"needs {needed} bytes after the header, found {found}")
    return np.frombuffer(source.data, kind.newbyteorder(">"), count, start).astype(kind)


def _text(source: Source, start: int, count: int, kind: np.dtype[np.integer]) -> Pixels:
    """Return numbers stored as text; raise before splitting a text that is too short for them."""
    if count * _TEXT_BYTES > len(source.data) - start + 1:
        raise source.damaged(f"{count} numbers do not fit into the file")
    words = source.data[start:].split(None, count)[:count]
    if len(words) < count or any(len(word) > 5 or not word.isdigit() for word in words):
        raise source.damaged(f"expected {count} whole numbers after the header")
    values = np.array([int(word) for word in words])
    if int(values.max()) > np.iinfo(kind).max:
        raise source.damaged(f"holds {values.max()}, more than its header allows")
    return values.astype(kind)


def _scaled(pixels: Pixels, top: int, role: str) -> Pixels:
    """Return depth as it is stored, or a guide scaled so that its largest value fills its type."""
    full = np.iinfo(pixels.dtype).max
    if role == "depth" or top == full:
        return pixels
    return np.rint(pixels * (full / top)).astype(pixels.dtype)


CODEC = Codec(
    name="PGM/PPM",
    extensions=(".pgm", ".ppm", ".pnm"),
    recognises=lambda head: (
        head[:1] == b"P" and head[1:2] in (b"2", b"3", b"5", b"6") and head[2:3].isspace()
    ),
    read=_read,
)
