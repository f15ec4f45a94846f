"""Units of stored depth, and the exact way between stored numbers and metres."""

import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError

Unit = str  # a key of _PER_METRE, or how many stored numbers a metre (or a pixel of disparity) has
Kind = Literal["z", "radial", "disparity"]

KINDS: tuple[Kind, ...] = get_args(Kind)
COMMON_UNITS: tuple[Unit, ...] = ("mm", "m", "5000", "256", "disparity")
_PER_METRE: dict[Unit, float] = {"mm": 1000.0, "m": 1.0, "disparity": 1.0}
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?")


def per_metre(unit: Unit) -> float:
    """Stored numbers per metre, or per pixel of disparity; raises where `unit` does not say."""
    if unit in _PER_METRE:
        return _PER_METRE[unit]
    if not (isinstance(unit, str) and _NUMBER.fullmatch(unit)):
        raise InputError(
            f"unit {unit!r:.50} is not known; use mm, m, disparity, or the stored numbers per metre as text, "
            "such as '5000'"
        )
    number = float(unit)
    if number < 1.0:
        meant = f"; {1.0 / number:.6g} if one stored number is {unit} m" if number > 0 else ""
        raise InputError(f"unit '{unit}' is below 1; give the stored numbers per metre{meant}")
    return number


def holds_integers(unit: Unit) -> bool:
    """Whether files in this unit are meant to hold whole numbers."""
    return unit not in ("m", "disparity")


def from_stored(stored: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """Metres (or pixels of disparity) = stored / scale."""
    return stored / per_metre(unit)


def to_stored(values: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """The number whose quotient by the scale is exactly `values`, where there is one.

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
    """The nearest whole stored number."""
    with np.errstate(over="ignore"):
        return np.rint(values * per_metre(unit))
