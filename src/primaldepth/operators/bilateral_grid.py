"""The bilateral grid: pixels gathered into cells of position and colour (Barron and Poole 2016)."""

import torch
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)  # BT.601
BLUE, RED = 1.772, 1.402  # spans of B - Y and R - Y, so that chroma covers [-1/2, 1/2]


def luma_chroma(guide: Tensor) -> Tensor:
    """Return luma in [0, 1] and two chromas in [-1/2, 1/2], 0 for a grey guide: (C, H, W) -> (3, H, W)."""
    if guide.shape[0] == 1:
        return torch.cat([guide, torch.zeros_like(guide), torch.zeros_like(guide)])
    red, green, blue = guide
    luma = LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue
    return torch.stack([luma, (blue - luma) / BLUE, (red - luma) / RED])


def cells(guide: Tensor, position: float, luma: float, chroma: float, shift: float = 0.0) -> Tensor:
    """Return the cell of each pixel in y, x, luma and two chromas.

    Args:
        guide: (C, H, W) in [0, 1].
        position: side of a cell in pixels.
        luma: side of a cell in the guide's unit.
        chroma: side of a cell in the guide's unit.
        shift: of the grid's origin, in cells.

    Returns:
        (5, H, W) integers.
    """
    height, width = int(guide.shape[1]), int(guide.shape[2])
    y = torch.arange(height, dtype=guide.dtype, device=guide.device).view(-1, 1).expand(height, width)
    x = torch.arange(width, dtype=guide.dtype, device=guide.device).expand(height, width)
    colour = luma_chroma(guide)
    place = torch.stack([(y + 0.5) / position, (x + 0.5) / position])
    return torch.floor(torch.cat([place, colour[:1] / luma, colour[1:] / chroma]) + shift).long()


class BilateralGrid:
    """The occupied cells of one image as vertices of a graph; cells that touch along one axis are neighbours.

    `splat` sums the pixels of each vertex and `slice` gives every pixel its vertex' value, so
    each is the adjoint of the other: <splat(a), v> = <a, slice(v)>. Sums run in a fixed order on every
    device.

    Args:
        cell: (D, H, W) integer coordinates, see `cells`.
    """

    def __init__(self, cell: Tensor) -> None:
        self.size = (int(cell.shape[1]), int(cell.shape[2]))
        coordinates = cell.flatten(1)
        coordinates = coordinates - coordinates.amin(dim=1, keepdim=True) + 1  # room for the neighbours
        strides, stride = [], 1
        for extent in (coordinates.amax(dim=1) + 2).tolist():
            strides.append(stride)
            stride *= int(extent)
        code = (coordinates * coordinates.new_tensor(strides).view(-1, 1)).sum(dim=0)
        codes, self.vertex, self.counts = torch.unique(code, return_inverse=True, return_counts=True)
        self.order = torch.argsort(self.vertex, stable=True)
        self.vertices = int(codes.numel())
        self.neighbours = [_find(codes, codes + step * stride) for stride in strides for step in (-1, 1)]

    def splat(self, image: Tensor) -> Tensor:
        """Return the sums of the pixels of each vertex.

        Args:
            image: (1, 1, H, W).

        Returns:
            (V,).
        """
        return torch.segment_reduce(image.flatten()[self.order], "sum", lengths=self.counts, unsafe=True)

    def slice(self, values: Tensor) -> Tensor:
        """Return to each pixel the value of its vertex.

        Args:
            values: (V,).

        Returns:
            (1, 1, H, W).
        """
        return values[self.vertex].view(1, 1, *self.size)

    def blur(self, values: Tensor) -> Tensor:
        """Return B v = sum over axes of (1, 2, 1); cells without pixels count 0, and B is symmetric.

        Args:
            values: (V,).

        Returns:
            (V,).
        """
        padded = torch.cat([values, values.new_zeros(1)])
        out = float(len(self.neighbours)) * values
        for index in self.neighbours:
            out = out + padded[index]
        return out

    @property
    def blur_diagonal(self) -> float:
        """Diagonal of B: the share of a value that stays at its own vertex, 2 per axis."""
        return float(len(self.neighbours))

    def bistochastic(self, mass: Tensor, iterations: int = 20) -> tuple[Tensor, Tensor]:
        """Find (n, m) with n B n = m row by row, and m close to the pixels of each vertex.

        n = sqrt(n mass / (B n)) is repeated; m = n (B n) then makes the rows match exactly.

        Args:
            mass: (V,) pixels of each vertex, `splat` of ones.
            iterations: repetitions of the first step.

        Returns:
            n and m, (V,) each.
        """
        n = torch.ones_like(mass)
        for _ in range(iterations):
            n = torch.sqrt(n * mass / self.blur(n))
        return n, n * self.blur(n)


def _find(codes: Tensor, wanted: Tensor) -> Tensor:
    """Return the index of each wanted code in the sorted `codes`, or their number where it is missing."""
    index = torch.searchsorted(codes, wanted).clamp_max(codes.numel() - 1)
    return torch.where(codes[index] == wanted, index, codes.numel())
