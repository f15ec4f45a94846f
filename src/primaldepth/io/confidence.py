"""Confidence maps: how far each depth sample is trusted."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.formats import read_raster
from primaldepth.io.formats.base import Pixels

_LEVELS = 2  # ARKit and StrayScanner store low, medium, high as 0, 1, 2


def read_confidence(path: str | os.PathLike[str], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Read a confidence map in [0, 1].

    Integers are scaled by their full range, except 8-bit files with nothing above 2: these hold the levels
    low, medium and high, read as 0, 0.5 and 1. Floats are taken as they are.

    Args:
        path: an image or array file.
        shape: (h, w) of the depth map, which the confidence must have too.

    Returns:
        (h, w) in [0, 1].

    Raises:
        InputError: if the file cannot be read, or has another size or other values.

    Example:
        >>> import numpy as np
        >>> from primaldepth.io import read_confidence
        >>> np.save("confidence.npy", np.array([[0, 1, 2]], np.uint8))  # low, medium, high
        >>> read_confidence("confidence.npy", shape=(1, 3)).tolist()
        [[0.0, 0.5, 1.0]]
    """
    where = Path(path)
    pixels = read_raster(where, "confidence").pixels
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim != 2:
        raise FileFormatError(
            where, f"shape {pixels.shape}", "a confidence map has one channel, export that alone"
        )
    if pixels.shape != tuple(shape):
        raise InputError(
            where,
            f"{pixels.shape[1]}x{pixels.shape[0]} pixels, but the depth has {shape[1]}x{shape[0]}",
            "give the confidence in the depth's size",
        )
    return _scaled(where, pixels)


def from_integers(pixels: Pixels) -> NDArray[np.float32]:
    """uint8 or uint16 to [0, 1]: by the full range, or by levels as `read_confidence` says."""
    levels = pixels.dtype == np.uint8 and pixels.size > 0 and pixels.max() <= _LEVELS
    return pixels.astype(np.float32) / np.float32(_LEVELS if levels else np.iinfo(pixels.dtype).max)


def _scaled(path: Path, pixels: Pixels) -> NDArray[np.float32]:
    if pixels.dtype in (np.uint8, np.uint16):
        return from_integers(pixels)
    if pixels.dtype.kind not in "bf":
        raise FileFormatError(
            path, f"numbers of type {pixels.dtype}", "save it as uint8, uint16 or floats in [0, 1]"
        )
    if not ((pixels >= 0) & (pixels <= 1)).all():
        raise FileFormatError(path, "values outside [0, 1] or NaN", "scale the confidence to [0, 1]")
    return pixels.astype(np.float32)
