"""Quadratic energies of pixel pairs: Gaussian Markov random fields, minimised by one linear system."""

from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.operators.pairwise import Offset
from primaldepth.operators.pairwise.reference import ends
from primaldepth.operators.sampling import Resample
from primaldepth.variational.conjugate_gradients import LinearSolution, conjugate_gradients


class PairedQuadratic:
    """E(u) = 1/2 sum lam (A u - f)^2 + 1/2 sum_k w_k(x) (u(x) - u(x + d_k))^2.

    Its minimiser solves (A' lam A + L) u = A' lam f with the weighted Laplacian
    L u(x) = sum over pairs of w (u(x) - u(y)); unique if w > 0 and one lam > 0.
    """

    def __init__(self, f: Tensor, lam: Tensor, w: Tensor, offsets: Sequence[Offset], A: Resample) -> None:
        """Args as in the formula.

        Args:
            f: (B, 1, h, w) samples; any value where lam is 0.
            lam: (B, 1, h, w) weights >= 0.
            w: (B, N, H, W) weights of the pairs (x, x + d_k); not read where a pair leaves the image.
            offsets: d_k, each unordered pair once.
            A: how the sensor sees u, (1, H, W) -> (1, h, w).
        """
        self.f, self.lam, self.w, self.offsets, self.A = f, lam, w, tuple(offsets), A
        self._ends = [ends(offset, (A.in_shape[1], A.in_shape[2])) for offset in offsets]
        self._held = self._sum_of_weights()

    def _sum_of_weights(self) -> Tensor:
        """Return diag(L), the sum of all weights that hold a pixel, (B, 1, H, W)."""
        out = torch.zeros_like(self.w[:, :1])
        for k, (x, y) in enumerate(self._ends):
            weight = self.w[:, k : k + 1, x[0], x[1]]
            out[:, :, x[0], x[1]] += weight
            out[:, :, y[0], y[1]] += weight
        return out

    def laplacian(self, u: Tensor) -> Tensor:
        """Return L u = diag(L) u - sum over pairs of w u(y), in two passes over memory per pair."""
        out = self._held * u
        for k, (x, y) in enumerate(self._ends):
            weight = self.w[:, k : k + 1, x[0], x[1]]
            out[:, :, x[0], x[1]].addcmul_(weight, u[:, :, y[0], y[1]], value=-1.0)
            out[:, :, y[0], y[1]].addcmul_(weight, u[:, :, x[0], x[1]], value=-1.0)
        return out

    def normal(self, u: Tensor) -> Tensor:
        """Return (A' lam A + L) u.

        Args:
            u: (B, 1, H, W).
        """
        return self.A.adjoint(self.lam * self.A(u)).add_(self.laplacian(u))

    def right_side(self) -> Tensor:
        """Return A' lam f."""
        return self.A.adjoint(torch.where(self.lam > 0, self.lam * self.f, 0.0))

    def diagonal(self) -> Tensor:
        """Return diag(A' lam A + L), (B, 1, H, W)."""
        rows, columns = (matrix.to(self.lam).square() for matrix in (self.A.rows, self.A.columns))
        return rows.mT @ (self.lam @ columns) + self._held

    def minimise(self, start: Tensor, *, iterations: int, tolerance: float) -> LinearSolution:
        """Minimise by conjugate gradients.

        Args:
            start: (B, 1, H, W) first estimate.
            iterations: at most so many.
            tolerance: as of `conjugate_gradients`.

        Returns:
            The minimiser, (B, 1, H, W), and how it was found.
        """
        # a pixel without samples and pairs (an image of one pixel in a hole) keeps its start
        diagonal = self.diagonal()
        diagonal = torch.where(diagonal > 0, diagonal, 1.0)
        return conjugate_gradients(
            self.normal,
            self.right_side(),
            start,
            diagonal=diagonal,
            iterations=iterations,
            tolerance=tolerance,
        )
