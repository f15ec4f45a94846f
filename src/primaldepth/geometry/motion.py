"""How one camera stands to another: X_there = R X_here + t, in metres, x right, y down, z forward."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from primaldepth.core.errors import InputError, shortened

Vector = tuple[float, float, float]
Rotation = tuple[Vector, Vector, Vector]

NO_TURN: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
NO_SHIFT: Vector = (0.0, 0.0, 0.0)


def check_motion(rotation: ArrayLike, translation: ArrayLike) -> None:
    """Raise an error unless R is a rotation matrix and t three finite numbers."""
    R, t = np.asarray(rotation, np.float64), np.asarray(translation, np.float64)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-4) or np.linalg.det(R) < 0:
        raise InputError(
            "rig", f"{shortened(R.tolist())} is not a rotation", "expected orthonormal rows, determinant 1"
        )
    if t.shape != (3,) or not np.isfinite(t).all():
        raise InputError(
            "rig", f"translation {shortened(t.tolist())}, expected three finite numbers (metres)"
        )


def as_tuples(values: ArrayLike) -> Any:
    """Return a matrix or vector as tuples of floats, which can be compared and hashed."""
    array = np.asarray(values, np.float64)
    return tuple(map(tuple, array.tolist())) if array.ndim == 2 else tuple(array.tolist())


def inverse(rotation: ArrayLike, translation: ArrayLike) -> tuple[Rotation, Vector]:
    """Return the inverse motion: X_here = R' X_there - R' t."""
    R, t = np.asarray(rotation, np.float64), np.asarray(translation, np.float64)
    return as_tuples(R.T), as_tuples(-R.T @ t)
