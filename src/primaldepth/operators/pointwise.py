"""Operators that act on each pixel by itself."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.operators.base import LinearOperator, Shape


class Mask(LinearOperator):
    """u -> m u with m in [0, 1] of shape (B or 1, C, H, W); self-adjoint, ||m|| <= 1.

    Example:
        >>> import torch
        >>> from primaldepth.operators import Mask
        >>> M = Mask(torch.tensor([[[[1.0, 0.0]]]]))
        >>> M.forward(torch.tensor([[[[3.0, 4.0]]]])).flatten().tolist()
        [3.0, 0.0]
    """

    norm_bound = 1.0

    def __init__(self, mask: Tensor) -> None:
        channels, height, width = mask.shape[1:]
        self.mask = mask
        self.in_shape = self.out_shape = (channels, height, width)

    def forward(self, u: Tensor) -> Tensor:
        """Return m u."""
        return u * self.mask.to(u.dtype)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return m p."""
        return self.forward(p)

    def magnitude(self) -> LinearOperator:
        """Return itself: the mask is not negative."""
        return self


class EdgeTensor(LinearOperator):
    """z -> T z with one symmetric 2x2 matrix per pixel; self-adjoint.

    Args:
        tensor: (B or 1, 3, H, W) the entries (T_yy, T_yx, T_xx), eigenvalues in [0, 1].
    """

    norm_bound = 1.0

    def __init__(self, tensor: Tensor) -> None:
        if tensor.ndim != 4 or tensor.shape[1] != 3:
            raise ValueError(f"tensor: shape {tuple(tensor.shape)}, expected (B, 3, H, W)")
        self.tensor = tensor
        self.in_shape = self.out_shape = (2, tensor.shape[2], tensor.shape[3])

    def forward(self, u: Tensor) -> Tensor:
        """Return T z, pixel by pixel."""
        T_yy, T_yx, T_xx = self.tensor.unbind(1)
        z_y, z_x = u.unbind(1)
        return torch.stack([T_yy * z_y + T_yx * z_x, T_yx * z_y + T_xx * z_x], dim=1)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return T p: T is symmetric."""
        return self.forward(p)

    def magnitude(self) -> LinearOperator:
        """Return |T|, entry by entry."""
        return _AbsoluteTensor(self.tensor.abs())


class _AbsoluteTensor(EdgeTensor):
    """A tensor of absolute values: its norm may exceed 1, at most 2 (row sums)."""

    norm_bound = 2.0


class SelectChannels(LinearOperator):
    """u -> u[first:last] along the channels, such as the depth; the adjoint writes zeros elsewhere."""

    norm_bound = 1.0
    is_selection = True

    def __init__(self, in_shape: Shape, first: int, last: int) -> None:
        if not 0 <= first < last <= in_shape[0]:
            raise ValueError(f"channels {first}:{last} of {in_shape[0]}")
        self.first, self.last = first, last
        self.in_shape = in_shape
        self.out_shape = (last - first, *in_shape[1:])

    def forward(self, u: Tensor) -> Tensor:
        """Return the chosen channels."""
        return u[:, self.first : self.last]

    def adjoint(self, p: Tensor) -> Tensor:
        """Return the chosen channels put back among zeros."""
        return pad(p, (0, 0, 0, 0, self.first, self.in_shape[0] - self.last))

    def magnitude(self) -> LinearOperator:
        """Return itself: all coefficients are 0 or 1."""
        return self
