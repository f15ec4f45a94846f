"""The network written without the image's size, so that one exported graph serves every size.

The pairwise operators slice the image, and a graph stores the bounds of slices as constants. Here the same
operators are convolutions with fixed kernels followed by a mask, which work on any size. Everything else,
the primal-dual step above all, is the library's own code.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from primaldepth.networks import DepthNet, Estimate, PrimalDualNet
from primaldepth.networks.inputs import SensorSamples
from primaldepth.operators import LinearOperator
from primaldepth.operators.pairwise import Offset
from primaldepth.operators.sampling import MixedResample, SampleTerm
from primaldepth.variational.models import PairOperators


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
        """Return m (k * u)."""
        return self.mask * conv2d(u, self.kernel, padding=self.kernel.shape[-1] // 2)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return k' * (m p), k' the mirrored kernel."""
        return conv2d(self.mask * p, self.mirrored, padding=self.kernel.shape[-1] // 2)

    @property
    def norm_bound(self) -> float:
        """||K||^2 <= largest row sum times largest column sum of |k|."""
        size = self.kernel.abs()
        return float((size.sum((1, 2, 3)).max() * size.sum((0, 2, 3)).max()).sqrt())

    def magnitude(self) -> LinearOperator:
        """Return the operator with absolute taps."""
        return MaskedConvolution(self.kernel.abs(), self.mask)


def end_taps(offsets: Sequence[Offset]) -> Tensor:
    """Return taps (N, 1, window, window) that are 1 at the far end of each pair: * u gives u(x + d_k)."""
    radius = max(max(abs(dy), abs(dx)) for dy, dx in offsets)
    taps = torch.zeros(len(offsets), 1, 2 * radius + 1, 2 * radius + 1)
    for k, (dy, dx) in enumerate(offsets):
        taps[k, 0, radius + dy, radius + dx] = 1.0
    return taps


def difference_taps(offsets: Sequence[Offset], channels: int = 1) -> Tensor:
    """Return the kernel of `PairwiseDifference`: (channels * N, channels, window, window)."""
    far = end_taps(offsets)
    one = _centre(far) - far
    taps = one.new_zeros((channels, len(offsets), channels, *one.shape[2:]))
    for channel in range(channels):
        taps[channel, :, channel] = one[:, 0]
    return taps.flatten(0, 1)


def slope_taps(offsets: Sequence[Offset]) -> Tensor:
    """Return the kernel of `PairwiseSlope`: (N, 3, window, window)."""
    far = end_taps(offsets)
    both = _centre(far) + far
    d_y, d_x = far.new_tensor(offsets).T.reshape(2, -1, 1, 1, 1)
    return torch.cat([_centre(far) - far, both * d_y / 2, both * d_x / 2], dim=1)


def _centre(taps: Tensor) -> Tensor:
    middle = torch.zeros_like(taps)
    middle[..., taps.shape[-1] // 2, taps.shape[-1] // 2] = 1.0
    return middle


class ConvolvedPairs(PairOperators):
    """The pairwise operators as convolutions, for images of any size.

    Args:
        ends: kernel of the far ends, see `end_taps`.
        differences: kernels of the differences of one and of two channels.
        slopes: kernel of the departures from planes.
        image: (B, C, H, W) of the size of those that the operators will read.
    """

    def __init__(
        self, ends: Tensor, differences: tuple[Tensor, Tensor], slopes: Tensor, image: Tensor
    ) -> None:
        mask = conv2d(torch.ones_like(image[:1, :1]), ends, padding=ends.shape[-1] // 2)
        masks = mask, mask.repeat(1, 2, 1, 1)
        self._differences = [MaskedConvolution(*each) for each in zip(differences, masks, strict=True)]
        self._slope = MaskedConvolution(slopes, mask)

    def difference(self, channels: int = 1) -> LinearOperator:
        """Return `PairwiseDifference` for any size; of one or two channels."""
        return self._differences[channels - 1]

    def slope(self) -> LinearOperator:
        """Return a convolution that equals the operator `PairwiseSlope` for images of any size."""
        return self._slope


class TraceableSolver(PrimalDualNet):
    """`PrimalDualNet` for tracing: coefficients are constants, and nothing depends on the image's size.

    Samples have to come by an operator whose norm is 1.
    """

    is_fused = False

    def __init__(self, pdn: PrimalDualNet) -> None:
        super().__init__(len(pdn.log_coefficients), pdn.window, pdn.name, samples=pdn.samples)
        self.load_state_dict(pdn.state_dict())
        self.numbers = pdn.coefficients.tolist()
        self.second_order = torch.as_tensor(pdn.alphas).tolist()
        self.ends, self.once, self.twice, self.slopes = (
            nn.Buffer(taps.to(pdn.log_coefficients))
            for taps in (
                end_taps(pdn.offsets),
                difference_taps(pdn.offsets),
                difference_taps(pdn.offsets, channels=2),
                slope_taps(pdn.offsets),
            )
        )

    @property
    def alphas(self) -> list[float]:
        """The weights of the second order as numbers."""
        return self.second_order

    def pairs(self, image: Tensor) -> ConvolvedPairs:
        """Return the maker of pairwise operators as convolutions."""
        return ConvolvedPairs(self.ends, (self.once, self.twice), self.slopes, image)

    def rows(self, samples: SampleTerm | None) -> list[list[float]]:
        """Return the coefficients of each iteration as plain numbers, which tracing keeps as constants."""
        return self.numbers


class TraceableNet(nn.Module):
    """`DepthNet` as a function of images to images: what an exporter sees.

    Args:
        net: its primal-dual part is replaced by one that can be traced.
    """

    def __init__(self, net: DepthNet) -> None:
        super().__init__()
        self.net = net
        if net.pdn is not None:
            net.pdn = TraceableSolver(net.pdn)

    def forward(self, *maps: Tensor) -> tuple[Tensor, ...]:
        """Return the result of `DepthNet.forward` and, where the network gives one, its uncertainty.

        Args:
            maps: depth, sigma, trust and guide; for networks of any scale also the ratio; with the sample
                term then the matrices of the sampling operator, (h, H) and (w, W), and the samples, their
                noise and the trust in them, (1, 1, h, w).
        """
        (trust, guide), measured = maps[2:4], maps[5:]
        features = self.net.features(*maps[:5])
        samples = SensorSamples(MixedResample.given(*measured[:2]), *measured[2:]) if measured else None
        found = Estimate(self.net.solve(features, trust, guide, samples), features)
        return (found.depth,) if found.sigma is None else (found.depth, found.sigma)
