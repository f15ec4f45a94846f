"""The fused iterations with gradients: forward keeps the states, backward undoes iteration by iteration."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import triton_steps as steps
from primaldepth.operators.pairwise.padded_layout import PaddedLayout
from primaldepth.operators.sampling import SampleTerm
from primaldepth.operators.sampling.triton_term import SampleDual, SampleGradients


class KeptStates(NamedTuple):
    """The states of n iterations, padded.

    Args:
        u: of the start.
        u_bar: of the start.
        images: (n, 2, ...): u and u_bar after each iteration.
        p: (n, ...): p after each iteration.
        q: of the sample term: q of the start, then what `SampleDual` calls arrived and q of each iteration.
    """

    u: Tensor
    u_bar: Tensor
    images: Tensor
    p: Tensor
    q: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, u: Tensor, u_bar: Tensor, images: Tensor, p: Tensor, *q: Tensor) -> "KeptStates":
        """Return the states from the tensors that autograd kept in this order.

        Args:
            u: as of the class, like what follows.
            u_bar: of the start.
            images: of each iteration.
            p: of each iteration.
            q: of the sample term, if there is one.
        """
        return cls(u, u_bar, images, p, q)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors in the order that `of` takes."""
        return (*self[:4], *self.q)

    def before(self, n: int) -> tuple[Tensor, Tensor]:
        """Return u and u_bar before iteration n; after all of them for their number.

        Args:
            n: number of an iteration, or of all.
        """
        return (self.images[n - 1, 0], self.images[n - 1, 1]) if n else (self.u, self.u_bar)


class Gradients(NamedTuple):
    """Gradients of a run, padded but for those of the coefficients."""

    u: Tensor
    u_bar: Tensor
    p: Tensor
    w: Tensor
    f: Tensor
    c: Tensor
    rows: Tensor


def run_keeping(
    layout: PaddedLayout,
    state: tuple[Tensor, Tensor, Tensor],
    fixed: tuple[Tensor, Tensor, Tensor],
    coefficients: Tensor,
    sample_dual: SampleDual | None,
) -> KeptStates:
    """Iterate from `state` and keep every state.

    Args:
        layout: of all padded tensors.
        state: u, u_bar and p, padded.
        fixed: w, f and c, padded.
        coefficients: (n, 5), with samples (n, 6).
        sample_dual: dual variable of the sample term; None without one.
    """
    u, u_bar, p = state
    images = u.new_zeros((len(coefficients), 2, *u.shape))  # their margins are read
    duals = p.new_empty((len(coefficients), *p.shape))
    sampled = [] if sample_dual is None else [sample_dual.q]
    for n, row in enumerate(coefficients):
        pull = None if sample_dual is None else sample_dual.step(state[1], row)
        new = images[n, 0], images[n, 1], duals[n]
        steps.forward(layout, state, fixed, row, new, pull)
        state = new
        sampled += [] if sample_dual is None else [sample_dual.arrived, sample_dual.q]
    return KeptStates(u, u_bar, images, duals, tuple(sampled))


def undo(
    layout: PaddedLayout,
    grads: tuple[Tensor, Tensor, Tensor],
    kept: KeptStates,
    fixed: tuple[Tensor, Tensor, Tensor],
    coefficients: Tensor,
    sample_gradients: SampleGradients | None,
) -> Gradients:
    """Return the gradients of everything from those of the last u, u_bar and p, which are overwritten.

    Args:
        layout: of all padded tensors.
        grads: of the last u, u_bar and p, padded.
        kept: states of the run.
        fixed: w, f and c, padded.
        coefficients: (n, 5), with samples (n, 6).
        sample_gradients: of the sample term; None without one.
    """
    w, f, c = fixed
    grad_u, grad_bar, grad_p = grads
    images = steps.ImageGradients(grad_u, *(torch.zeros_like(f) for _ in range(3)))
    grad_w = torch.zeros_like(w, dtype=torch.float32)
    count = len(coefficients)
    primal = coefficients.new_empty((count, layout.programs(layout.IMAGES), 3))
    dual = coefficients.new_empty((count, layout.programs(layout.BACKWARD), 2))
    measured = coefficients.new_zeros((count, coefficients.shape[1] - 5))
    given: Tensor | None = grad_bar  # what of the gradient of u_bar is known, beside what pairs bring
    pairs = None
    for n in range(count - 1, -1, -1):
        u, u_bar = kept.before(n)
        row = coefficients[n]
        steps.undo_image(layout, images, (u, kept.images[n, 0], f, c), row, primal[n], given, pairs)
        steps.undo_pairs(layout, (grad_p, images.div, grad_w), u_bar, kept.p[n], w, row, dual[n])
        pairs = grad_p, row
        given = None
        if sample_gradients is not None:
            measured[n], given = sample_gradients.step(n, images.div, row)
    if pairs is not None:
        grad_bar = torch.zeros_like(f)
        steps.gather(layout, pairs, given, grad_bar)
    (tau, lam, theta), (sigma, eps) = primal.sum(1).unbind(1), dual.sum(1).unbind(1)
    rows = torch.cat([torch.stack([sigma, tau, eps, lam, theta], dim=1), measured], dim=1)
    return Gradients(images.u, grad_bar, grad_p, grad_w, images.f, images.c, rows)


class TritonIterations(torch.autograd.Function):
    """n iterations with gradients for the state, w, f, c, every coefficient and, with samples, d and lam.

    Keeps u, u_bar and p of each iteration, with samples also q, and recomputes everything else.
    """

    @staticmethod
    def forward(ctx: Any, A: LinearOperator | None, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Run and keep the states; tensors as of `triton.run`."""
        u, u_bar, p, w, f, c, coefficients, *measured = tensors
        layout = PaddedLayout.of(p)
        ctx.A, ctx.layout = A, layout
        state = (layout.enter(u), layout.enter(u_bar), layout.enter(p))
        fixed = (layout.enter(w), layout.enter(f), layout.enter(c))
        sample_dual = None if A is None else SampleDual(layout.leave, A, *measured)
        kept = run_keeping(layout, state, fixed, coefficients, sample_dual)
        ctx.save_for_backward(*fixed, coefficients, *measured[1:], *kept.tensors)
        last = (*kept.before(len(coefficients)), kept.p[-1])
        found = tuple(layout.leave(t).contiguous() for t in last)
        return found if sample_dual is None else (*found, sample_dual.q)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the tensors: the iterations in reverse."""
        layout: PaddedLayout = ctx.layout
        w, f, c, coefficients, *rest = ctx.saved_tensors
        sample_gradients, kept = _restored(layout, ctx.A, rest, grads[3:])
        padded = (layout.enter(grads[0]), layout.enter(grads[1]), layout.enter(grads[2]))
        found = undo(layout, padded, kept, (w, f, c), coefficients, sample_gradients)
        maps = (layout.leave(grad).contiguous() for grad in found[:6])
        measured = (
            ()
            if sample_gradients is None
            else (sample_gradients.grad_q, sample_gradients.grad_d, sample_gradients.grad_lam)
        )
        return (None, *maps, found.rows, *measured)


class TritonFromAffinities(torch.autograd.Function):
    """n iterations from u = f and p = q = 0 with the weights of affinities; gradients for all tensors.

    The weights are made in the padded layout, and w and p are kept there in the type `storage`.
    """

    @staticmethod
    def forward(ctx: Any, A: LinearOperator | None, storage: torch.dtype | None, *tensors: Tensor) -> Tensor:
        """Run and keep the states; tensors: f, affinities, c, scales, coefficients and perhaps d, lam."""
        f, affinities, c, scales, coefficients, *measured = tensors
        layout = PaddedLayout.of(affinities)
        ctx.A, ctx.layout = A, layout
        w = layout.support(affinities, scales, storage)
        start, trust = layout.enter(f), layout.enter(c)
        sample_dual = None
        if A is not None:
            sample_dual = SampleDual(layout.leave, A, torch.zeros_like(measured[0]), *measured)
        p = layout.zeros(w, layout.pairs)
        kept = run_keeping(layout, (start, start, p), (w, start, trust), coefficients, sample_dual)
        ctx.save_for_backward(affinities, scales, w, trust, coefficients, *measured, *kept.tensors)
        u = kept.before(len(coefficients))[0]
        return layout.leave(u).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the tensors: the iterations in reverse, then the weights."""
        layout: PaddedLayout = ctx.layout
        affinities, scales, w, trust, coefficients, *rest = ctx.saved_tensors
        last = () if ctx.A is None else (torch.zeros_like(rest[0]),)
        sample_gradients, kept = _restored(layout, ctx.A, rest, last)
        padded = (layout.enter(grads[0]), layout.zeros(kept.u), layout.zeros(w, layout.pairs))
        found = undo(layout, padded, kept, (w, kept.u, trust), coefficients, sample_gradients)
        grad_a, grad_scales = layout.support_gradients(affinities, scales, w, found.w)
        grad_f = layout.leave(found.u + found.u_bar + found.f)
        measured = () if sample_gradients is None else (sample_gradients.grad_d, sample_gradients.grad_lam)
        maps = (grad_f.contiguous(), grad_a, layout.leave(found.c).contiguous())
        return (None, None, *maps, grad_scales, found.rows, *measured)


def _restored(
    layout: PaddedLayout, A: LinearOperator | None, saved: list[Tensor], grad_q: tuple[Tensor, ...]
) -> tuple[SampleGradients | None, KeptStates]:
    """Return what was saved behind the coefficients: d and lam of the samples, if any, then the states."""
    if A is None:
        return None, KeptStates.of(*saved)
    d, lam, *states = saved
    kept = KeptStates.of(*states)
    return SampleGradients(layout.leave, SampleTerm(A, d, lam), grad_q[0].contiguous(), kept.q), kept
