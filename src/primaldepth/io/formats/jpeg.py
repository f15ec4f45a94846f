"""JPEG: 8-bit guides only; lossy compression would smear depth across its edges."""

import io
import struct

import numpy as np

from primaldepth.io.formats.base import Codec, Pixels, Raster, Source, library_errors

_PIXELS_PER_BYTE = 1024  # one bit for each 8x8 block is the least a scan can spend: 512, and a margin
_BARE = (0x01, *range(0xD0, 0xD9))  # markers without a body


def _frame_size(source: Source) -> tuple[int, int]:
    """(H, W) from the frame header, found by walking the segments before the first scan."""
    data, at = source.data, 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return height, width
        if marker == 0xFF:
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + int(struct.unpack_from(">H", data, at + 2)[0])
    raise source.error("JPEG has no frame header; the file is truncated or damaged, copy it again")


def _read(source: Source) -> Raster:
    if source.role != "guide":
        use = f"use PNG, EXR, PFM, TIFF or npy{source.order_hint}"
        raise source.error(f"is a JPEG, whose losses spoil a {source.role} map; {use}")
    height, width = _frame_size(source)
    source.check_size(height, width, stored_bytes=height * width, ratio=_PIXELS_PER_BYTE)
    with library_errors(source, "JPEG"):
        return Raster(_decode(source, height, width))


def _decode(source: Source, height: int, width: int) -> Pixels:
    from PIL import JpegImagePlugin

    from primaldepth.io.formats.orientation import exif_orientation, upright

    image = JpegImagePlugin.JpegImageFile(io.BytesIO(source.data))
    if image.size != (width, height):
        raise source.error("JPEG has two frame headers that disagree; export it again")
    orientation = exif_orientation(image)
    image.load()
    return upright(np.array(image if image.mode == "L" else image.convert("RGB")), orientation)


CODEC = Codec(
    name="JPEG",
    extensions=(".jpg", ".jpeg"),
    recognises=lambda head: head[:3] == b"\xff\xd8\xff",
    read=_read,
)
