"""Values of an image at scattered points, by bilinear interpolation."""

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator


class PointSamples(LinearOperator):
    """(A u)_i = u(x_i), interpolated bilinearly: (1, H, W) -> (1, 1, N), or per image of a batch.

    The four weights of a sample are not negative and sum to one. So the rows of A have absolute sum 1,
    and ||A||^2 is at most the largest column sum: the largest total weight that one pixel has in all samples.

    Args:
        size: (H, W) of the image.
        points: (N, 2) or (B, N, 2) rows and columns (y, x) of the samples; pixel (0, 0) has its centre at
            (0, 0). Points beyond the outermost pixel centres take the value of the border.
    """

    def __init__(self, size: tuple[int, int], points: Tensor) -> None:
        if points.ndim not in (2, 3) or points.shape[-1] != 2 or not points.is_floating_point():
            raise ValueError(
                f"points: {points.dtype} {tuple(points.shape)}, expected floats (N, 2) or (B, N, 2)"
            )
        self.size = size
        self.in_shape, self.out_shape = (1, *size), (1, 1, int(points.shape[-2]))
        self.index, self.weight = _corners(size, points if points.ndim == 3 else points[None])
        self._bound: float | None = None

    def forward(self, u: Tensor) -> Tensor:
        """Return the weighted sum over the four pixels around each point: (B, 1, H, W) -> (B, 1, 1, N)."""
        flat = u.flatten(1)
        index = self.index.expand(len(flat), -1, -1)
        values = flat.gather(1, index.flatten(1)).view_as(index)
        return (values * self.weight.to(u.dtype)).sum(1)[:, None, None]

    def adjoint(self, p: Tensor) -> Tensor:
        """Share every sample out to its four pixels: (B, 1, 1, N) -> (B, 1, H, W)."""
        shares = p[:, 0] * self.weight.to(p.dtype)
        flat = p.new_zeros((len(p), self.size[0] * self.size[1]))
        flat = flat.scatter_add(1, self.index.expand(len(p), -1, -1).flatten(1), shares.flatten(1))
        return flat.view(-1, *self.in_shape)

    @property
    def norm_bound(self) -> float:
        """Return the root of the largest column sum."""
        if self._bound is None:
            one = self.weight.new_ones((len(self.index), *self.out_shape))
            self._bound = float(self.adjoint(one).max().sqrt()) if self.out_shape[2] else 0.0
        return self._bound

    def averaging(self) -> "PointSamples":
        """Return itself: the weights of a sample sum to one."""
        return self

    def magnitude(self) -> LinearOperator:
        """Return itself: no weight is negative."""
        return self


def _corners(size: tuple[int, int], points: Tensor) -> tuple[Tensor, Tensor]:
    """Return flat pixel numbers and weights of the four pixels around each point, both (B, 4, N)."""
    height, width = size
    last = points.new_tensor([height - 1, width - 1])
    place = torch.minimum(points.clamp_min(0.0), last)
    first = torch.minimum(place.floor(), (last - 1).clamp_min(0.0))
    share = place - first
    y, x = first.long().unbind(-1)
    below, right = (y + 1).clamp(max=height - 1), (x + 1).clamp(max=width - 1)
    index = torch.stack([y * width + x, y * width + right, below * width + x, below * width + right], 1)
    b, a = share.unbind(-1)
    weight = torch.stack([(1 - b) * (1 - a), (1 - b) * a, b * (1 - a), b * a], 1)
    return index, weight
