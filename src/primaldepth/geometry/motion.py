"""How one camera stands to another: X_there = R X_here + t, in metres, x right, y down, z forward."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def rotation(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Return (3, 3) of the quaternion x, y, z, w: v + 2 w (q x v) + 2 q x (q x v) of each unit vector v."""
    values = np.asarray(quaternion, np.float64)
    x, y, z, w = values / np.linalg.norm(values)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: NDArray[np.float64] = np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
    return turned


def quaternion(rotation: ArrayLike) -> NDArray[np.float64]:
    """Return (4,): x, y, z, w of a rotation, with w >= 0.

    q q' is known from R: 4 q_i q_j are its entries, sums and differences. The column with the largest q_i
    is divided by it, so that nothing is divided by 0.
    """
    R = np.asarray(rotation, np.float64)
    products = np.empty((4, 4))
    products[:3, :3] = R + R.T + (1.0 - np.trace(R)) * np.eye(3)
    products[3, :3] = products[:3, 3] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    products[3, 3] = 1.0 + np.trace(R)
    column = products[:, np.argmax(np.diag(products))]
    q: NDArray[np.float64] = column / np.linalg.norm(column)
    return q if q[3] >= 0 else -q
