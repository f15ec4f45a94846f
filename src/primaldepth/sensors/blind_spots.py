"""Holes where real depth cameras have them: in shadows, on grazing surfaces, and on dark ones."""

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.settings import Positive, Settings, Share
from primaldepth.sensors.shadow import shadow


class BlindSpots(Settings):
    """Pixels that a camera with a projector or a second camera beside it cannot measure.

    Three kinds of pixels are lost. In a shadow, another surface covers the same column of the second device.
    The shift between the two views is proportional to the disparity, so a shadow lies beside the surface that
    casts it, and is wider the farther the background is behind. On a grazing surface, the cosine between ray
    and normal is below `grazing`. On a dark surface, the returned light is below `dark` times its median.
    Returned light is the mean of brightness times cosine over a window.

    Args:
        widest: shadow of the nearest surface on the farthest one, in pixels.
        to_right: whether shadows lie to the right of what casts them.
        grazing: least cosine that is measured.
        dark: least returned light that is measured, in parts of the median.
        window: side of the window over which light is averaged, in pixels; odd.
    """

    widest: Positive = 24.0
    to_right: bool = False
    grazing: Share = 0.2
    dark: Share = 0.1
    window: Annotated[int, Field(ge=1)] = 5

    def __call__(self, disparity: Tensor, seen: Tensor, cosine: Tensor, light: Tensor) -> Tensor:
        """Return True where nothing is measured; every map is (1, 1, H, W).

        Args:
            disparity: in any unit; larger is nearer.
            seen: where there is a surface at all.
            cosine: between the ray and the normal of the surface, in [0, 1].
            light: linear brightness of the surface.
        """
        returned = avg_pool2d(
            torch.where(seen, light * cosine, 0.0), self.window, 1, self.window // 2, count_include_pad=False
        )
        dark = returned < self.dark * returned[seen].median()
        return ~seen | self._shadow(disparity, seen) | (cosine < self.grazing) | dark

    def _shadow(self, disparity: Tensor, seen: Tensor) -> Tensor:
        low, high = disparity[seen].aminmax()
        shift = self.widest * (disparity - low) / (high - low).clamp_min(1e-12)
        shift = torch.where(seen, shift, 0.0)
        reach = math.ceil(self.widest) + 1
        if self.to_right:
            return shadow(shift.flip(3), seen.flip(3), reach).flip(3)
        return shadow(shift, seen, reach)
