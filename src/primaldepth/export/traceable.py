"""The network written without the image's size, so that one exported graph serves every size.

The pairwise operators slice the image, and slices are made of numbers. Here the same operators
are convolutions with fixed kernels followed by a mask, which work on any size. Everything else,
the primal-dual step above all, is the library's own code.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from primaldepth.networks import DepthNet, PrimalDualNet
from primaldepth.networks.inputs import SensorSamples
from primaldepth.networks.unrolled import ALPHA_0
from primaldepth.operators import (
    EdgeTensor,
    ForwardDifference,
    GradientMinusField,
    LinearOperator,
    SelectChannels,
    SymmetrizedGradient,
)
from primaldepth.operators.pairwise import Offset
from primaldepth.operators.sampling import MixedResample, SampleTerm
from primaldepth.variational.energies import Energy, OnDepth, Term
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Quadratic
from primaldepth.variational.primal_dual import State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes


class MaskedConvolution(LinearOperator):
    """K u = m (k * u): every pairwise operator, for any size; K' p = k' * (m p).

    Args:
        kernel: (maps, channels, window, window) taps k.
        mask: (1, maps, H, W) m: 1 where the pair lies inside the image, else 0.
    """

    def __init__(self, kernel: Tensor, mask: Tensor) -> None:
        self.kernel, self.mask = kernel, mask
        self.mirrored = kernel.flip(2, 3).transpose(0, 1).contiguous()
        height, width = mask.shape[2], mask.shape[3]
        self.in_shape = (kernel.shape[1], height, width)
        self.out_shape = (kernel.shape[0], height, width)

    def forward(self, u: Tensor) -> Tensor:
        """Convolved, then masked."""
        return self.mask * conv2d(u, self.kernel, padding=self.kernel.shape[-1] // 2)

    def adjoint(self, p: Tensor) -> Tensor:
        """The mirrored kernel on what the mask leaves."""
        return conv2d(self.mask * p, self.mirrored, padding=self.kernel.shape[-1] // 2)

    @property
    def norm_bound(self) -> float:
        """||K||^2 <= largest row sum times largest column sum of |k|."""
        size = self.kernel.abs()
        return float((size.sum((1, 2, 3)).max() * size.sum((0, 2, 3)).max()).sqrt())

    def magnitude(self) -> LinearOperator:
        """Absolute taps."""
        return MaskedConvolution(self.kernel.abs(), self.mask)


class _AnySizeTensor(EdgeTensor):
    """The edge tensor without reading the size as numbers."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.in_shape = self.out_shape = (2, tensor.shape[2], tensor.shape[3])


def end_taps(offsets: Sequence[Offset]) -> Tensor:
    """(N, 1, window, window): 1 at the far end of each pair; * u gives u(x + d_k)."""
    radius = max(max(abs(dy), abs(dx)) for dy, dx in offsets)
    taps = torch.zeros(len(offsets), 1, 2 * radius + 1, 2 * radius + 1)
    for k, (dy, dx) in enumerate(offsets):
        taps[k, 0, radius + dy, radius + dx] = 1.0
    return taps


def difference_taps(offsets: Sequence[Offset], channels: int = 1) -> Tensor:
    """Kernel of `PairwiseDifference`: (channels * N, channels, window, window)."""
    far = end_taps(offsets)
    one = _centre(far) - far
    taps = one.new_zeros((channels, len(offsets), channels, *one.shape[2:]))
    for channel in range(channels):
        taps[channel, :, channel] = one[:, 0]
    return taps.flatten(0, 1)


def slope_taps(offsets: Sequence[Offset]) -> Tensor:
    """Kernel of `PairwiseSlope`: (N, 3, window, window)."""
    far = end_taps(offsets)
    both = _centre(far) + far
    d_y, d_x = far.new_tensor(offsets).T.reshape(2, -1, 1, 1, 1)
    return torch.cat([_centre(far) - far, both * d_y / 2, both * d_x / 2], dim=1)


def _centre(taps: Tensor) -> Tensor:
    middle = torch.zeros_like(taps)
    middle[..., taps.shape[-1] // 2, taps.shape[-1] // 2] = 1.0
    return middle


class TraceableSolver(nn.Module):
    """`PrimalDualNet` with the coefficients as numbers and no use of the image's size."""

    def __init__(self, pdn: PrimalDualNet) -> None:
        super().__init__()
        self.pdn, self.rows = pdn, pdn.coefficients.tolist()
        self.precision = pdn.log_precision.detach().exp().item() if pdn.samples else 1.0
        three = pdn.model.channels == 3
        self.alpha = pdn.log_alpha_0.exp().tolist() if three else [ALPHA_0] * len(self.rows)
        for name, taps in self._kernels().items():
            self.register_buffer(name, taps.to(pdn.log_coefficients))

    def _kernels(self) -> dict[str, Tensor]:
        offsets = self.pdn.offsets
        if self.pdn.model.is_local:
            return {}
        if self.pdn.model.family != "nltgv":
            return {"ends": end_taps(offsets), "difference": difference_taps(offsets)}
        slopes = difference_taps(offsets, channels=2)
        return {"ends": end_taps(offsets), "coupling": slope_taps(offsets), "slopes": slopes}

    def forward(
        self, f: Tensor, affinities: Tensor, trust: Tensor, guide: Tensor, samples: SampleTerm | None = None
    ) -> Tensor:
        """As `PrimalDualNet.forward`, with samples of an operator whose norm is 1."""
        model = self.pdn.model
        support = self.pdn.support(affinities, guide)
        operators = self._operators(support)
        data = Quadratic if model.norm == "l2" else Absolute
        u = torch.cat([f, *[torch.zeros_like(f)] * (model.channels - 1)], dim=1)
        state: State | None = None
        scaled = None if samples is None else SampleTerm(samples.A, samples.d, self.precision * samples.lam)
        measured = self.pdn.sample_terms(scaled, (f.shape[2], f.shape[3]))
        for (sigma, tau, eps, lam, theta, *rho), alpha_0 in zip(self.rows, self.alpha, strict=True):
            terms = self._terms(operators, support, alpha_0, eps)
            energy = Energy((*terms, *measured), OnDepth(data(f, lam * trust)))
            state = State.start(energy, u) if state is None else state
            steps = (*(sigma,) * len(terms), *rho[: len(measured)])
            state = primal_dual_step(energy, state, StepSizes(tau, steps, theta))
        return u[:, :1] if state is None else state.u[:, :1]

    def _operators(self, support: Tensor) -> tuple[LinearOperator, ...]:
        """One per term, in the order of `Model.terms`."""
        family, size = self.pdn.model.family, (support.shape[2], support.shape[3])
        three = (3, *size)
        if family == "atv":
            return (_AnySizeTensor(support) @ ForwardDifference(size),)
        if family == "atgv":
            slopes = SymmetrizedGradient(size) @ SelectChannels(three, 1, 3)
            return _AnySizeTensor(support) @ GradientMinusField(size), slopes
        ends = self.get_buffer("ends")
        mask = conv2d(torch.ones_like(support[:, :1]), ends, padding=ends.shape[-1] // 2)
        if family != "nltgv":
            return (MaskedConvolution(self.get_buffer("difference"), mask),)
        twice = MaskedConvolution(self.get_buffer("slopes"), mask.repeat(1, 2, 1, 1))
        return MaskedConvolution(self.get_buffer("coupling"), mask), twice @ SelectChannels(three, 1, 3)

    def _terms(
        self, operators: tuple[LinearOperator, ...], support: Tensor, alpha_0: float, eps: float
    ) -> tuple[Term, ...]:
        """The penalties of `Model.terms` on these operators."""
        first = operators[0]
        match self.pdn.model.family:
            case "atv":
                return (Term(first, GroupNorm(1.0)),)
            case "atgv":
                return Term(first, GroupNorm(1.0)), Term(operators[1], GroupNorm(alpha_0))
            case "nltgv":
                slopes = Huber(alpha_0 * support.repeat(1, 2, 1, 1))
                return Term(first, Huber(support)), Term(operators[1], slopes)
            case family:
                return (Term(first, Huber(support, eps if family == "nlh" else 0.0)),)


class TraceableNet(nn.Module):
    """`DepthNet` as a function of images to images: what an exporter sees."""

    def __init__(self, net: DepthNet) -> None:
        super().__init__()
        self.net, self.solver = net, TraceableSolver(net.pdn) if net.pdn is not None else None

    def forward(
        self,
        depth: Tensor,
        sigma: Tensor,
        trust: Tensor,
        guide: Tensor,
        ratio: Tensor | None = None,
        *measured: Tensor,
    ) -> tuple[Tensor, ...]:
        """As `DepthNet.forward`: the result and, where the network gives one, its uncertainty.

        Args:
            measured: of a network with the sample term: the matrices of the sampling operator, (h, H) and
                (w, W), then the samples, their noise and the trust in them, (1, 1, h, w).
        """
        features = self.net.features(depth, sigma, trust, guide, ratio)
        result = features.first
        if self.solver is not None:
            weight = trust if features.weight is None else trust * features.weight
            samples = None
            if measured:
                A = MixedResample.given(*measured[:2])
                samples = SensorSamples(A, *measured[2:]).weighed(features.omega(A))
            result = self.solver(result, features.affinities, weight, guide, samples)
        return (result,) if features.log_sigma is None else (result, features.log_sigma.exp())
