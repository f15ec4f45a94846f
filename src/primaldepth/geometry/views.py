"""A depth map of known camera and pose."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import expect
from primaldepth.geometry.conversions import Map, Mask, check_maps, check_size
from primaldepth.geometry.poses import Pose


@dataclass(frozen=True, slots=True, eq=False)
class PosedView:
    """What one camera saw from where it stood.

    Args:
        depth: (H, W) z along the optical axis, in metres.
        valid: (H, W).
        camera: for H x W pixels.
        pose: of the camera.
        colors: (H, W, 3) sRGB of the same pixels.
        sigma: (H, W) standard deviation of the depth in metres, or None if unknown.

    Raises:
        InputError: if the maps do not fit each other.
    """

    depth: Map
    valid: Mask
    camera: Intrinsics
    pose: Pose
    colors: NDArray[np.uint8]
    sigma: Map | None = None

    def __post_init__(self) -> None:
        check_maps(self.depth, self.valid)
        check_size(self.depth, self.camera)
        expect("colours", self.colors, (*self.depth.shape, 3), np.uint8)
        if self.sigma is not None and self.sigma.shape != self.depth.shape:
            raise InputError("sigma", f"shape {self.sigma.shape}, but the depth has {self.depth.shape}")
