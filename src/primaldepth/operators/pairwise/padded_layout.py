"""Where the Triton kernels keep images and pairwise maps, and how these get there and back."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import triton
from torch import Tensor

from primaldepth.operators.pairwise import triton_kernels as kernels


class Tile(NamedTuple):
    """Pixels that a program owns, down and across, and the warps that work on them."""

    y: int
    x: int
    warps: int


def _up(value: int, step: int) -> int:
    """Return the next multiple of `step`."""
    return step * -(-value // step)


@dataclass(frozen=True, slots=True)
class PaddedLayout:
    """Images (B, rows, 1, pitch) and pairwise maps (B, rows, N, pitch) with a margin.

    Whatever a tile reads lies in memory, so no kernel needs a mask, and what it reads of the N maps
    lies close together, which the memory rewards.
    Rows are `pitch` apart; radius + 1 rows lie above whole tiles and radius rows below, and the
    columns to the right of a row are also the margin to the left of the next.
    """

    FORWARD: ClassVar[Tile] = Tile(1, 64, 1)
    BACKWARD: ClassVar[Tile] = Tile(1, 64, 1)
    IMAGES: ClassVar[Tile] = Tile(4, 64, 2)
    ENTER: ClassVar[Tile] = Tile(4, 256, 4)

    images: int
    pairs: int
    height: int
    width: int

    @classmethod
    def of(cls, pairwise: Tensor) -> "PaddedLayout":
        """Return the layout for maps (B, N, H, W).

        Args:
            pairwise: for its shape.
        """
        images, pairs, height, width = pairwise.shape
        return cls(images, pairs, height, width)

    @property
    def radius(self) -> int:
        """Radius r of the half window with that many pairs: 2 r (r + 1) = pairs."""
        radius = round((1 + 2 * self.pairs) ** 0.5 - 1) // 2 or 1
        if 2 * radius * (radius + 1) != self.pairs:
            raise ValueError(f"{self.pairs} pairs are not a half window")
        return radius

    def programs(self, tile: Tile) -> int:
        """Return the number of programs of `grid`.

        Args:
            tile: of one program.
        """
        across, down, images = self.grid(tile)
        return across * down * images

    def constants(self, tile: Tile) -> dict[str, int]:
        """Return what the kernels of the iterations are compiled for.

        Args:
            tile: of one program.
        """
        return {
            "RADIUS": self.radius, "PAIRS": self.pairs, "BY": tile.y, "BX": tile.x, "num_warps": tile.warps
        }  # fmt: skip

    def grid(self, tile: Tile) -> tuple[int, int, int]:
        """Return the programs across, down and images: one per tile and image.

        Args:
            tile: of one program.
        """
        return triton.cdiv(self.width, tile.x), triton.cdiv(self.height, tile.y), self.images

    @property
    def rows(self) -> int:
        """Rows of a padded plane: whole tiles of every kernel, and the margin."""
        return max(_up(self.height, tile.y) for tile in self._tiles) + 2 * self.radius + 1

    @property
    def pitch(self) -> int:
        """Columns of a padded plane; a multiple of 16, so that rows start at aligned addresses."""
        return _up(max(_up(self.width, tile.x) for tile in self._tiles) + self.radius, 16)

    @property
    def _tiles(self) -> tuple[Tile, ...]:
        """Tiles of the kernels that read or write beyond the frame."""
        return self.FORWARD, self.BACKWARD, self.IMAGES

    @property
    def area(self) -> int:
        """Elements of a padded plane."""
        return self.rows * self.pitch

    def zeros(self, like: Tensor, planes: int = 1) -> Tensor:
        """Return padded planes of zeros.

        Args:
            like: for its type and device.
            planes: 1 for images, the number of pairs for pairwise maps.
        """
        return like.new_zeros((self.images, self.rows, planes, self.pitch))

    def enter(self, maps: Tensor, storage: torch.dtype | None = None) -> Tensor:
        """Return a padded copy; pairs that leave the frame become zero.

        Args:
            maps: (B, 1, H, W) or (B, N, H, W).
            storage: type of the copy; None: that of the maps.
        """
        planes = maps.shape[1]
        out = maps.new_empty((self.images, self.rows, planes, self.pitch), dtype=storage or maps.dtype)
        tile = self.ENTER
        grid = triton.cdiv(self.pitch, tile.x), triton.cdiv(self.rows, tile.y), self.images * planes
        kernels.enter_kernel[grid](
            maps, out, self.height, self.width, self.pitch, self.area, *maps.stride(),
            PAIRS=planes, RADIUS=self.radius, PAIRWISE=int(planes > 1), BY=tile.y, BX=tile.x,
        )  # fmt: skip
        return out

    def support(self, affinities: Tensor, scales: Tensor, storage: torch.dtype | None = None) -> Tensor:
        """Return padded w = exp(-|d_k| / scales[0] - |a| / scales[1]), 0 for pairs that leave the frame.

        Args:
            affinities: (B, N, H, W) a.
            scales: (2,).
            storage: type of the weights; None: float32.
        """
        size = (self.images, self.rows, self.pairs, self.pitch)
        out = affinities.new_empty(size, dtype=storage or torch.float32)
        lanes, run = self._runs
        kernels.support_kernel[triton.cdiv(self.pitch, run), self.rows, self.images](
            affinities, out, scales, self.height, self.width, self.pitch, self.area, *affinities.stride(),
            PAIRS=self.pairs, LANES=lanes, RADIUS=self.radius, BX=run,
        )  # fmt: skip
        return out

    def support_gradients(
        self, affinities: Tensor, scales: Tensor, w: Tensor, grad_w: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients of affinities and scales from that of their padded weights w.

        Args:
            affinities: (B, N, H, W).
            scales: (2,).
            w: padded weights, as `support` made them.
            grad_w: padded gradient of w.
        """
        grad, (lanes, run) = torch.empty_like(affinities), self._runs
        grid = triton.cdiv(self.width, run), self.height, self.images
        partial = w.new_empty((grid[0] * grid[1] * grid[2], 2), dtype=torch.float32)
        kernels.support_backward_kernel[grid](
            affinities, w, grad_w, scales, grad, partial, self.height, self.width, self.pitch, self.area,
            *affinities.stride(), *grad.stride(),
            PAIRS=self.pairs, LANES=lanes, RADIUS=self.radius, BX=run,
        )  # fmt: skip
        return grad, partial.sum(0)

    @property
    def _runs(self) -> tuple[int, int]:
        """Pairs and columns that a program of the support kernels has at once."""
        lanes = triton.next_power_of_2(self.pairs)
        return lanes, max(16, 4096 // lanes)

    def leave(self, padded: Tensor) -> Tensor:
        """Return the frame's part of padded planes, as a view.

        Args:
            padded: one plane or one per pair.
        """
        top = self.radius + 1
        return padded[:, top : top + self.height, :, : self.width].transpose(1, 2)
