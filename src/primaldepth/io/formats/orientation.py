"""EXIF orientation: turning pixels the way the camera was held."""

import re
import struct

import numpy as np

from primaldepth.io.formats.base import Pixels
from primaldepth.io.formats.tiff_directory import Tag, first_directory

UPRIGHT = 1
_XMP = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')


def exif_orientation(block: bytes) -> int | None:
    """Return the orientation that an EXIF block asks for, 1 to 8; None if it says none or is damaged.

    Only the first directory is read: Pillow would follow every offset in the block.
    """
    try:
        value = first_directory(block).number(Tag.ORIENTATION, 0) if block else 0
    except (ValueError, struct.error):
        return None
    return value if value in range(1, 9) else None


def xmp_orientation(text: bytes) -> int | None:
    """Return the orientation that an XMP text states, 1 to 8; None if it states none."""
    found = _XMP.search(text)
    return None if found is None else int(found[1])


def upright(pixels: Pixels, orientation: int | None) -> Pixels:
    """Undo orientation 1 to 8: the even flips, turns and transposes of the EXIF standard."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
