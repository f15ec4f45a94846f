"""A backbone on several scales: space to depth, residual blocks on each scale, depth to space."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, pixel_shuffle, pixel_unshuffle

from primaldepth.networks.fcn import conv_parameters
from primaldepth.networks.fused import aligned_input, conv_relu

FIRST = 2  # pixels per side that become channels before the first convolution


class ResidualBlock(nn.Module):
    """relu(x + conv(relu(conv(x)))); starts as the identity on what is not negative."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(maps, maps, 3, padding=1)
        self.second = nn.Conv2d(maps, maps, 3, padding=1)
        nn.init.kaiming_normal_(self.first.weight, nonlinearity="relu")
        nn.init.zeros_(self.second.weight)
        for layer in (self.first, self.second):
            nn.init.zeros_(layer.bias) if layer.bias is not None else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's result.

        Args:
            x: (B, maps, H, W).

        Returns:
            (B, maps, H, W).
        """
        return conv_relu(self.second, conv_relu(self.first, x), x)


class UNet(nn.Module):
    """Level k works on 1 / 2^(k + 1) of the resolution with `widths[k]` maps; skips are added.

    The last layer starts at zero: an untrained network gives zero maps.

    Args:
        inputs: channels of the input.
        outputs: channels of the output.
        widths: feature maps of each level, fine to coarse.
        blocks: residual blocks of each level, on the way down and again on the way up.
    """

    def __init__(self, inputs: int, outputs: int, widths: Sequence[int], blocks: Sequence[int]) -> None:
        super().__init__()
        if not widths or len(widths) != len(blocks):
            raise ValueError(f"widths = {widths} and blocks = {blocks}, expected one of each per level")
        self.stride = FIRST * 2 ** (len(widths) - 1)
        self.radius = _reach(blocks)
        self.enter = nn.Conv2d(inputs * FIRST**2, widths[0], 3, padding=1)
        self.fine = nn.ModuleList(_blocks(*level) for level in zip(widths[:-1], blocks[:-1], strict=True))
        self.down = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in itertools.pairwise(widths))
        self.middle = _blocks(widths[-1], 2 * blocks[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in itertools.pairwise(widths))
        self.merged = nn.ModuleList(_blocks(*level) for level in zip(widths[:-1], blocks[:-1], strict=True))
        self.leave = nn.Conv2d(widths[0], outputs * FIRST**2, 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        if self.leave.bias is not None:
            nn.init.zeros_(self.leave.bias)

    @staticmethod
    def parameters_of(inputs: int, outputs: int, widths: Sequence[int], blocks: Sequence[int]) -> int:
        """Return the number of parameters of a network that is not built yet.

        Args:
            inputs: channels of the input.
            outputs: channels of the output.
            widths: feature maps of each level.
            blocks: residual blocks of each level.
        """
        ends = conv_parameters(inputs * FIRST**2, widths[0]) + conv_parameters(widths[0], outputs * FIRST**2)
        steps = sum(
            conv_parameters(a, b, 2) + conv_parameters(b, a, 2) for a, b in itertools.pairwise(widths)
        )
        levels = zip(widths, blocks, strict=True)
        return ends + steps + sum(4 * count * conv_parameters(width, width) for width, count in levels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps; the border is repeated up to a multiple of the stride.

        Args:
            x: (B, inputs, H, W).

        Returns:
            (B, outputs, H, W).
        """
        height, width = x.shape[2], x.shape[3]
        n = self.stride
        right, below = ((side + n - 1) // n * n - side for side in (width, height))  # not -side % n: for ONNX
        x = pad(x, (0, right, 0, below), mode="replicate")
        x = pixel_unshuffle(x, FIRST)
        x = conv_relu(self.enter, aligned_input(x)) if x.is_cuda else self._entered(x)
        skips = []
        for blocks, down in zip(self.fine, self.down, strict=True):
            skips.append(blocks(x))
            x = down(skips[-1])
        x = self.middle(x)
        for k in reversed(range(len(skips))):
            x = self.merged[k](skips[k] + self.up[k](x))
        found = pixel_shuffle(self.leave(x), FIRST)
        return found[:, :, :height, :width]

    def _entered(self, x: Tensor) -> Tensor:
        """Return the result of the first layer on a CPU, in float32 also under autocast.

        In bfloat16 depth has eight bits, and what is lost of it here no later layer can restore.
        """
        if not torch.is_autocast_enabled("cpu"):
            return conv_relu(self.enter, x)
        with torch.autocast("cpu", enabled=False):
            return conv_relu(self.enter, x.float()).to(torch.get_autocast_dtype("cpu"))


def _blocks(maps: int, count: int) -> nn.Sequential:
    return nn.Sequential(*(ResidualBlock(maps) for _ in range(count)))


def _reach(blocks: Sequence[int]) -> int:
    """Return how many pixels around it a pixel depends on: per level one per 3x3 layer, and for resizing."""
    return 2 * FIRST + sum((4 * count + 1) * (FIRST << level) for level, count in enumerate(blocks))
