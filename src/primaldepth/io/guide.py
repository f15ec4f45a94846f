"""Guide images: the sharp picture beside the depth."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError
from primaldepth.io.formats import read_raster
from primaldepth.io.formats.base import Pixels


def read_guide(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read an image as an array in [0, 1].

    8- and 16-bit integers are scaled by their full range, floats are taken as they are. Alpha is dropped, a
    palette expanded, the EXIF orientation applied.

    Args:
        path: an image file.

    Returns:
        (H, W, C) with C = 1 or 3, each channel contiguous in memory.

    Raises:
        FileFormatError: if the file is missing, damaged, or no image.

    Example:
        >>> import numpy as np
        >>> from PIL import Image
        >>> from primaldepth.io import read_guide
        >>> Image.fromarray(np.full((2, 3, 3), 255, np.uint8)).save("image.png")
        >>> image = read_guide("image.png")
        >>> image.shape, float(image.max())
        ((2, 3, 3), 1.0)
    """
    where = Path(path)
    pixels = _channels(where, read_raster(where, "guide").pixels)
    if pixels.dtype in (np.uint8, np.uint16):
        return _planes(pixels, np.iinfo(pixels.dtype).max)
    if pixels.dtype.kind != "f":
        raise FileFormatError(
            where, f"numbers of type {pixels.dtype}", "save the guide as uint8, uint16 or floats in [0, 1]"
        )
    return _checked(where, pixels)


def _channels(path: Path, pixels: Pixels) -> Pixels:
    if pixels.ndim == 2:
        return pixels[..., np.newaxis]
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        return pixels[..., :3]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3):
        raise FileFormatError(path, f"shape {pixels.shape}", "a guide is (H, W), (H, W, 1) or (H, W, 3)")
    return pixels


def _planes(pixels: Pixels, full: float) -> NDArray[np.float32]:
    """Pixels / full, one channel after the other: made once, in the order tensors have."""
    height, width, channels = pixels.shape
    planes = np.empty((channels, height, width), np.float32)
    for channel, plane in enumerate(planes):
        np.divide(pixels[..., channel], full, out=plane, dtype=np.float32)
    return np.moveaxis(planes, 0, -1)


def _checked(path: Path, pixels: Pixels) -> NDArray[np.float32]:
    if not np.isfinite(pixels).all():
        raise FileFormatError(
            path, "contains NaN or infinite values", "a guide must be finite, fill them first"
        )
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        raise FileFormatError(
            path, f"values from {low:.4g} to {high:.4g}", "a guide lies in [0, 1], scale or tone-map it"
        )
    return _planes(pixels, 1.0)
