"""Random numbers of the sensor models: drawn on the generator's device, returned on the data's.

A CPU generator gives the same numbers on every device; one on the data's own device is the fast
path of training, where nothing is copied and nothing waits.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate


def normal(like: Tensor, generator: torch.Generator, gain: Tensor | None = None) -> Tensor:
    """Return standard normal numbers of the shape of `like`, times `gain`.

    Args:
        like: for its shape, type and device.
        generator: decides the numbers.
        gain: broadcastable to the shape; None for 1.
    """
    drawn = torch.randn(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    drawn = drawn.to(like.device)
    return drawn if gain is None else drawn * gain


def uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """Return uniform numbers in [0, 1) of the shape of `like`.

    Args:
        like: for its shape, type and device.
        generator: decides the numbers.
    """
    drawn = torch.rand(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    return drawn.to(like.device)


def smooth_field(like: Tensor, blob: int, generator: torch.Generator) -> Tensor:
    """Return values in [0, 1] of the size of (B, 1, h, w), of which every image reaches 1.

    Args:
        like: for its size, type and device.
        blob: pixels over which the values vary, or half of a smaller image.
        generator: decides everything.
    """
    height, width = int(like.shape[2]), int(like.shape[3])
    rows, columns = (1 + max(2, -(-side // blob)) for side in (height, width))
    dtype = like.dtype if like.is_floating_point() else torch.float32
    coarse = uniform(torch.empty((len(like), 1, rows, columns), dtype=dtype, device=like.device), generator)
    smooth = interpolate(coarse, (height, width), mode="bilinear", align_corners=True)
    return smooth / smooth.amax((2, 3), keepdim=True)


@dataclass(frozen=True, slots=True)
class Noise:
    """The random numbers of one batch of samples.

    Args:
        generator: decides them all.
        gain: (B, 1, 1, 1) factor on the noise of each image; None for 1.
    """

    generator: torch.Generator
    gain: Tensor | None = None

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers of the shape of `like`, times the gain.

        Args:
            like: for its shape, type and device.
        """
        return normal(like, self.generator, self.gain)

    def uniform(self, like: Tensor) -> Tensor:
        """Return numbers in [0, 1) of the shape of `like`; the gain does not change them.

        Args:
            like: for its shape, type and device.
        """
        return uniform(like, self.generator)

    def scaled(self, sigma: Tensor) -> Tensor:
        """Return the standard deviation of noise times the gain.

        Args:
            sigma: (B, 1, h, w) of noise without gain.
        """
        return sigma if self.gain is None else sigma * self.gain
