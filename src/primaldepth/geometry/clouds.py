"""Points and triangles in the camera's frame: x right, y down, z forward."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError


@dataclass(frozen=True, slots=True)
class PointCloud:
    """Coloured points in the camera's frame.

    Args:
        points: (N, 3) float32.
        colors: (N, 3) uint8, sRGB.
        measured: (N,) False where the depth was filled in rather than measured, or None if unknown.
    """

    points: NDArray[np.float32]
    colors: NDArray[np.uint8]
    measured: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        count = len(self.points)
        expect("points", self.points, (count, 3), np.float32)
        expect("colours", self.colors, (count, 3), np.uint8)
        if self.measured is not None:
            expect("measured", self.measured, (count,), np.bool_)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Coloured triangles in the camera's frame.

    Args:
        points: the vertices, with colours.
        triangles: (M, 3) uint32, rows of `points`; counter-clockwise as the camera sees them.
    """

    points: PointCloud
    triangles: NDArray[np.uint32]

    def __post_init__(self) -> None:
        found = self.triangles
        if found.ndim != 2 or found.shape[1] != 3 or found.dtype != np.uint32:
            raise InputError("triangles", f"shape {found.shape}, dtype {found.dtype}, expected uint32 (M, 3)")
        if found.size and int(found.max()) >= len(self.points.points):
            raise InputError(
                "triangles", f"vertex {int(found.max())}, but there are {len(self.points.points)} vertices"
            )


def expect(name: str, value: NDArray[Any], shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    """Raise an error unless an array has this shape and type; `name` is that of the input."""
    if value.shape != shape or value.dtype != dtype:
        raise InputError(
            name, f"shape {value.shape}, dtype {value.dtype}, expected {shape}, {np.dtype(dtype).name}"
        )
