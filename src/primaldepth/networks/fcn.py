"""The fully convolutional network: a residual on the interpolated depth, and affinities of pixel pairs."""

import itertools

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

ALIGNED = 8  # channels: tensor cores read whole groups of them


class FCN(nn.Module):
    """3x3 convolutions with ReLU between them; padded, so that the output has the size of the input.

    The last layer starts at zero: an untrained network returns the interpolated depth and equal
    affinities.

    Args:
        inputs: channels of the input.
        pairs: affinity maps, one per pair of the half window; 0 for none.
        layers: convolutions in all (the paper: 10, receptive field 21x21).
        maps: feature maps of each.
    """

    def __init__(self, inputs: int, pairs: int, layers: int = 10, maps: int = 64) -> None:
        super().__init__()
        if layers < 2:
            raise ValueError(f"layers = {layers}, expected at least 2")
        self.radius = layers
        widths = [inputs, *[maps] * (layers - 1)]
        blocks: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            blocks += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*blocks)
        self.head = nn.Conv2d(maps, 1 + pairs, 3, padding=1)
        self._initialise()

    def _initialise(self) -> None:
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias) if layer.bias is not None else None
        nn.init.zeros_(self.head.weight)
        if self.head.bias is not None:
            nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, inputs, H, W) -> residual (B, 1, H, W) and affinities (B, pairs, H, W)."""
        out = self._fused(x) if x.is_cuda and not torch.is_grad_enabled() else self.head(self.features(x))
        return out[:, :1], out[:, 1 : self.head.out_channels]

    def _fused(self, x: Tensor) -> Tensor:
        """Convolution, bias and ReLU in one call each: activations cross memory once, not three times."""
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
        layers = [layer for layer in self.features if isinstance(layer, nn.Conv2d)]
        x = pad(x.to(dtype), (0, 0, 0, 0, 0, -x.shape[1] % ALIGNED)).to(memory_format=torch.channels_last)
        for layer in layers:
            weight, bias = _aligned(layer, dtype)
            x = torch.cudnn_convolution_relu(x, weight, bias, (1, 1), (1, 1), (1, 1), 1)
        return conv2d(x, *_aligned(self.head, dtype), padding=1)


def _aligned(layer: nn.Conv2d, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Weight and bias with zero channels added up to a multiple of ALIGNED."""
    outputs, inputs = (-n % ALIGNED for n in (layer.out_channels, layer.in_channels))
    weight = pad(layer.weight.to(dtype), (0, 0, 0, 0, 0, inputs, 0, outputs))
    bias = layer.weight.new_zeros(layer.out_channels) if layer.bias is None else layer.bias
    return weight.contiguous(memory_format=torch.channels_last), pad(bias.to(dtype), (0, outputs))
