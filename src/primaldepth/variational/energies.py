"""An energy is a sum of penalties of linear operators plus a simple term."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.variational.kernels import DualUpdate, WeightedStep, step_kernel, value_kernel
from primaldepth.variational.penalties import Number, Penalty


@dataclass(frozen=True, slots=True)
class Term:
    """F(K u)."""

    K: LinearOperator
    F: Penalty

    def value(self, u: Tensor) -> Tensor:
        """Return F(K u).

        Args:
            u: (B, *K.in_shape).

        Returns:
            (B,).
        """
        return value_kernel(self.K, self.F, u).value(self.K, self.F, u)

    def dual_step(
        self, p: Tensor, u_bar: Tensor, sigma: Number | WeightedStep, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return p+ = prox_{sigma F*}(p + sigma K u_bar), and K' p+.

        Args:
            p: (B, *K.out_shape) dual variable; not modified unless it is `out`.
            u_bar: (B, *K.in_shape).
            sigma: a number, a tensor that varies from pixel to pixel, or a step by the penalty's weights.
            out: memory of the shape of p that a kernel may write p+ to; may be p itself.
        """
        update = DualUpdate(self.K, self.F, p, u_bar, sigma)
        return step_kernel(update).step(update, out)


class SimpleTerm:
    """G(u) whose proximal map is cheap, so that it needs no dual variable; this one is G = 0."""

    def value(self, u: Tensor) -> Tensor:
        """Return G(u).

        Args:
            u: (B, C, H, W).

        Returns:
            (B,).
        """
        return u.new_zeros(u.shape[0])

    def prox(self, u: Tensor, tau: Number) -> Tensor:
        """Return prox_{tau G}(u).

        Args:
            u: (B, C, H, W).
            tau: a number, or (B or 1, C, H, W).
        """
        return u

    def has_conjugate(self, channels: int) -> bool:
        """Return whether G* is finite everywhere, for a u of so many channels."""
        return False

    def conjugate(self, z: Tensor) -> Tensor:
        """Return G*(z), shape (B,)."""
        raise ValueError("the conjugate is not finite")


class Unconstrained(SimpleTerm):
    """G = 0: every term of the energy has a dual variable."""


@dataclass(frozen=True, slots=True)
class OnDepth(SimpleTerm):
    """G(u) = D(u_0): a data term on the first channel, the depth; other channels are free."""

    D: Penalty

    def value(self, u: Tensor) -> Tensor:
        """Return D(u_0)."""
        return self.D.value(u[:, :1])

    def prox(self, u: Tensor, tau: Number) -> Tensor:
        """Return the data term's map of the depth, and slopes as they are."""
        tau_0 = tau[:, :1] if isinstance(tau, Tensor) and tau.ndim == 4 else tau
        depth = self.D.prox(u[:, :1], tau_0)
        return depth if u.shape[1] == 1 else torch.cat([depth, u[:, 1:]], dim=1)

    def has_conjugate(self, channels: int) -> bool:
        """Return whether the depth is the only channel and D* is finite everywhere."""
        return channels == 1 and self.D.has_conjugate

    def conjugate(self, z: Tensor) -> Tensor:
        """Return D*(z_0)."""
        return self.D.conjugate(z[:, :1])


@dataclass(frozen=True, slots=True)
class Energy:
    """E(u) = sum_i F_i(K_i u) + G(u), u: (B, C, H, W) with the depth in channel 0.

    Its saddle-point form is  min_u max_p  sum_i <K_i u, p_i> - F_i*(p_i) + G(u).
    """

    terms: tuple[Term, ...]
    G: SimpleTerm

    def value(self, u: Tensor) -> Tensor:
        """Return E(u).

        Args:
            u: (B, C, H, W).

        Returns:
            (B,).
        """
        return sum((term.value(u) for term in self.terms), self.G.value(u))

    def dual_value(self, p: tuple[Tensor, ...]) -> Tensor | None:
        """Return - sum_i F_i*(p_i) - G*(-sum_i K_i' p_i), shape (B,), or None where G* is not finite."""
        if not self.G.has_conjugate(self.terms[0].K.in_shape[0]):
            return None
        total = self.G.conjugate(-self.adjoint(p))
        for term, p_i in zip(self.terms, p, strict=True):
            total = total + term.F.conjugate(p_i)
        return -total

    def gap(self, u: Tensor, p: tuple[Tensor, ...]) -> Tensor | None:
        """Return E(u) minus its dual value, an upper bound of E(u) - min E.

        Args:
            u: (B, C, H, W).
            p: one (B, *K_i.out_shape) for each term.

        Returns:
            (B,), or None where G* is not finite.
        """
        dual = self.dual_value(p)
        return None if dual is None else self.value(u) - dual

    def adjoint(self, p: tuple[Tensor, ...]) -> Tensor:
        """Return sum_i K_i' p_i.

        Args:
            p: one (B, *K_i.out_shape) for each term.

        Returns:
            (B, C, H, W).
        """
        parts = [term.K.adjoint(p_i) for term, p_i in zip(self.terms, p, strict=True)]
        return torch.stack(parts).sum(dim=0) if len(parts) > 1 else parts[0]

    @property
    def squared_norms(self) -> tuple[float, ...]:
        """Return bounds of ||K_i||^2."""
        return tuple(term.K.norm_bound**2 for term in self.terms)
