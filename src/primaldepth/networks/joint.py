"""The deep primal-dual network: FCN, then the unrolled solver on its two outputs."""

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from primaldepth.core.settings import Settings
from primaldepth.networks.fcn import FCN
from primaldepth.networks.unrolled import PrimalDualNet
from primaldepth.operators.pairwise import half_window


class NetworkSettings(Settings):
    """Everything that fixes the shape of a network.

    `input`: d reads depth alone, s also the guide's intensity; both read the noise map.
    `iterations` = 0 leaves the primal-dual part out.
    """

    input: Literal["d", "s"] = "s"
    layers: int = Field(10, ge=2)
    maps: int = Field(64, ge=1)
    window: int = Field(7, ge=3, le=17)
    iterations: int = Field(20, ge=0)
    model: str = "nlh-l2"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the joint network gives: the result and the FCN's outputs it was made from."""

    depth: Tensor
    first: Tensor
    affinities: Tensor


class DepthNet(nn.Module):
    """FCN(d, noise[, guide]) -> first estimate and affinities -> PDN -> depth, all in normalised units.

    Under autocast the convolutions run in its type, and without a gradient Triton also keeps p and w
    in it between iterations; all arithmetic of the primal-dual part is float32.
    """

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        pairs = len(half_window(settings.window))
        self.fcn = FCN(3 if settings.input == "s" else 2, pairs, settings.layers, settings.maps)
        self.pdn: PrimalDualNet | None = None
        if settings.iterations:
            self.pdn = PrimalDualNet(settings.iterations, settings.window, settings.model)

    @property
    def radius(self) -> int:
        """Pixels around a pixel that can change its result."""
        return self.fcn.radius + (self.pdn.radius if self.pdn is not None else 0)

    def forward(self, depth: Tensor, sigma: Tensor, trust: Tensor, guide: Tensor) -> Estimate:
        """All on the guide's grid, (B, 1, H, W): interpolated depth, its noise, trust in it, intensity."""
        first, affinities = self.first(depth, sigma, trust, guide)
        if self.pdn is None:
            return Estimate(first, first, affinities)
        kind = depth.device.type
        storage = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        with torch.autocast(kind, enabled=False):
            result = self.pdn(first, affinities, trust, guide, storage)
        return Estimate(result, first, affinities)

    def first(self, depth: Tensor, sigma: Tensor, trust: Tensor, guide: Tensor) -> tuple[Tensor, Tensor]:
        """The FCN's depth and affinities alone."""
        channels = [depth, sigma, guide] if self.settings.input == "s" else [depth, sigma]
        residual, affinities = self.fcn(torch.cat(channels, dim=1))
        return depth + residual.float(), affinities
