"""Units of stored depth, and the exact way between stored numbers and metres."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Unit = Literal["mm", "m", "5000", "256", "disparity"]
Kind = Literal["z", "radial", "disparity"]

UNITS: tuple[Unit, ...] = get_args(Unit)
KINDS: tuple[Kind, ...] = get_args(Kind)
INTEGER_UNITS: tuple[Unit, ...] = ("mm", "5000", "256")
_PER_METRE: dict[Unit, float] = {"mm": 1000.0, "m": 1.0, "5000": 5000.0, "256": 256.0, "disparity": 1.0}


def from_stored(stored: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """Metres (or pixels of disparity) = stored / scale."""
    return stored / _PER_METRE[unit]


def to_stored(values: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """The number whose quotient by the scale is exactly `values`, where there is one.

    `values * scale` can miss it by one unit in the last place, so its two neighbours are tried too.
    """
    scale = _PER_METRE[unit]
    with np.errstate(over="ignore"):
        stored = values * scale
        for neighbour in (np.nextafter(stored, np.inf), np.nextafter(stored, 0.0)):
            better = (stored / scale != values) & (neighbour / scale == values)
            stored = np.where(better, neighbour, stored)
    return stored


def whole_stored(values: NDArray[np.float64], unit: Unit) -> NDArray[np.float64]:
    """The nearest whole stored number."""
    with np.errstate(over="ignore"):
        return np.rint(values * _PER_METRE[unit])
