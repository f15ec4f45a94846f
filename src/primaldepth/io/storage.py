"""From metres to the numbers a format stores: exact where it can be, an error where it cannot."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.io.formats.base import Codec, Pixels
from primaldepth.io.units import INTEGER_UNITS, Unit, from_stored, to_stored, whole_stored


def stored_pixels(
    path: Path, codec: Codec, values: NDArray[np.float64], valid: NDArray[np.bool_], unit: Unit
) -> Pixels:
    """(H, W) numbers of the narrowest type of `codec` that keeps `values`.

    Formats of integers alone round. The others keep integers for the units meant for them (mm, 5000, 256)
    where every value is whole, so that the default unit on reading stays right, and use floats otherwise.
    """
    floats = [name for name in codec.dtypes if name.startswith("float")]
    whole = whole_stored(values, unit)
    if not floats:
        return _integers(path, codec, whole, valid, unit)
    exact = bool((from_stored(whole, unit) == values)[valid].all())
    if exact and unit in INTEGER_UNITS:
        fitting = _fitting(codec, whole, valid)
        if fitting:
            return np.where(valid, whole, 0).astype(fitting)
    stored = to_stored(values, unit)
    for name in floats:
        if _kept(stored, values, valid, unit, name):
            return _floats(path, codec, stored, valid, name)
    fitting = _fitting(codec, whole, valid) if exact else None  # large 32-bit integers in a float32 format
    return (
        np.where(valid, whole, 0).astype(fitting)
        if fitting
        else _floats(path, codec, stored, valid, floats[-1])
    )


def _fitting(codec: Codec, whole: NDArray[np.float64], valid: NDArray[np.bool_]) -> str | None:
    """The narrowest integer type that holds every valid number."""
    for name in codec.dtypes:
        if name.startswith("uint") and whole[valid].max() <= np.iinfo(name).max:
            return name
    return None


def _kept(
    stored: NDArray[np.float64], values: NDArray[np.float64], valid: NDArray[np.bool_], unit: Unit, name: str
) -> bool:
    with np.errstate(over="ignore", under="ignore"):
        back = from_stored(stored.astype(name).astype(np.float64), unit)
    return bool((back == values)[valid].all())


def _integers(
    path: Path, codec: Codec, whole: NDArray[np.float64], valid: NDArray[np.bool_], unit: Unit
) -> Pixels:
    if unit == "m":
        raise InputError(
            f"{path}: {codec.name} stores integers and cannot hold metres; use mm, 5000 or 256, or write .exr"
        )
    fitting = _fitting(codec, whole, valid)
    top = np.iinfo(codec.dtypes[-1]).max
    if fitting is None:
        raise InputError(
            f"{path}: {whole[valid].max():.6g} does not fit {codec.name} in unit '{unit}' (at most {top}); "
            "use a coarser unit or write .exr, .tiff or .npy"
        )
    if whole[valid].min() < 1:
        raise InputError(
            f"{path}: a valid value would round to 0, which {codec.name} reads as invalid, in unit '{unit}'; "
            "use a finer unit or write .exr, .tiff or .npy"
        )
    wide = codec.dtypes[-1] if unit in INTEGER_UNITS else fitting  # 8 bits are for disparity alone
    return np.where(valid, whole, 0).astype(wide)


def _floats(
    path: Path, codec: Codec, stored: NDArray[np.float64], valid: NDArray[np.bool_], name: str
) -> Pixels:
    with np.errstate(over="ignore", under="ignore"):
        pixels = np.where(valid, stored, codec.missing).astype(name)
    inside = pixels[valid]
    if not (np.isfinite(inside) & (inside > 0)).all():
        raise InputError(
            f"{path}: a value does not fit {name} in {codec.name}; use another unit or write .npy"
        )
    return pixels
