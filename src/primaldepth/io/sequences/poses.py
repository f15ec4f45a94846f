"""Poses as recordings write them, turned to a world with y down, z forward."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.motion import rotation
from primaldepth.geometry.poses import Y_UP, Pose
from primaldepth.io.files import finite_numbers


def arkit_pose(found: object, where: Path) -> Pose:
    """Return camera to world as ARKit has it, y up and z backward in both.

    Args:
        found: twelve or sixteen numbers of a matrix, row by row.
        where: names the file in errors.

    Raises:
        FileFormatError: if it is something else.
    """
    matrix = _matrix(found, where)
    return _pose(where, Y_UP @ matrix[:, :3] @ Y_UP, Y_UP @ matrix[:, 3])


def arkit_quaternion(found: object, where: Path) -> Pose:
    """Return such a pose from seven numbers: quaternion x, y, z, w, then place."""
    qx, qy, qz, qw, *place = _numbers(found, where, (7,))
    turn = _rotation((qx, qy, qz, qw), where)
    return _pose(where, Y_UP @ turn @ Y_UP, Y_UP @ place)


def matrix_pose(found: object, where: Path) -> Pose:
    """Return camera to world from sixteen numbers, row by row, y down and z forward in both."""
    matrix = _matrix(found, where)
    return _pose(where, matrix[:, :3], matrix[:, 3])


def quaternion_pose(found: object, where: Path, world: ArrayLike) -> Pose:
    """Return camera to world from seven numbers: place, quaternion x, y, z, w; the camera has y down.

    Args:
        found: the numbers, or their text.
        where: names the file in errors.
        world: (3, 3), turns the world of the file to one with y down, z forward.
    """
    x, y, z, *quaternion = _numbers(found, where, (7,))
    return _pose(where, _rotation(quaternion, where), (x, y, z), world)


def _matrix(found: object, where: Path) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    return np.reshape(_numbers(found, where, (12, 16)), (-1, 4))[:3]


def _numbers(found: object, where: Path, counts: tuple[int, ...]) -> list[float]:
    expected = f"the {' or '.join(map(str, counts))} numbers of a pose"
    if not isinstance(found, list | tuple) or len(found) not in counts:
        raise FileFormatError(where, f"{shortened(found)} is no pose", f"expected {expected}")
    return finite_numbers(found, where, expected)


def _rotation(quaternion: Sequence[float], where: Path) -> ArrayLike:
    if not any(quaternion):
        raise FileFormatError(where, "the quaternion of a pose is 0", "record or export it again")
    return rotation(quaternion)


def _pose(where: Path, turn: ArrayLike, place: ArrayLike, world: ArrayLike | None = None) -> Pose:
    try:
        return Pose.of(turn, place, world)
    except InputError as error:
        raise FileFormatError(where, f"a pose whose {error.found}", "record or export it again") from error
