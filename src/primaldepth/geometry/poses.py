"""Where a camera stood: X_world = R X_camera + t, in metres, both with x right, y down, z forward."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primaldepth.geometry.motion import Rotation, Vector, as_tuples, check_motion

Array = NDArray[np.float64]
Y_UP = np.diag([1.0, -1.0, -1.0])
"""Between axes with y down, z forward and those of OpenGL and ARKit with y up, z backward, either way."""
Z_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""From a world with z up, y forward to one with y down, z forward."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Rotation R and translation t of X_world = R X_camera + t.

    Args:
        rotation: rows of R.
        translation: t, where the camera stood, in metres.

    Raises:
        InputError: if R is no rotation, or t is not three finite numbers.
    """

    rotation: Rotation
    translation: Vector

    def __post_init__(self) -> None:
        check_motion(self.rotation, self.translation)

    @classmethod
    def of(cls, rotation: ArrayLike, translation: ArrayLike, world: ArrayLike | None = None) -> "Pose":
        """Make a pose of arrays.

        Args:
            rotation: (3, 3), from a camera with y down, z forward.
            translation: (3,).
            world: (3, 3), turns the world that these are given in to one with y down, z forward.
        """
        turn = np.eye(3) if world is None else np.asarray(world, np.float64)
        return cls(as_tuples(turn @ np.asarray(rotation)), as_tuples(turn @ np.asarray(translation)))

    @property
    def matrix(self) -> Array:
        """(4, 4): camera to world, homogeneous."""
        found = np.eye(4)
        found[:3, :3], found[:3, 3] = self.rotation, self.translation
        return found

    @property
    def opengl(self) -> Array:
        """(4, 4): camera to world, both with y up, z backward, as OpenGL, ARKit and nerfstudio have them."""
        flip = np.diag([*np.diag(Y_UP), 1.0])
        turned: Array = flip @ self.matrix @ flip
        return turned

    def to_world(self, points: ArrayLike) -> Array:
        """Return (N, 3) points of the camera's frame in the world's: R X + t."""
        found: Array = np.asarray(points, np.float64) @ np.transpose(self.rotation) + self.translation
        return found

    def to_camera(self, points: ArrayLike) -> Array:
        """Return (N, 3) points of the world in the camera's frame: R' (X - t)."""
        found: Array = (np.asarray(points, np.float64) - self.translation) @ np.asarray(self.rotation)
        return found
