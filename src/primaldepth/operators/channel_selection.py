"""Pick channels of the primal variable, e.g. the depth out of (u, v_y, v_x)."""

from torch import Tensor
from torch.nn.functional import pad

from primaldepth.operators.base import LinearOperator, Shape


class SelectChannels(LinearOperator):
    """u -> u[first:last] along the channels; the adjoint writes zeros elsewhere."""

    norm_bound = 1.0
    is_selection = True

    def __init__(self, in_shape: Shape, first: int, last: int) -> None:
        if not 0 <= first < last <= in_shape[0]:
            raise ValueError(f"channels {first}:{last} of {in_shape[0]}")
        self.first, self.last = first, last
        self.in_shape = in_shape
        self.out_shape = (last - first, *in_shape[1:])

    def forward(self, u: Tensor) -> Tensor:
        """The chosen channels."""
        return u[:, self.first : self.last]

    def adjoint(self, p: Tensor) -> Tensor:
        """The chosen channels put back among zeros."""
        return pad(p, (0, 0, 0, 0, self.first, self.in_shape[0] - self.last))

    def magnitude(self) -> LinearOperator:
        """Itself: all coefficients are 0 or 1."""
        return self
