"""Random numbers of the sensor models: drawn on the generator's device, returned on the data's.

A CPU generator gives the same numbers on every device; one on the data's own device is the fast
path of training, where nothing is copied and nothing waits.
"""

import torch
from torch import Tensor


def normal(like: Tensor, generator: torch.Generator, gain: Tensor | None = None) -> Tensor:
    """Return standard normal numbers of the shape of `like`, times `gain`."""
    drawn = torch.randn(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    drawn = drawn.to(like.device)
    return drawn if gain is None else drawn * gain


def uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """Return uniform numbers in [0, 1) of the shape of `like`."""
    drawn = torch.rand(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    return drawn.to(like.device)
