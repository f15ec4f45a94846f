"""How a result is held to the samples, by either norm, on the grid of the image or of the sensor."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from primaldepth.operators import LinearOperator, SelectChannels
from primaldepth.variational.energies import OnDepth, SimpleTerm, Term, Unconstrained
from primaldepth.variational.penalties import Absolute, Penalty, Quadratic


@dataclass(frozen=True, slots=True)
class DataTerm:
    """lam / 2 (A u - f)^2 or lam |A u - f|.

    Args:
        f: (B, 1, h, w) samples; any value where lam is 0.
        lam: (B, 1, h, w) weights >= 0: trust, confidence and validity in one map.
        norm: "l2" or "l1".
        A: how the sensor sees the depth, (1, H, W) -> (1, h, w); None if f lies on the grid of u.
    """

    f: Tensor
    lam: Tensor
    norm: Literal["l2", "l1"] = "l2"
    A: LinearOperator | None = None

    @property
    def penalty(self) -> Penalty:
        """Return the penalty of A u."""
        f = torch.where(self.lam > 0, self.f, 0.0)
        return Quadratic(f, self.lam) if self.norm == "l2" else Absolute(f, self.lam)

    def split(self, channels: int, size: tuple[int, int]) -> tuple[tuple[Term, ...], SimpleTerm]:
        """Split into a term with a dual variable, where samples come by an operator, and a simple term.

        Args:
            channels: of u.
            size: (H, W) of u.

        Returns:
            The terms with a dual variable, none or one, and the simple term.
        """
        if self.A is None:
            return (), OnDepth(self.penalty)
        K = self.A if channels == 1 else self.A @ SelectChannels((channels, *size), 0, 1)
        return (Term(K, self.penalty),), Unconstrained()
