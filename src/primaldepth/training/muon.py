"""Muon: the steps of matrices are made orthogonal, so that all their directions learn equally fast.

For a kernel W, as a matrix with one row per map that it makes, and its gradient G:

    M <- mu M + (1 - mu) G
    D  = mu M + (1 - mu) G
    W <- (1 - rate decay) W - rate s O(D)        s = 0.2 sqrt(larger side of W)

O(D) = U V' for the singular value decomposition D = U S V', approximated as `orthogonal` says. With s, the
root mean square of a step is 0.2 times the rate, about that of AdamW, so both can have one rate.
(Jordan et al. 2024; the factor s: Liu et al. 2025.)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEP_RMS = 0.2


def orthogonal(D: Tensor) -> Tensor:
    """Return nearly U V' of D = U S V', with singular values of 0.7 to 1.2 in place of 1.

    X <- a X + b (X X') X + c (X X')^2 X keeps U and V and drives the singular values, at most 1 at the start,
    towards 1. On a GPU it is computed in bfloat16: the result only has to be near.

    Args:
        D: (n, rows, columns), n matrices; one of zeros stays zero.

    Returns:
        (n, rows, columns) in the type of D.
    """
    a, b, c = COEFFICIENTS
    wide = D.mT if D.shape[1] > D.shape[2] else D
    X = wide / (torch.linalg.matrix_norm(wide, keepdim=True) + 1e-7)
    X = X.bfloat16() if D.is_cuda else X
    for _ in range(STEPS):
        S = X @ X.mT
        X = a * X + (b * S + c * S @ S) @ X
    found: Tensor = (X.mT if wide is not D else X).to(D.dtype)
    return found


class Muon(torch.optim.AdamW):
    """AdamW, but groups with a `momentum` make orthogonal steps with it.

    Args:
        groups: of weights, with `momentum` where the weights are matrices or kernels of convolutions.
        options: of AdamW.
    """

    def __init__(self, groups: list[dict[str, Any]], **options: Any) -> None:
        super().__init__([{"momentum": None, **group} for group in groups], **options)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make a step of all weights that have a gradient; matrices have none after it.

        Args:
            closure: computes the loss, or None.

        Returns:
            the loss, or None.
        """
        for group in self.param_groups:
            if group["momentum"] is not None:
                for alike in _by_shape(group["params"]):
                    self._step_together(alike, group)
        found: float | None = super().step(closure)
        return found

    def _step_together(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        """Make a step of matrices of one shape, and take their gradients away so that AdamW skips them."""
        sums = [self._sum(weight) for weight in weights]
        G = torch.stack([weight.grad.flatten(1) for weight in weights if weight.grad is not None])
        M = torch.stack([each.flatten(1) for each in sums]).lerp_(G, 1.0 - group["momentum"])
        steps = orthogonal(G.lerp(M, group["momentum"]))
        rate, size = group["lr"], STEP_RMS * max(G.shape[1:]) ** 0.5
        for weight, own, moment, step in zip(weights, sums, M, steps, strict=True):
            own.copy_(moment.view_as(own))
            weight.mul_(1.0 - rate * group["weight_decay"]).sub_(rate * size * step.view_as(weight))
            weight.grad = None

    def _sum(self, weight: Tensor) -> Tensor:
        """Return M of a weight, zeros before its first step, and count the step, as AdamW does."""
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), device=weight.device if self.defaults["capturable"] else None)
            state["exp_avg"] = torch.zeros_like(weight)
        state["step"] += 1
        found: Tensor = state["exp_avg"]
        return found


def _by_shape(weights: list[Tensor]) -> list[list[Tensor]]:
    """Return the weights that have a gradient in lists of one shape each."""
    found: dict[torch.Size, list[Tensor]] = {}
    for weight in weights:
        if weight.grad is not None:
            found.setdefault(weight.shape, []).append(weight)
    return list(found.values())
