"""Depth maps, the units they are stored in, and the exact way between stored numbers and metres."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primaldepth.core.errors import InputError

Unit = str  # a key of _PER_METRE, or how many stored numbers a metre (or a pixel of disparity) has
Kind = Literal["z", "radial", "disparity"]

KINDS: tuple[Kind, ...] = get_args(Kind)
COMMON_UNITS: tuple[Unit, ...] = ("mm", "m", "5000", "256", "disparity")
_PER_METRE: dict[Unit, float] = {"mm": 1000.0, "m": 1.0, "disparity": 1.0}
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?")


def per_metre(unit: Unit) -> float:
    """Return the stored numbers per metre, or per pixel of disparity.

    Args:
        unit: "mm", "m", "disparity", or such a number as text.

    Raises:
        InputError: the unit is not known.
    """
    if unit in _PER_METRE:
        return _PER_METRE[unit]
    if not (isinstance(unit, str) and _NUMBER.fullmatch(unit)):
        raise InputError(
            "",
            f"unit {unit!r:.50} is not known",
            "use mm, m, disparity, or the stored numbers per metre as text, such as '5000'",
        )
    number = float(unit)
    if number < 1.0:
        meant = f"; {1.0 / number:.6g} if one stored number is {unit} m" if number > 0 else ""
        raise InputError("", f"unit '{unit}' is below 1", f"give the stored numbers per metre{meant}")
    return number


def holds_integers(unit: Unit) -> bool:
    """Whether files in this unit are meant to hold whole numbers."""
    return unit not in ("m", "disparity")


def from_stored(stored: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """Return metres, or pixels of disparity: stored / scale."""
    return stored / per_metre(unit)


def to_stored(values: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """Return the stored numbers that `from_stored` turns into exactly `values`, where there are any.

    `values * scale` can miss it by one unit in the last place, so its two neighbours are tried too.
    """
    scale = per_metre(unit)
    with np.errstate(over="ignore"):
        stored = values * scale
        for neighbour in (np.nextafter(stored, np.inf), np.nextafter(stored, 0.0)):
            better = (stored / scale != values) & (neighbour / scale == values)
            stored = np.where(better, neighbour, stored)
    return stored


def whole_stored(values: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """Return the nearest whole stored number."""
    with np.errstate(over="ignore"):
        return np.rint(values * per_metre(unit))


def check_meaning(unit: str | None, kind: str | None) -> None:
    """Check a unit and a kind of depth.

    Args:
        unit: as `per_metre` takes it, or None.
        kind: one of `KINDS`, or None.

    Raises:
        InputError: one of them is not known, or they contradict each other.
    """
    if unit is not None:
        per_metre(unit)
    if kind is not None and kind not in KINDS:
        raise InputError("", f"kind {kind!r} is not known", f"use one of {', '.join(KINDS)}")
    if unit == "disparity" and kind not in (None, "disparity"):
        raise InputError(
            "", f"unit 'disparity' contradicts kind '{kind}'", "use kind 'disparity' or another unit"
        )
    if kind == "disparity" and unit in ("mm", "m"):
        raise InputError(
            "",
            f"kind 'disparity' contradicts unit '{unit}'",
            "use unit 'disparity', or the stored numbers per pixel such as '256'",
        )


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
        check_meaning(self.unit, self.kind)
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
        """Make a map; numbers that are 0, NaN, infinite, negative or masked become invalid.

        Args:
            values: (H, W) metres, or pixels of disparity.
            valid: (H, W) mask, or None.
            unit: of the file that it is to be written in.
            kind: "z", "radial" or "disparity"; None for what the unit says.

        Raises:
            InputError: the shapes differ, or unit and kind contradict each other.
        """
        clean = np.array(values, dtype=np.float64)
        mask = np.isfinite(clean) & (clean > 0)
        if valid is not None:
            if np.shape(valid) != clean.shape:
                raise InputError("valid", f"shape {np.shape(valid)}, but the depth has {clean.shape}")
            mask &= np.asarray(valid, dtype=bool)
        clean[~mask] = 0.0
        return cls(clean, mask, unit, kind or ("disparity" if unit == "disparity" else "z"))
