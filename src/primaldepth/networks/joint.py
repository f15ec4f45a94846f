"""The deep primal-dual network: FCN, then the unrolled solver on its two outputs."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from torch import Tensor, nn

from primaldepth.core.errors import shortened
from primaldepth.core.settings import Settings
from primaldepth.networks.fcn import FCN, START_AFFINITY
from primaldepth.networks.inputs import SensorSamples
from primaldepth.networks.unet import FIRST, UNet
from primaldepth.networks.unrolled import PrimalDualNet
from primaldepth.operators.pairwise import half_window
from primaldepth.operators.sampling import MixedResample, PointSamples, Resample
from primaldepth.variational.models import MODELS, WindowSize

MOST_ITERATIONS = 1000
SIGMA_MAP, AFFINITY_MAP = 2, 3  # of the backbone's maps: residual, weight, uncertainty, affinities[, omega]


def _is_known(model: str) -> str:
    if model not in MODELS:
        raise ValueError(f"model {shortened(model)} is not one of {', '.join(MODELS)}")
    return model


class NetworkSettings(Settings):
    """Everything that fixes the shape of a network.

    `input`: d reads depth alone, s also the guide's intensity; both read the noise map.
    `iterations` = 0 leaves the primal-dual part out. `backbone` fcn is the paper's network of `layers`
    convolutions with `maps` feature maps; unet works on several scales (`widths`, `blocks`), is told the
    ratio of the sizes, reads a guide in colour, and also gives weights of the data term and an uncertainty.
    With `samples` the solver's energy has the sample term, which compares the result with the samples on the
    sensor's grid; the unet then also says how far to trust each of them.

    Example:
        >>> from primaldepth.networks import DepthNet, NetworkSettings
        >>> net = DepthNet(NetworkSettings(input="d", layers=2, maps=4, iterations=0))
        >>> net.radius  # pixels that a pixel of the result depends on, on each side
        2
    """

    backbone: Literal["fcn", "unet"] = "fcn"
    input: Literal["d", "s"] = "s"
    layers: int = Field(10, ge=2, le=100)
    maps: int = Field(64, ge=1, le=1024)
    widths: tuple[Annotated[int, Field(ge=8, le=1024, multiple_of=8)], ...] = Field(
        (48, 96, 160, 224), max_length=8
    )
    blocks: tuple[Annotated[int, Field(ge=0, le=32)], ...] = Field((1, 2, 2, 2), max_length=8)
    window: WindowSize = 7
    iterations: int = Field(20, ge=0, le=MOST_ITERATIONS)
    model: Annotated[str, AfterValidator(_is_known)] = "nlh-l2"
    samples: bool = False

    @field_validator("samples")
    @classmethod
    def _with_trust(cls, samples: bool, info: ValidationInfo) -> bool:
        if samples and info.data.get("backbone") != "unet":
            raise ValueError("only the backbone 'unet' has a map of the trust in samples")
        return samples

    @property
    def parameters(self) -> int:
        """Numbers that a network of this shape has, counted without building it."""
        pairs = len(half_window(self.window))
        seen = self.colours if self.input == "s" else 0
        solver = PrimalDualNet.parameters_of(self.iterations, self.model, samples=self.samples)
        if self.backbone == "fcn":
            return solver + FCN.parameters_of(2 + seen, pairs, self.layers, self.maps)
        if not self.widths or len(self.widths) != len(self.blocks):
            return solver  # no network can be built of these, and its error says so
        maps = AFFINITY_MAP + pairs + int(self.samples)
        return solver + UNet.parameters_of(4 + seen, maps, self.widths, self.blocks)

    @property
    def colours(self) -> int:
        """Channels of the guide that the network is given."""
        return 3 if self.backbone == "unet" else 1


LARGEST_WEIGHT = 4.0  # |log| of the weights of the data term, and of the trust in samples
USUAL_SIGMA = 0.05  # what an untrained network says of its error


@dataclass(frozen=True, slots=True)
class Features:
    """What the fully convolutional part gives.

    Args:
        first: (B, 1, H, W) first estimate.
        affinities: (B, N, H, W) expected differences of depth.
        weight: (B, 1, H, W) of the data term, or None for 1.
        log_sigma: (B, 1, H, W) logarithm of the expected absolute error, or None.
        log_omega: (B, 1, H, W) logarithm of the trust in samples, before it is limited, or None for 0.
    """

    first: Tensor
    affinities: Tensor
    weight: Tensor | None = None
    log_sigma: Tensor | None = None
    log_omega: Tensor | None = None

    def omega(self, A: Resample | PointSamples | MixedResample) -> Tensor | None:
        """Return the trust in each sample, (B, 1, h, w), by the mean of the map with A's absolute weights."""
        return None if self.log_omega is None else _limited(A.averaging()(self.log_omega))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the joint network gives: the result and what it was made from."""

    depth: Tensor
    features: Features

    @property
    def first(self) -> Tensor:
        """The first estimate."""
        return self.features.first

    @property
    def affinities(self) -> Tensor:
        """The difference of depth that the network expects of each pair of pixels, (B, N, H, W)."""
        return self.features.affinities

    @property
    def sigma(self) -> Tensor | None:
        """How far the result may be off, or None where the network does not say."""
        return None if self.features.log_sigma is None else self.features.log_sigma.exp()


class DepthNet(nn.Module):
    """FCN(d, noise[, guide]) -> first estimate and affinities -> PDN -> depth, all in normalised units.

    Under autocast the convolutions run in its type, and Triton also keeps p and w in it between iterations;
    all arithmetic of the primal-dual part is float32.
    """

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        pairs = len(half_window(settings.window))
        self.fcn: FCN | UNet
        if settings.backbone == "unet":
            guide = settings.colours if settings.input == "s" else 0
            maps = AFFINITY_MAP + pairs + int(settings.samples)
            self.fcn = UNet(4 + guide, maps, settings.widths, settings.blocks)
            if self.fcn.leave.bias is not None:
                bias = self.fcn.leave.bias.view(-1, FIRST**2)[AFFINITY_MAP : AFFINITY_MAP + pairs]
                nn.init.constant_(bias, START_AFFINITY)
        else:
            self.fcn = FCN(3 if settings.input == "s" else 2, pairs, settings.layers, settings.maps)
        self.pdn: PrimalDualNet | None = None
        if settings.iterations:
            self.pdn = PrimalDualNet(
                settings.iterations, settings.window, settings.model, samples=settings.samples
            )

    @property
    def is_for_any_scale(self) -> bool:
        """Whether it reads the ratio of the sizes and a guide in colour, and gives an uncertainty."""
        return self.settings.backbone == "unet"

    @property
    def stride(self) -> int:
        """Windows of a frame start at multiples of this, so that they are seen as the whole frame is."""
        return self.fcn.stride

    @property
    def radius(self) -> int:
        """Pixels around a pixel that can change its result."""
        return self.fcn.radius + (self.pdn.radius if self.pdn is not None else 0)

    def scale_sigma(self, factor: float) -> None:
        """Multiply the uncertainty by a factor, which becomes part of the weights.

        Args:
            factor: above 0.

        Raises:
            ValueError: the network gives no uncertainty.
        """
        if not isinstance(self.fcn, UNet) or self.fcn.leave.bias is None:
            raise ValueError("the network gives no uncertainty")
        with torch.no_grad():
            self.fcn.leave.bias.view(-1, FIRST**2)[SIGMA_MAP] += math.log(factor)

    def with_iterations(self, count: int) -> "DepthNet":
        """Return the same network with another number of iterations, coefficients between the learned ones.

        Args:
            count: of the iterations.

        Raises:
            ValueError: the network has no primal-dual part.
        """
        if self.pdn is None:
            raise ValueError("the network has no primal-dual part")
        with torch.device("meta"):  # its weights are replaced
            other = DepthNet(self.settings.model_copy(update={"iterations": count}))
        other.fcn, other.pdn = self.fcn, self.pdn.resampled(count)
        return other.train(self.training)

    def with_samples(self) -> "DepthNet":
        """Return the same network with the sample term in its energy, and a trust of 1 in every sample.

        Raises:
            ValueError: for a network without a primal-dual part, or with a backbone other than `unet`.
        """
        if self.settings.samples:
            return self
        if self.pdn is None or not isinstance(self.fcn, UNet):
            raise ValueError("only a 'unet' with a primal-dual part can have the sample term")
        other = DepthNet(self.settings.model_copy(update={"samples": True}))
        state, started = self.fcn.state_dict(), other.fcn.state_dict()
        for name in ("leave.weight", "leave.bias"):
            state[name] = torch.cat([state[name], torch.zeros_like(started[name][len(state[name]) :])])
        other.fcn.load_state_dict(state)
        other.pdn = self.pdn.with_samples()
        return other.train(self.training)

    def stored_as(self, precision: torch.dtype) -> "DepthNet":
        """Store the kernels in this type, channels last, as convolutions under autocast read them.

        Otherwise autocast converts them for every frame. The first layer of a unet stays in float32.

        Args:
            precision: type of the kernels.

        Returns:
            The network itself.
        """
        for name, layer in self.fcn.named_children():
            dtype = None if name == "enter" else precision
            layer.to(dtype=dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return self

    def forward(
        self,
        depth: Tensor,
        sigma: Tensor,
        trust: Tensor,
        guide: Tensor,
        ratio: Tensor | None = None,
        samples: SensorSamples | None = None,
    ) -> Estimate:
        """Estimate the depth.

        Args:
            depth: (B, 1, H, W), as all that follows a field of `NetworkInput`.
            sigma: (B, 1, H, W).
            trust: (B, 1, H, W).
            guide: (B, 1 or 3, H, W).
            ratio: (B, 1, 1, 1), or None.
            samples: of the sample term, or None.

        Returns:
            The depth, and the features it was made from.
        """
        features = self.features(depth, sigma, trust, guide, ratio)
        kind = depth.device.type
        storage = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        with torch.autocast(kind, enabled=False):
            return Estimate(self.solve(features, trust, guide, samples, storage), features)

    def solve(
        self,
        features: Features,
        trust: Tensor,
        guide: Tensor,
        samples: SensorSamples | None = None,
        storage: torch.dtype | None = None,
    ) -> Tensor:
        """Return the depth that the primal-dual part makes of the features; without one the first estimate.

        Args:
            features: of the fully convolutional part.
            trust: (B, 1, H, W) as in `NetworkInput`, like guide and samples.
            guide: (B, 1 or 3, H, W).
            samples: of the sample term, or None; ignored by a network without it.
            storage: type in which Triton keeps p and w between iterations; None keeps float32.
        """
        if self.pdn is None:
            return features.first
        weight = trust if features.weight is None else trust * features.weight
        measured = None
        if samples is not None and self.settings.samples:
            measured = samples.weighed(features.omega(samples.A))
        depth: Tensor = self.pdn(features.first, features.affinities, weight, guide, storage, measured)
        return depth

    def features(
        self, depth: Tensor, sigma: Tensor, trust: Tensor, guide: Tensor, ratio: Tensor | None = None
    ) -> Features:
        """Run the fully convolutional part alone.

        Args:
            depth: as for `forward`, like the others.
            sigma: of the depth.
            trust: in it.
            guide: ignored by a network without one.
            ratio: or None.

        Returns:
            First estimate, affinities, and what else the backbone gives.
        """
        seen = [guide] if self.settings.input == "s" else []
        if isinstance(self.fcn, FCN):
            residual, affinities = self.fcn(torch.cat([depth, sigma, *seen], dim=1))
            return Features(depth + residual.float(), affinities)
        level = depth.new_zeros((1, 1, 1, 1)) if ratio is None else ratio / 4.0  # x16 is 1
        out = self.fcn(torch.cat([depth, sigma, trust, level.expand_as(depth), *seen], dim=1))
        residual, weight, error = (out[:, k : k + 1].float() for k in range(3))
        last = out.shape[1] - int(self.settings.samples)
        trusted = out[:, last:].float() if self.settings.samples else None
        affinities, log_sigma = out[:, AFFINITY_MAP:last], math.log(USUAL_SIGMA) + error
        return Features(depth + residual, affinities, _limited(weight), log_sigma, trusted)


def _limited(log_weight: Tensor) -> Tensor:
    """Return exp of a logarithm that is bent to stay within +-LARGEST_WEIGHT."""
    return torch.exp(LARGEST_WEIGHT * torch.tanh(log_weight / LARGEST_WEIGHT))
