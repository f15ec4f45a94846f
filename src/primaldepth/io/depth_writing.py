"""How depth maps are written: from metres to the numbers that a format stores, exact or an error."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError, Worded
from primaldepth.io.atomic import write_bytes
from primaldepth.io.formats import CODECS
from primaldepth.io.formats.base import Codec, Pixels, row_blocks
from primaldepth.io.units import (
    DepthMap,
    Kind,
    Unit,
    from_stored,
    holds_integers,
    to_stored,
    whole_stored,
)

COARSER = Worded(
    "use a coarser unit or write .exr, .tiff or .npy", "ask for image/x-exr or application/x-npz"
)


def write_depth(path: str | os.PathLike[str], depth: DepthMap) -> None:
    """Write a depth map in its unit; the extension picks the format.

    Integer formats round to the nearest step. A value the format cannot hold is an error: too large, too
    small to differ from the invalid 0, or a unit the format cannot mean.

    Args:
        path: its extension picks the format.
        depth: the map; its `unit` is that of the file.

    Raises:
        InputError: if a value or the unit does not fit the format; nothing is written then.

    Example:
        >>> from primaldepth.io import DepthMap, read_depth, write_depth
        >>> write_depth("depth.png", DepthMap.from_array([[1.0, 0.0], [2.0, 2.5]], unit="mm"))
        >>> read_depth("depth.png").values.tolist()
        [[1.0, 0.0], [2.0, 2.5]]
    """
    write_values(path, depth.values, depth.valid, depth.unit)


def write_values(
    path: str | os.PathLike[str], values: NDArray[np.floating[Any]], valid: NDArray[np.bool_], unit: Unit
) -> None:
    """Write values as `write_depth` does, without a copy in float64, which a large result has no room for.

    Args:
        values: (H, W) metres, or pixels of disparity; finite and positive where valid, not read elsewhere.
        valid: (H, W).
        unit: of the numbers in the file.
    """
    write_bytes(path, encode_values(path, values, valid, unit))


def encode_values(
    path: str | os.PathLike[str], values: NDArray[np.floating[Any]], valid: NDArray[np.bool_], unit: Unit
) -> bytes:
    """Return the bytes that `write_values` writes.

    Args:
        path: its extension picks the format.
        values: (H, W) metres, or pixels of disparity; finite and positive where valid, not read elsewhere.
        valid: (H, W).
        unit: of the numbers in the file.

    Raises:
        InputError: if a value or the unit does not fit the format.
    """
    where = Path(path)
    codec = writer_for(where)
    if not valid.any():
        raise InputError(where, "nothing to write, the depth has no valid pixel")
    if codec.encode is None:
        raise InputError(where, f"{codec.name} files are read, not written")
    return codec.encode(stored_pixels(where, codec, values, valid, unit), valid)


def output_unit(path: str | os.PathLike[str], unit: Unit, kind: Kind = "z") -> Unit:
    """Return the unit to write `path` in so that reading it with no unit given is right.

    Disparity stays. PNG takes mm unless one of its integer units is asked for; the others take metres.

    Args:
        path: of the file to write.
        unit: of the input.
        kind: of the input.

    Returns:
        A unit for `DepthMap`.

    Example:
        >>> from primaldepth.io import output_unit
        >>> output_unit("depth.png", "m"), output_unit("depth.exr", "mm")
        ('mm', 'm')
    """
    if unit == "disparity":
        return unit
    if largest_stored(Path(path)) == np.inf:
        return "disparity" if kind == "disparity" else "m"
    return "mm" if unit == "m" else unit


def largest_stored(path: Path) -> float:
    """Return the largest number of a format of integers; infinity for formats of floating point numbers."""
    names = writer_for(path).dtypes
    return np.inf if any("float" in name for name in names) else float(np.iinfo(names[-1]).max)


def writer_for(path: Path) -> Codec:
    """Return the format that the extension of an output asks for.

    Raises:
        InputError: no format that can be written has it.
    """
    known = [codec for codec in CODECS if codec.encode is not None]
    for codec in known:
        if path.suffix.lower() in codec.extensions:
            return codec
    names = ", ".join(extension for codec in known for extension in codec.extensions)
    raise InputError(path, f"cannot write depth as '{path.suffix}'", f"use one of {names}")


@dataclass(frozen=True, slots=True)
class _Plane:
    """What is to be stored, and in which unit."""

    values: NDArray[np.floating[Any]]
    valid: NDArray[np.bool_]
    unit: Unit

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.bool_]]]:
        """Yield a few rows at a time: which they are, values (float64, 0 where not valid) and mask."""
        for rows in row_blocks(*self.values.shape):
            mask = self.valid[rows]
            yield rows, np.where(mask, self.values[rows], 0.0).astype(np.float64, copy=False), mask


def stored_pixels(
    path: Path, codec: Codec, values: NDArray[np.floating[Any]], valid: NDArray[np.bool_], unit: Unit
) -> Pixels:
    """Return (H, W) numbers of the narrowest type of `codec` that keeps `values`.

    Formats of integers alone round. The others keep integers for the units meant for them, which is all but m
    and disparity, where every value is whole, so that the default unit on reading stays right, and use floats
    otherwise.

    Args:
        values: (H, W) metres, or pixels of disparity; finite and positive where valid, not read elsewhere.
        valid: (H, W).
    """
    plane = _Plane(values, valid, unit)
    floats = [name for name in codec.dtypes if name.startswith("float")]
    exact, low, high = _whole_numbers(plane)
    fitting = _fitting(codec, high) if exact or not floats else None
    if not floats:
        return _integers(plane, _integer_type(path, codec, fitting, low, high, unit))
    if fitting and holds_integers(unit):
        return _integers(plane, fitting)
    for name in floats:
        if _kept(plane, name):
            return _floats(path, codec, plane, name)
    # large 32-bit integers in a float32 format
    return _integers(plane, fitting) if fitting else _floats(path, codec, plane, floats[-1])


def _whole_numbers(plane: _Plane) -> tuple[bool, float, float]:
    """Return whether all valid values are whole stored numbers, and the least and largest when rounded."""
    exact, low, high = True, np.inf, 0.0
    for _, values, mask in plane.blocks():
        whole = whole_stored(values, plane.unit)[mask]
        exact = exact and bool((from_stored(whole, plane.unit) == values[mask]).all())
        low, high = float(whole.min(initial=low)), float(whole.max(initial=high))
    return exact, low, high


def _fitting(codec: Codec, high: float) -> str | None:
    """Return the narrowest integer type that holds every valid number."""
    for name in codec.dtypes:
        if name.startswith("uint") and high <= np.iinfo(name).max:
            return name
    return None


def _kept(plane: _Plane, name: str) -> bool:
    """Whether reading numbers of this type back gives the very same values."""
    for _, values, mask in plane.blocks():
        with np.errstate(over="ignore", under="ignore"):
            stored = to_stored(values, plane.unit).astype(name).astype(np.float64)
            if not (from_stored(stored, plane.unit) == values)[mask].all():
                return False
    return True


def _integer_type(path: Path, codec: Codec, fitting: str | None, low: float, high: float, unit: Unit) -> str:
    """Return the type for a format that stores integers alone; raise if it cannot hold the numbers."""
    if unit == "m":
        raise InputError(
            path, f"{codec.name} stores integers and cannot hold metres", "use mm or 5000, or write .exr"
        )
    check_stored(path, codec, low, high, unit)
    largest = codec.dtypes[-1]
    return largest if holds_integers(unit) else fitting or largest  # 8 bits are for disparity alone


def check_stored(path: Path, codec: Codec, low: float, high: float, unit: Unit) -> None:
    """Raise if a format of integers cannot hold the whole numbers from `low` to `high`."""
    top = np.iinfo(codec.dtypes[-1]).max
    if high > top:
        raise InputError(
            path, f"{high:.6g} does not fit {codec.name} in unit '{unit}' (at most {top})", COARSER
        )
    if low < 1:
        raise InputError(
            path,
            f"a valid value would round to 0, which {codec.name} reads as invalid, in unit '{unit}'",
            "use a finer unit or write .exr, .tiff or .npy",
        )


def _integers(plane: _Plane, name: str) -> Pixels:
    pixels = np.empty(plane.values.shape, name)
    for rows, values, _ in plane.blocks():
        pixels[rows] = whole_stored(values, plane.unit)
    return pixels


def _floats(path: Path, codec: Codec, plane: _Plane, name: str) -> Pixels:
    pixels = np.empty(plane.values.shape, name)
    for rows, values, mask in plane.blocks():
        with np.errstate(over="ignore", under="ignore"):
            pixels[rows] = np.where(mask, to_stored(values, plane.unit), codec.missing)
        inside = pixels[rows][mask]
        if not (np.isfinite(inside) & (inside > 0)).all():
            raise InputError(
                path, f"a value does not fit {name} in {codec.name}", "use another unit or write .npy"
            )
    return pixels
