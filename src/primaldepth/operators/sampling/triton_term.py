"""The sample term of the fused iterations on a GPU: its dual variable forward, its gradients backward."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.sampling import SampleTerm
from primaldepth.operators.sampling import triton as sampling

Leave = Callable[[Tensor], Tensor]


class SampleDual:
    """The dual variable of the sample term while the iterations run.

    Args:
        leave: view of the frame's part of a padded plane.
        A: how samples come from the image.
        q: (B, 1, h, w) dual variable of the start.
        d: (B, 1, h, w) samples.
        lam: (B, 1, h, w) their precisions.

    Attributes:
        q: (B, 1, h, w) after the last step.
        arrived: (B, 1, h, w) what the last step had before it was weighted, see `sampling.triton.dual_step`.
    """

    def __init__(self, leave: Leave, A: LinearOperator, q: Tensor, d: Tensor, lam: Tensor) -> None:
        self._leave, self._samples = leave, SampleTerm(A, d.contiguous(), lam.contiguous())
        self.q = self.arrived = q.contiguous()
        self._pull: Tensor | None = None

    def step(self, u_bar: Tensor, row: Tensor) -> Tensor:
        """Update q, and return A' q+, padded, in memory that the next step overwrites.

        Args:
            u_bar: padded.
            row: coefficients of the iteration; the last is the step of q.

        Returns:
            The pull, padded.
        """
        if self._pull is None:
            self._pull = torch.zeros_like(u_bar)
        self.arrived, self.q = sampling.dual_step(self._samples, self._leave(u_bar), self.q, row[5])
        sampling.spread(self._samples.A, self.q, self._leave(self._pull))
        return self._pull


class SampleGradients:
    """Gradients of the sample term while the iterations are undone.

    Args:
        leave: view of the frame's part of a padded plane.
        samples: of the term.
        grad_q: gradient of the last q.
        kept: q of the start, then `arrived` and q of each iteration.
    """

    def __init__(self, leave: Leave, samples: SampleTerm, grad_q: Tensor, kept: Sequence[Tensor]) -> None:
        self._leave, self._samples, self._kept = leave, samples, kept
        self.grad_q = grad_q
        self._flow: Tensor | None = None
        self.grad_d, self.grad_lam = torch.zeros_like(samples.d), torch.zeros_like(samples.lam)

    def step(self, n: int, grad_div: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        """Undo step n of q.

        The next step overwrites the memory of the second.

        Args:
            n: number of the iteration.
            grad_div: padded gradient of the divergence.
            row: coefficients of the iteration.

        Returns:
            The gradient of the step of q, and what flows to u_bar, padded.
        """
        q, arrived = self._kept[2 * n], self._kept[2 * n + 1]
        totals = (self.grad_d, self.grad_lam)
        self.grad_q, seen, step = sampling.dual_backward(
            self.grad_q, self._leave(grad_div), q, arrived, self._samples, row[5], totals
        )
        if self._flow is None:
            self._flow = torch.zeros_like(grad_div)
        sampling.spread(self._samples.A, seen, self._leave(self._flow))
        return step, self._flow
