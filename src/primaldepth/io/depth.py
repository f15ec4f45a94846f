"""Depth maps in files: units, invalid pixels and the kind of depth become explicit here."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.atomic import write_bytes
from primaldepth.io.formats import read_raster, writer_for
from primaldepth.io.formats.base import Raster
from primaldepth.io.storage import stored_pixels
from primaldepth.io.units import KINDS, Kind, Unit, from_stored, per_metre

_ROUNDING = 1e-6  # of a number in 32-bit floats


@dataclass(frozen=True, slots=True, eq=False)
class DepthMap:
    """One depth map with its mask.

    Args:
        values: (H, W) metres, or pixels of disparity; 0 where not valid.
        valid: (H, W) True where there is a measurement: finite and positive.
        unit: of the file it came from or is to be written in: mm, m, disparity, or the stored numbers per
            metre, such as "5000".
        kind: along the optical axis, along the ray, or a disparity.

    Example:
        >>> from primaldepth.io import DepthMap
        >>> depth = DepthMap.from_array([[1.0, 0.0], [float("nan"), 2.5]], unit="mm")
        >>> depth.values.tolist()  # metres; the unit is that of the file
        [[1.0, 0.0], [0.0, 2.5]]
        >>> depth.valid.tolist()
        [[True, False], [False, True]]
    """

    values: NDArray[np.float64]
    valid: NDArray[np.bool_]
    unit: Unit = "m"
    kind: Kind = "z"

    def __post_init__(self) -> None:
        values, valid = self.values, self.valid
        _check_names(self.unit, self.kind)
        if values.ndim != 2 or values.dtype != np.float64 or values.size == 0:
            raise InputError("depth", f"shape {values.shape} of {values.dtype}, expected (H, W) of float64")
        if valid.shape != values.shape or valid.dtype != np.bool_:
            raise InputError(
                "valid", f"shape {valid.shape} of {valid.dtype}, expected {values.shape} of bool"
            )
        if not (np.isfinite(values) & ((values > 0) == valid) & (values >= 0)).all():
            raise InputError(
                "depth", "must be finite and positive where valid, 0 elsewhere", "see DepthMap.from_array"
            )

    @classmethod
    def from_array(
        cls, values: ArrayLike, valid: ArrayLike | None = None, *, unit: Unit = "m", kind: Kind | None = None
    ) -> "DepthMap":
        """Clean metres or pixels: 0, NaN, infinities, negatives and what is masked become invalid."""
        clean = np.array(values, dtype=np.float64)
        mask = np.isfinite(clean) & (clean > 0)
        if valid is not None:
            if np.shape(valid) != clean.shape:
                raise InputError("valid", f"shape {np.shape(valid)}, but the depth has {clean.shape}")
            mask &= np.asarray(valid, dtype=bool)
        clean[~mask] = 0.0
        return cls(clean, mask, unit, kind or ("disparity" if unit == "disparity" else "z"))


def read_depth(
    path: str | os.PathLike[str],
    *,
    unit: Unit | None = None,
    kind: Kind | None = None,
    invalid: float | None = None,
) -> DepthMap:
    """Read a depth or disparity map.

    The format is told by the content. The unit is mm, m, disparity, or the stored numbers per metre, or per
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
    _check_names(unit, kind)
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
    """`write_depth` of values that need not become float64 first, which a large result has no room for.

    Args:
        values: (H, W) metres, or pixels of disparity; finite and positive where valid, not read elsewhere.
        valid: (H, W).
        unit: of the numbers in the file.
    """
    write_bytes(path, encode_values(path, values, valid, unit))


def encode_values(
    path: str | os.PathLike[str], values: NDArray[np.floating[Any]], valid: NDArray[np.bool_], unit: Unit
) -> bytes:
    """What `write_values` writes; the extension of `path` picks the format, nothing is opened."""
    where = Path(path)
    codec = writer_for(where)
    if not valid.any():
        raise InputError(where, "nothing to write, the depth has no valid pixel")
    if codec.encode is None:
        raise InputError(where, f"{codec.name} files are read, not written")
    return codec.encode(stored_pixels(where, codec, values, valid, unit), valid)


def output_unit(path: str | os.PathLike[str], unit: Unit) -> Unit:
    """Return the unit to write a file in, so that reading it without a unit is right.

    Disparity stays. PNG takes mm unless one of its integer units is asked for; the others take metres.

    Args:
        path: of the file to write.
        unit: of the input.

    Returns:
        A unit for `DepthMap`.

    Example:
        >>> from primaldepth.io import output_unit
        >>> output_unit("depth.png", "m"), output_unit("depth.exr", "mm")
        ('mm', 'm')
    """
    floating = any("float" in name for name in writer_for(Path(path)).dtypes)
    if unit == "disparity":
        return unit
    if floating:
        return "m"
    return "mm" if unit == "m" else unit


def _check_names(unit: str | None, kind: str | None) -> None:
    if unit is not None:
        per_metre(unit)
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind {kind!r} is not known; use one of {', '.join(KINDS)}")
    if unit == "disparity" and kind not in (None, "disparity"):
        raise InputError(f"unit 'disparity' contradicts kind '{kind}'; use kind 'disparity' or another unit")
    if kind == "disparity" and unit in ("mm", "m"):
        raise InputError(
            f"kind 'disparity' contradicts unit '{unit}'; use unit 'disparity', or the stored numbers per "
            "pixel such as '256'"
        )


def _plane(path: Path, raster: Raster) -> NDArray[np.generic]:
    """The one channel of real numbers."""
    pixels = raster.pixels
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim != 2:
        raise FileFormatError(
            path, f"{pixels.shape[-1]} channels ({pixels.shape})", "a depth map has one: export it alone"
        )
    if pixels.dtype.kind not in "iuf":
        raise FileFormatError(
            path, f"numbers of type {pixels.dtype}", "save depth as float32 or an integer type"
        )
    return pixels


def is_number(values: Any, number: float) -> Any:
    """Where an array or tensor holds this number, which 32-bit floats may hold rounded."""
    return abs(values - number) <= _ROUNDING * abs(number)


def _mask(raster: Raster, pixels: NDArray[Any], invalid: float | None) -> NDArray[np.bool_] | None:
    """What the file masks itself, and what its numbers say to be invalid; None for neither."""
    known = None if invalid is None else ~is_number(pixels, invalid)
    if raster.valid is None:
        return known
    own = raster.valid[..., 0] if raster.valid.ndim == 3 else raster.valid
    return own if known is None else own & known


def _meaning(path: Path, raster: Raster, unit: Unit | None, kind: Kind | None) -> tuple[Unit, Kind]:
    """Unit and kind, each as asked or by custom."""
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
    """What numbers of this type mean where nothing is said."""
    if dtype.kind == "f":
        return "m"
    return "disparity" if dtype.itemsize == 1 else "mm"
