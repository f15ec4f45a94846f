"""Files of pixels, read by what they contain: as depth, as the guide beside it, or as confidence.

Units, invalid pixels and the kind of depth become explicit here.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.files import read_file
from primaldepth.io.formats import CODECS
from primaldepth.io.formats.base import MAX_FILE_BYTES, Pixels, Raster, Role, Source
from primaldepth.io.units import DepthMap, Kind, Unit, check_meaning, from_stored

_HEAD = 520
_ROUNDING = 1e-6  # of a number in 32-bit floats
_LEVELS = 2  # ARKit and StrayScanner store low, medium, high as 0, 1, 2


def read_raster(path: Path, role: Role) -> Raster:
    """Read a file by what it contains; its extension is not trusted.

    Args:
        path: of the file.
        role: what it is wanted as, which decides among channels and variables.

    Raises:
        InputError: if it cannot be read, is damaged, or in no known format.
    """
    source = Source(path, read_image_file(path), role)
    for codec in CODECS:
        if codec.recognises(source.data[:_HEAD]):
            return codec.read(source)
    raise source.error(
        "not a format this package reads (begins with {})",
        f"use one of {', '.join(codec.name for codec in CODECS)}",
        repr(source.data[:8]),
    )


def read_image_file(path: Path) -> bytes:
    """Return the whole content of a regular file that holds an image.

    Raises:
        InputError: if there is none, it cannot be read, is empty, or is larger than the limit.
    """
    data = read_file(path, MAX_FILE_BYTES)
    if not data:
        raise FileFormatError(path, "is empty (0 bytes)", "copy or export it again")
    return data


def read_depth(
    path: str | os.PathLike[str],
    *,
    unit: Unit | None = None,
    kind: Kind | None = None,
    invalid: float | None = None,
) -> DepthMap:
    """Read a depth or disparity map.

    The content decides the format. The unit is mm, m, disparity, or the stored numbers per metre, or per
    pixel with kind "disparity", as text. Without one, integers are millimetres and floats metres; 8-bit
    integers and anything of kind "disparity" are disparity in pixels. 0, NaN, infinities and negatives are
    invalid, and so is the stored number `invalid`.

    Args:
        path: a file in one of the formats of `primaldepth.io.formats`.
        unit: "mm", "m", "disparity", or stored numbers per metre such as "5000"; None for the format's own.
        kind: "z", "radial" or "disparity"; None for what the unit or the file says.
        invalid: a stored number that means no depth, besides 0.

    Returns:
        The map in metres or pixels of disparity, with its mask.

    Raises:
        FileFormatError: if the file is missing, damaged, or no depth map.

    Example:
        >>> import numpy as np
        >>> from primaldepth.io import read_depth
        >>> np.save("depth.npy", np.array([[5000, 0], [10000, 2500]], np.uint16))
        >>> read_depth("depth.npy", unit="5000").values.tolist()  # 5000 a metre
        [[1.0, 0.0], [2.0, 0.5]]
    """
    check_meaning(unit, kind)
    where = Path(path)
    raster = read_raster(where, "depth")
    pixels = _plane(where, raster)
    unit, kind = _meaning(where, raster, unit, kind)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = from_stored(pixels.astype(np.float64), unit)
        depth = DepthMap.from_array(values, _mask(raster, pixels, invalid), unit=unit, kind=kind)
    if not depth.valid.any():
        raise FileFormatError(where, "no valid pixel (all 0, NaN, infinite or negative)", "check the export")
    return depth


def _plane(path: Path, raster: Raster) -> NDArray[np.generic]:
    """Return the pixels if they are one channel of real numbers, else raise."""
    pixels = _one_channel(path, raster.pixels, "depth")
    if pixels.dtype.kind not in "iuf":
        raise FileFormatError(
            path, f"numbers of type {pixels.dtype}", "save depth as float32 or an integer type"
        )
    return pixels


def _one_channel(path: Path, pixels: Pixels, role: Role) -> Pixels:
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        return pixels[..., 0]
    if pixels.ndim != 2:
        hint = f"a {role} map has one: export it alone"
        raise FileFormatError(path, f"{pixels.shape[-1]} channels ({pixels.shape})", hint)
    return pixels


def is_number(values: Any, number: float) -> Any:
    """Return True where an array or tensor holds this number, perhaps rounded to 32 bits."""
    return abs(values - number) <= _ROUNDING * abs(number)


def _mask(raster: Raster, pixels: NDArray[Any], invalid: float | None) -> NDArray[np.bool_] | None:
    """Return the mask of valid pixels, by the file and by its invalid number; None if neither says any."""
    known = None if invalid is None else ~is_number(pixels, invalid)
    if raster.valid is None:
        return known
    own = raster.valid[..., 0] if raster.valid.ndim == 3 else raster.valid
    return own if known is None else own & known


def _meaning(path: Path, raster: Raster, unit: Unit | None, kind: Kind | None) -> tuple[Unit, Kind]:
    """Return unit and kind: each as given, else the default of the numbers' type."""
    if unit is None and kind == "disparity":
        unit = "disparity"
    if unit is None:
        unit = _custom_unit(raster.pixels.dtype)
        if unit == "disparity" and kind is not None:
            raise InputError(
                path, f"8-bit numbers are read as disparity, not as kind '{kind}'", "give their unit"
            )
    return unit, kind or ("disparity" if unit == "disparity" else "z")


def _custom_unit(dtype: np.dtype[Any]) -> Unit:
    """Return the default unit of a type: metres of floats, disparities of 8-bit numbers, else millimetres."""
    if dtype.kind == "f":
        return "m"
    return "disparity" if dtype.itemsize == 1 else "mm"


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
    """Return pixels / full, (H, W, C), stored one channel after the other as tensors are."""
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
    pixels = _one_channel(where, read_raster(where, "confidence").pixels, "confidence")
    if pixels.shape != tuple(shape):
        raise InputError(
            where,
            f"{pixels.shape[1]}x{pixels.shape[0]} pixels, but the depth has {shape[1]}x{shape[0]}",
            "give the confidence in the depth's size",
        )
    return _scaled(where, pixels)


def from_integers(pixels: Pixels) -> NDArray[np.float32]:
    """Scale uint8 or uint16 to [0, 1]: by the full range, or by levels as `read_confidence` says."""
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
