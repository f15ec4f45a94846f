"""JPEG: 8-bit guides only; lossy compression would smear depth across its edges.

The segments are walked and checked here, and only those that the pixels need reach Pillow: it would follow
every offset of an EXIF block, and decode any number of scans. Its decoder fills in grey, silently, what
is missing from the coded data of a scan; that is found here by a second decoding.
"""

import hashlib
import io
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from primaldepth.io.formats.base import Codec, Raster, Source, current_budget, library_errors
from primaldepth.io.formats.orientation import UPRIGHT, exif_orientation, upright, xmp_orientation

if TYPE_CHECKING:
    from PIL import Image

_PIXELS_PER_BYTE = 1024  # one bit for each 8x8 block is the least a scan can spend: 512, and a margin
_MARKER = re.compile(rb"\xff+([^\x00\xff])")
_SCAN_END = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")  # no stuffed byte, no filling, no restart
_END, _SCAN, _APP1 = 0xD9, 0xDA, 0xE1
_BARE = (0x01, *range(0xD0, 0xD9))  # markers without a body
_FRAMES = tuple(code for code in range(0xC0, 0xD0) if code not in (0xC4, 0xC8, 0xCC))
_TABLES = (0xC4, 0xCC, 0xDB, 0xDC, 0xDD, 0xE0, 0xEE)  # the last two: what JFIF and Adobe say of colours
_KEPT = frozenset((*_FRAMES, *_TABLES, _SCAN, _END))
_ARITHMETIC = tuple(code for code in _FRAMES if code > 0xC8)  # zeros at the end of their data are left out
_RESTART = re.compile(rb"(\xff[\xd0-\xd7])")
_TAIL = hashlib.sha512(b"no data of any scan").digest().replace(b"\xff", b"\x7f")
_EXIF, _XMP = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"


@dataclass(frozen=True, slots=True)
class ScreenedJpeg:
    """A JPEG whose size and number of scans were checked.

    Args:
        height: of the stored image, before it is turned.
        width: likewise.
        data: the same image without whatever its pixels do not need.
        orientation: of its EXIF block, else of its XMP text.
    """

    height: int
    width: int
    data: bytes
    orientation: int


def read_size(source: Source) -> tuple[int, int]:
    """Return (height, width) as the first frame header says; the size is checked."""
    for marker, body in _segments(source):
        if marker in _FRAMES:
            return _size(source, body)
    raise source.damaged("JPEG has no frame header")


def screen(source: Source) -> ScreenedJpeg:
    """Check the size and the number of scans, and keep the segments that the pixels need."""
    height, width = read_size(source)
    kept = [b"\xff\xd8"]
    blocks: dict[bytes, bytes] = {}
    frames = scans = 0
    for marker, body in _segments(source):
        frames += marker in _FRAMES
        scans += marker == _SCAN
        if marker in _KEPT:
            kept.append(b"\xff%c" % marker + body)
        for head in (_EXIF, _XMP):
            if marker == _APP1 and body[2 : 2 + len(head)] == head:
                blocks.setdefault(head, bytes(body[2 + len(head) :]))
    if frames > 1:
        raise source.damaged("JPEG has two frame headers")
    _check_scans(source, height * width, scans)
    orientation = exif_orientation(blocks.get(_EXIF, b"")) or xmp_orientation(blocks.get(_XMP, b""))
    return ScreenedJpeg(height, width, b"".join(kept), orientation or UPRIGHT)


def load(source: Source, screened: ScreenedJpeg, at_least: tuple[int, int] | None = None) -> "Image.Image":
    """Decode with Pillow, as far as `at_least` (width, height) needs if that is given.

    A scan that lacks data needs what follows it. So the image is decoded once with random bytes after each
    piece of coded data, which the decoder skips if it has all it needs, and the two results are compared.
    """
    tailed = zlib.crc32(_decoded(source, screened, _with_tails(screened.data), at_least).tobytes())
    image = _decoded(source, screened, screened.data, at_least)
    if zlib.crc32(image.tobytes()) != tailed:
        raise source.damaged("JPEG lacks a part of its image")
    return image


def _decoded(
    source: Source, screened: ScreenedJpeg, data: bytes, at_least: tuple[int, int] | None
) -> "Image.Image":
    from PIL import JpegImagePlugin

    image = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
    if image.size != (screened.width, screened.height):
        raise source.damaged("JPEG is decoded to another size than its header says")
    if at_least is not None:
        image.draft("RGB", at_least)
    image.load()
    return image


def _with_tails(data: bytes) -> bytes:
    """Add random bytes after each piece of coded data, which ends with a scan or before a restart marker."""
    parts = [b"\xff\xd8"]
    for marker, body in _segments(Source(Path(), data)):
        if marker in _ARITHMETIC:
            return data
        coded = len(body) if marker != _SCAN else struct.unpack_from(">H", body)[0]
        parts.append(b"\xff%c" % marker + body[:coded])
        if marker == _SCAN:
            pieces = _RESTART.split(body[coded:])  # coded data and restart markers in turns
            parts += [
                each if index % 2 else each.rstrip(b"\xff") + _TAIL for index, each in enumerate(pieces)
            ]
    return b"".join(parts)


def _segments(source: Source) -> Iterator[tuple[int, memoryview]]:
    """Yield marker and body of every segment, from its length on; a scan includes its coded data."""
    data, view, at, count = source.data, memoryview(source.data), 2, 0
    while (found := _MARKER.match(data, at)) is not None:
        marker, at = found[1][0], found.end()
        count += 1
        source.check_parts(count, "JPEG segments")
        if marker == _END:
            yield marker, view[at:at]
            return
        if marker in _BARE:
            continue
        length = int(struct.unpack_from(">H", data, at)[0]) if at + 2 <= len(data) else 0
        end = at + length
        if length < 2 or end > len(data):
            break
        if marker == _SCAN:
            following = _SCAN_END.search(data, end)
            end = following.start() if following else len(data)
        yield marker, view[at:end]
        at = end


def _size(source: Source, frame: memoryview) -> tuple[int, int]:
    """Return (H, W) of a frame header."""
    if len(frame) < 8:
        raise source.damaged("JPEG has a frame header that is cut off")
    height, width = struct.unpack_from(">HH", frame, 3)
    source.check_size(height, width, stored_bytes=height * width, ratio=_PIXELS_PER_BYTE)
    return height, width


def _check_scans(source: Source, pixels: int, scans: int) -> None:
    """Refuse more passes over the image than the budget allows, each of which costs time for every pixel."""
    budget = current_budget()
    if scans > budget.scans or scans * pixels > budget.scanned_pixels:
        most = min(budget.scans, budget.scanned_pixels // pixels)
        raise source.error(
            f"JPEG has {scans} scans, more than the limit of {most}", "save it as baseline JPEG"
        )


def _read(source: Source) -> Raster:
    if source.role != "guide":
        use = source.picture_hint("use PNG, EXR, PFM, TIFF or npy")
        raise source.error(f"is a JPEG, whose losses spoil a {source.role} map", use)
    with library_errors(source, "JPEG"):
        screened = screen(source)
        image = load(source, screened)
        pixels = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    return Raster(upright(pixels, screened.orientation))


CODEC = Codec(
    name="JPEG",
    extensions=(".jpg", ".jpeg"),
    recognises=lambda head: head[:3] == b"\xff\xd8\xff",
    read=_read,
)
