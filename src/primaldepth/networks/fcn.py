"""The fully convolutional network: a residual on the interpolated depth, and affinities of pixel pairs."""

import itertools

from torch import Tensor, nn
from torch.nn.functional import conv2d

from primaldepth.networks.fused import aligned, aligned_input, conv_relu

START_AFFINITY = 0.01


def conv_parameters(inputs: int, outputs: int, side: int = 3) -> int:
    """Return the number of weights and biases of a convolution with side x side taps.

    Args:
        inputs: channels.
        outputs: channels.
        side: of the kernel.
    """
    return outputs * (inputs * side**2 + 1)


class FCN(nn.Module):
    """3x3 convolutions with ReLU between them; padded, so that the output has the size of the input.

    The last layer starts at zero: an untrained network returns the interpolated depth and equal
    affinities. These are a little above 0, where |a| has no slope and they would stay for ever.

    Args:
        inputs: channels of the input.
        pairs: affinity maps, one per pair of the half window; 0 for none.
        layers: convolutions in all (the paper: 10, receptive field 21x21).
        maps: feature maps of each.
    """

    stride = 1

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

    @staticmethod
    def parameters_of(inputs: int, pairs: int, layers: int, maps: int) -> int:
        """Return the number of parameters of a network that is not built yet.

        Args:
            inputs: channels of the input.
            pairs: affinity maps.
            layers: convolutions.
            maps: feature maps of each.
        """
        inner = (layers - 2) * conv_parameters(maps, maps)
        return conv_parameters(inputs, maps) + inner + conv_parameters(maps, 1 + pairs)

    def _initialise(self) -> None:
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias) if layer.bias is not None else None
        nn.init.zeros_(self.head.weight)
        if self.head.bias is not None:
            nn.init.constant_(self.head.bias, START_AFFINITY)
            nn.init.zeros_(self.head.bias[:1])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual and the affinities.

        Args:
            x: (B, inputs, H, W).

        Returns:
            (B, 1, H, W) and (B, pairs, H, W).
        """
        out = self._fused(x) if x.is_cuda else self.head(self.features(x))
        return out[:, :1], out[:, 1 : self.head.out_channels]

    def _fused(self, x: Tensor) -> Tensor:
        x = aligned_input(x)
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                x = conv_relu(layer, x)
        return conv2d(x, *aligned(self.head, x.dtype), padding=1)
