"""The cameras of a recording.

Pixel centres lie at half-integers: pixel (row i, column j) has its centre at x = j + 0.5, y = i + 0.5, and
the image covers [0, width] x [0, height]. OpenCV and most calibration tools put the centre of the first pixel
at (0, 0); `PixelCentres` names which of the two a matrix uses.
"""

from dataclasses import dataclass

from primaldepth.geometry.intrinsics import Intrinsics, PixelCentres
from primaldepth.geometry.motion import NO_SHIFT, NO_TURN, Rotation, Vector, check_motion

__all__ = ["Cameras", "Intrinsics", "PixelCentres"]


@dataclass(frozen=True, slots=True)
class Cameras:
    """The cameras of one recording; the guide's is the one the result is seen from.

    Args:
        guide: camera of the image.
        depth: camera of the depth map, or None where it shares the guide's, sampled more coarsely.
        rotation: rows of R in X_guide = R X_depth + t, or R X_cloud + t for a point cloud.
        translation: t in metres, the depth camera seen from the guide's.

    Example:
        >>> from primaldepth.geometry.cameras import Cameras, Intrinsics
        >>> color, depth = Intrinsics.guess(640, 480), Intrinsics.guess(160, 120)
        >>> Cameras(color, depth, translation=(0.05, 0.0, 0.0)).moved
        True
    """

    guide: Intrinsics
    depth: Intrinsics | None = None
    rotation: Rotation = NO_TURN
    translation: Vector = NO_SHIFT

    def __post_init__(self) -> None:
        check_motion(self.rotation, self.translation)

    @property
    def moved(self) -> bool:
        """Whether the depth is seen from elsewhere than the guide."""
        return self.rotation != NO_TURN or self.translation != NO_SHIFT
