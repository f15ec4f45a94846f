"""Forward differences with Neumann boundary, and what second-order models need of them."""

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.operators.base import LinearOperator


def difference(u: Tensor, dim: int, sign: float = -1.0) -> Tensor:
    """Return u(x + 1) + sign * u(x) along `dim`; 0 in the last row or column.

    Args:
        u: (..., H, W).
        dim: -2 for rows, -1 for columns.
        sign: -1 for differences, 1 for sums.
    """
    n = u.shape[dim] - 1
    inner = u.narrow(dim, 1, n) + sign * u.narrow(dim, 0, n)
    return pad(inner, (0, 0, 0, 1) if dim == -2 else (0, 1))


def difference_adjoint(p: Tensor, dim: int, sign: float = -1.0) -> Tensor:
    """Return the adjoint of `difference`: p(x - 1) + sign * p(x), the last p ignored."""
    inner = p.narrow(dim, 0, p.shape[dim] - 1)
    before = (0, 0, 1, 0) if dim == -2 else (1, 0)
    after = (0, 0, 0, 1) if dim == -2 else (0, 1)
    return pad(inner, before) + sign * pad(inner, after)


class Differences(LinearOperator):
    """What the operators of this file share: an image's size, and a sign that makes sums of differences.

    Args:
        size: (H, W) of the image.
        sign: -1 for differences, 1 for sums.
    """

    inputs: ClassVar[int]
    outputs: ClassVar[int]

    def __init__(self, size: tuple[int, int], sign: float = -1.0) -> None:
        self.in_shape, self.out_shape, self.sign = (self.inputs, *size), (self.outputs, *size), sign

    def magnitude(self) -> LinearOperator:
        """Return the operator with sums in place of differences."""
        return type(self)((self.in_shape[1], self.in_shape[2]), 1.0)


class ForwardDifference(Differences):
    """grad u = (d_y u, d_x u): (1, H, W) -> (2, H, W), ||grad||^2 <= 8.

    Example:
        >>> import torch
        >>> from primaldepth.operators import ForwardDifference
        >>> grad = ForwardDifference((1, 3))
        >>> grad.forward(torch.tensor([[[[1.0, 2.0, 4.0]]]]))[0, 1].tolist()  # along x
        [[1.0, 2.0, 0.0]]
    """

    inputs, outputs = 1, 2
    norm_bound = math.sqrt(8.0)

    def forward(self, u: Tensor) -> Tensor:
        """Return (d_y u, d_x u)."""
        return torch.cat([difference(u, -2, self.sign), difference(u, -1, self.sign)], dim=1)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return -div p."""
        return difference_adjoint(p[:, :1], -2, self.sign) + difference_adjoint(p[:, 1:], -1, self.sign)


class SymmetrizedGradient(Differences):
    """E v = (d_y v_y, d_x v_x, (d_x v_y + d_y v_x) / sqrt 2): (2, H, W) -> (3, H, W).

    The last channel carries both off-diagonal entries, so that the Euclidean norm over
    channels is the Frobenius norm of the symmetric 2x2 matrix. ||E||^2 <= 8.
    """

    inputs, outputs = 2, 3
    norm_bound = math.sqrt(8.0)

    def forward(self, u: Tensor) -> Tensor:
        """Return the three distinct entries of the symmetrised Jacobian."""
        v_y, v_x = u[:, :1], u[:, 1:]
        mixed = (difference(v_y, -1, self.sign) + difference(v_x, -2, self.sign)) / math.sqrt(2.0)
        return torch.cat([difference(v_y, -2, self.sign), difference(v_x, -1, self.sign), mixed], dim=1)

    def adjoint(self, p: Tensor) -> Tensor:
        """Return -div of the symmetric matrix field."""
        mixed = p[:, 2:] / math.sqrt(2.0)
        v_y = difference_adjoint(p[:, :1], -2, self.sign) + difference_adjoint(mixed, -1, self.sign)
        v_x = difference_adjoint(p[:, 1:2], -1, self.sign) + difference_adjoint(mixed, -2, self.sign)
        return torch.cat([v_y, v_x], dim=1)


def _inside(v: Tensor) -> Tensor:
    """Return v without its last row in y and its last column in x, where no difference exists."""
    return torch.cat([pad(v[:, :1, :-1], (0, 0, 0, 1)), pad(v[:, 1:, :, :-1], (0, 1))], dim=1)


class GradientMinusField(Differences):
    """(u, v) -> grad u - v: (3, H, W) -> (2, H, W), the coupling of TGV; ||.||^2 <= 8 + 1."""

    inputs, outputs = 3, 2
    norm_bound = 3.0

    def __init__(self, size: tuple[int, int], sign: float = -1.0) -> None:
        super().__init__(size, sign)
        self.gradient = ForwardDifference(size, sign)

    def forward(self, u: Tensor) -> Tensor:
        """Return grad u - v."""
        return self.gradient.forward(u[:, :1]) + self.sign * _inside(u[:, 1:])

    def adjoint(self, p: Tensor) -> Tensor:
        """Return (grad' p, -p)."""
        return torch.cat([self.gradient.adjoint(p), self.sign * _inside(p)], dim=1)
