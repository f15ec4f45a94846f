"""The contract of a linear operator, composition, and the test of an adjoint."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

Shape = tuple[int, int, int]
Parts = tuple[type["LinearOperator"], ...]


class LinearOperator(ABC):
    """K: (B, *in_shape) -> (B, *out_shape), linear, with its exact adjoint.

    Conditions every member keeps: <K u, p> = <u, K' p>, and ||K|| <= norm_bound.
    """

    in_shape: Shape
    out_shape: Shape
    is_selection = False  # whether every row has a single coefficient, 1

    @abstractmethod
    def forward(self, u: Tensor) -> Tensor:
        """Return K u.

        Args:
            u: (B, *in_shape).

        Returns:
            (B, *out_shape).
        """

    @abstractmethod
    def adjoint(self, p: Tensor) -> Tensor:
        """Return K' p.

        Args:
            p: (B, *out_shape).

        Returns:
            (B, *in_shape).
        """

    @property
    @abstractmethod
    def norm_bound(self) -> float:
        """Return an upper bound of the spectral norm of K."""

    @abstractmethod
    def magnitude(self) -> "LinearOperator":
        """Return the operator with every coefficient replaced by (a bound of) its absolute value."""

    @property
    def parts(self) -> Parts:
        """Return the types of the operators it is composed of, the outermost first, as kernels are listed."""
        return (type(self),)

    @property
    def row_sums(self) -> tuple[float, ...] | None:
        """Return (|K| 1)_k of the pairs k of a pairwise operator, inside the image; None for others."""
        return None

    def __call__(self, u: Tensor) -> Tensor:
        """K u."""
        return self.forward(u)

    def __matmul__(self, other: "LinearOperator") -> "Composition":
        """K1 @ K2: first K2, then K1."""
        return Composition(self, other)


class Composition(LinearOperator):
    """outer . inner, with ||outer . inner|| <= ||outer|| ||inner||.

    Example:
        >>> import torch
        >>> from primaldepth.operators import ForwardDifference, Resample
        >>> K = ForwardDifference((2, 2)) @ Resample((4, 4), (2, 2), "area")
        >>> K.forward(torch.ones(1, 1, 4, 4)).abs().max()
        tensor(0.)
    """

    def __init__(self, outer: LinearOperator, inner: LinearOperator) -> None:
        if outer.in_shape != inner.out_shape:
            raise ValueError(f"cannot compose: inner gives {inner.out_shape}, outer takes {outer.in_shape}")
        self.outer, self.inner = outer, inner
        self.in_shape, self.out_shape = inner.in_shape, outer.out_shape

    def forward(self, u: Tensor) -> Tensor:
        """Return K1 (K2 u)."""
        return self.outer.forward(self.inner.forward(u))

    def adjoint(self, p: Tensor) -> Tensor:
        """Return K2' (K1' p)."""
        return self.inner.adjoint(self.outer.adjoint(p))

    @property
    def parts(self) -> Parts:
        """The parts of both operators, the outermost first."""
        return (*self.outer.parts, *self.inner.parts)

    @property
    def row_sums(self) -> tuple[float, ...] | None:
        """The row sums of the outer operator, if the inner one only selects channels."""
        return self.outer.row_sums if self.inner.is_selection else None

    @property
    def norm_bound(self) -> float:
        """Return the product of the two bounds."""
        return self.outer.norm_bound * self.inner.norm_bound

    def magnitude(self) -> LinearOperator:
        """Return |K1| |K2|, which is at least |K1 K2|, entry by entry."""
        return Composition(self.outer.magnitude(), self.inner.magnitude())


def dot_test(K: LinearOperator, *, batch: int = 2, seed: int = 0, device: str = "cpu") -> float:
    """Return |<Ku, p> - <u, K'p>| / (|Ku||p| + |u||K'p|) for random u, p in float64; < 1e-12 if exact.

    Use it on operators of your own before handing them to the solver.

    Args:
        K: the operator to test.
        batch: of the random tensors.
        seed: of the random tensors.
        device: to compute on.

    Returns:
        The relative error of the adjoint.

    Example:
        >>> from primaldepth.operators import ForwardDifference, dot_test
        >>> dot_test(ForwardDifference((7, 5))) < 1e-12
        True
    """
    random = torch.Generator().manual_seed(seed)
    u = torch.randn((batch, *K.in_shape), generator=random, dtype=torch.float64).to(device)
    p = torch.randn((batch, *K.out_shape), generator=random, dtype=torch.float64).to(device)
    Ku, Kp = K.forward(u), K.adjoint(p)
    left, right = (Ku * p).sum(), (u * Kp).sum()
    scale = Ku.norm() * p.norm() + u.norm() * Kp.norm()
    return float((left - right).abs() / scale.clamp_min(torch.finfo(torch.float64).tiny))
