"""Quadratic energies of pixel pairs: Gaussian Markov random fields, minimised by one linear system."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.operators.pairwise import Offset
from primaldepth.operators.pairwise.reference import ends
from primaldepth.operators.resampling import Resample
from primaldepth.variational.conjugate_gradients import LinearSolution, conjugate_gradients


@dataclass(frozen=True, slots=True)
class PairedQuadratic:
    """E(u) = 1/2 sum lam (A u - f)^2 + 1/2 sum_k w_k(x) (u(x) - u(x + d_k))^2.

    Its minimiser solves (A' lam A + L) u = A' lam f with the weighted Laplacian
    L u(x) = sum over pairs of w (u(x) - u(y)); unique if w > 0 and one lam > 0.

    Args:
        f: (B, 1, h, w) samples; any value where lam is 0.
        lam: (B, 1, h, w) weights >= 0.
        w: (B, N, H, W) weights of the pairs (x, x + d_k); not read where a pair leaves the image.
        offsets: d_k, each unordered pair once.
        A: how the sensor sees u, (1, H, W) -> (1, h, w).
    """

    f: Tensor
    lam: Tensor
    w: Tensor
    offsets: Sequence[Offset]
    A: Resample

    def laplacian(self, u: Tensor) -> Tensor:
        """L u = K' (w K u), pair by pair, so that no N maps have to be kept."""
        out = torch.zeros_like(u)
        for k, offset in enumerate(self.offsets):
            x, y = ends(offset, (int(u.shape[2]), int(u.shape[3])))
            flow = (u[:, :, x[0], x[1]] - u[:, :, y[0], y[1]]).mul_(self.w[:, k : k + 1, x[0], x[1]])
            out[:, :, x[0], x[1]] += flow
            out[:, :, y[0], y[1]] -= flow
        return out

    def normal(self, u: Tensor) -> Tensor:
        """(A' lam A + L) u."""
        return self.A.adjoint(self.lam * self.A(u)).add_(self.laplacian(u))

    def right_side(self) -> Tensor:
        """A' lam f."""
        return self.A.adjoint(torch.where(self.lam > 0, self.lam * self.f, 0.0))

    def diagonal(self) -> Tensor:
        """diag(A' lam A + L)."""
        rows, columns = (matrix.to(self.lam).square() for matrix in (self.A.rows, self.A.columns))
        out = rows.mT @ (self.lam @ columns)
        for k, offset in enumerate(self.offsets):
            x, y = ends(offset, (int(out.shape[2]), int(out.shape[3])))
            weight = self.w[:, k : k + 1, x[0], x[1]]
            out[:, :, x[0], x[1]] += weight
            out[:, :, y[0], y[1]] += weight
        return out

    def minimise(self, start: Tensor, *, iterations: int, tolerance: float) -> LinearSolution:
        """By conjugate gradients from `start`: (B, 1, H, W)."""
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
