"""Linear systems with a symmetric positive matrix that is only known by its products."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

CHECK_EVERY = 10  # asking whether all images are done waits for the device


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """The solution, the iterations it took, and what is left of the residual (worst image of the batch)."""

    u: Tensor
    iterations: int
    residual: float


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Return <a, b> of each image, (B, 1, ...)."""
    return (a * b).flatten(1).sum(dim=1).view(-1, *[1] * (a.ndim - 1))


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, 0 where b is not positive: there is nothing left to improve there."""
    return torch.where(b > 0, a / torch.where(b > 0, b, 1.0), 0.0)


def conjugate_gradients(
    A: Callable[[Tensor], Tensor],
    b: Tensor,
    start: Tensor,
    *,
    diagonal: Tensor | None = None,
    iterations: int = 100,
    tolerance: float = 1e-5,
) -> LinearSolution:
    """Solve A u = b for each image of a batch, preconditioned by the diagonal D of A.

    z = r / D,  alpha = <r, z> / <p, A p>,  u+ = u + alpha p,  r+ = r - alpha A p,
    p+ = z+ + (<r+, z+> / <r, z>) p,  from r = b - A u and p = z.

    An image stops at <r, z> <= tolerance^2 <b, b / D> and then stays as it is, so that its
    result does not depend on the others. A singular A is allowed where b lies in its range.

    Args:
        A: symmetric positive semi-definite, (B, ...) -> (B, ...), image by image.
        b: (B, ...) right side.
        start: (B, ...) first estimate.
        diagonal: (B, ...) positive; 1 if None.
        iterations: at most so many.
        tolerance: part of the right side that may be left of the residual.

    Returns:
        The solution, (B, ...), and how it was found.
    """
    D = torch.ones_like(b) if diagonal is None else diagonal
    u, r = start, b - A(start)
    z = r / D
    p, rz = z, _dot(r, z)
    scale = _dot(b, b / D)
    enough = tolerance**2 * scale
    done = 0
    for iteration in range(iterations):
        if iteration % CHECK_EVERY == 0 and not bool((rz > enough).any()):
            break
        Ap = A(p)
        alpha = torch.where(rz > enough, _ratio(rz, _dot(p, Ap)), 0.0)
        u, r = u + alpha * p, r - alpha * Ap
        z = r / D
        before, rz = rz, _dot(r, z)
        p = z + _ratio(rz, before) * p
        done = iteration + 1
    return LinearSolution(u, done, float(_ratio(rz, scale).max().clamp_min(0.0).sqrt()))
