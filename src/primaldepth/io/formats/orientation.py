"""EXIF orientation: turning pixels the way the camera was held."""

from typing import TYPE_CHECKING

import numpy as np

from primaldepth.io.formats.base import Pixels

if TYPE_CHECKING:
    from PIL import Image

_TAG = 0x0112


def exif_orientation(image: "Image.Image") -> int:
    """The orientation an image's EXIF block asks for, 1 (as it is) if it has none or is damaged."""
    try:
        value = image.getexif().get(_TAG, 1)
    except Exception:  # a damaged EXIF block says nothing about the pixels
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """Undo orientation 1 to 8: the even flips, turns and transposes of the EXIF standard."""
    if orientation in (5, 6, 7, 8):
        pixels = np.swapaxes(pixels, 0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
