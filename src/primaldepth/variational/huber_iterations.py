"""n primal-dual iterations of the non-local Huber model with coefficients of their own, on any backend."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import Offset, PairwiseDifference, half_window, not_possible, pick_backend
from primaldepth.operators.sampling import SampleTerm
from primaldepth.variational.affinities import support_weights
from primaldepth.variational.energies import Energy, OnDepth, Term
from primaldepth.variational.penalties import Huber, Quadratic
from primaldepth.variational.primal_dual import State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes


def huber_iterations(
    state: State,
    w: Tensor,
    f: Tensor,
    c: Tensor,
    coefficients: Tensor,
    offsets: Sequence[Offset],
    samples: SampleTerm | None = None,
    *,
    storage: torch.dtype | None = None,
) -> State:
    """Iterate from `state`; the energy of iteration n is sum w |u(x)-u(y)|_eps_n + lam_n / 2 sum c (u-f)^2.

    With samples it also has the sample term 1/2 sum_i lam_i ((A u)_i - d_i)^2 and its dual variable q.

    Differentiable in everything on every backend. The torch backend is the definition: it runs
    `primal_dual_step`; the others compute the same in fewer passes over memory. What p holds at pairs
    that leave the frame has no meaning and no influence.

    Args:
        state: u, u_bar: (B, 1, H, W), p: one (B, N, H, W) and, with samples, q: (B, 1, h, w).
        w: (B, N, H, W) support weights.
        f: (B, 1, H, W) data.
        c: (B, 1, H, W) trust in the data, 0 in holes.
        coefficients: (n, 5): sigma, tau, eps, lam, theta of each iteration; with samples (n, 6), where the
            last is the step of q.
        offsets: of the N pairs.
        samples: of the sample term, or None for an energy without it.
        storage: type in which Triton keeps p and w when no gradient is asked for, e.g. bfloat16:
            half the traffic. Other backends keep the type they are given.
    """
    measured = () if samples is None else (state.p[1], samples.d, samples.lam)
    tensors = (state.u, state.u_bar, state.p[0], w, f, c, coefficients, *measured)
    A = None if samples is None else samples.A
    backend = pick_backend(state.u)
    plain = all(t.dtype == torch.float32 for t in tensors) and _is_half_window(offsets)
    if backend == "triton" and plain:
        from primaldepth.operators.pairwise.triton import run

        u, u_bar, *p = run(*(t.contiguous() for t in tensors), A=A, storage=storage)
    elif backend == "numba" and _is_half_window(offsets):
        u, u_bar, *p = _CpuIterations.apply(*tensors, tuple(offsets), A)  # type: ignore[no-untyped-call]
    else:
        if backend != "torch":
            not_possible(backend, "it takes a half window of pairs, Triton only float32")
        return reference_iterations(state, w, f, c, coefficients, offsets, samples)
    return State(u, u_bar, tuple(p))


def huber_from_affinities(
    f: Tensor,
    affinities: Tensor,
    c: Tensor,
    scales: Tensor,
    coefficients: Tensor,
    offsets: Sequence[Offset],
    samples: SampleTerm | None = None,
    *,
    storage: torch.dtype | None = None,
) -> Tensor:
    """Iterate from u = f, p = q = 0 with w = exp(-|d_k| / scales[0] - |a| / scales[1]); returns u.

    Differentiable; without a gradient the kernels make the weights in one pass, Triton in the type it
    keeps them.
    """
    tensors = (f, affinities, c, scales, coefficients)
    measured = () if samples is None else (samples.d, samples.lam)
    learns = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *measured))
    backend = pick_backend(f)
    if backend == "triton" and not learns and _is_half_window(offsets):
        from primaldepth.operators.pairwise.triton import run_from_affinities

        return run_from_affinities(*tensors, samples=samples, storage=storage)
    if backend == "numba" and not learns and _is_half_window(offsets):
        from primaldepth.operators.pairwise import cpu

        f, affinities, c, scales, coefficients = (t.detach().to(f.dtype) for t in tensors)
        return cpu.run_from_affinities(f, affinities, c, scales, coefficients, tuple(offsets), samples)
    w = support_weights(affinities.to(f.dtype).abs(), offsets, scales[0], scales[1])
    duals = (torch.zeros_like(w),) if samples is None else (torch.zeros_like(w), torch.zeros_like(samples.d))
    return huber_iterations(State(f, f, duals), w, f, c, coefficients, offsets, samples, storage=storage).u


def reference_iterations(
    state: State,
    w: Tensor,
    f: Tensor,
    c: Tensor,
    coefficients: Tensor,
    offsets: Sequence[Offset],
    samples: SampleTerm | None = None,
) -> State:
    """The definition: one `primal_dual_step` per row of coefficients."""
    K = PairwiseDifference((int(w.shape[2]), int(w.shape[3])), offsets)
    measured = () if samples is None else (Term(samples.A, Quadratic(samples.d, samples.lam)),)
    for sigma, tau, eps, lam, theta, *steps in coefficients:
        energy = Energy((Term(K, Huber(w, eps)), *measured), OnDepth(Quadratic(f, lam * c)))
        state = primal_dual_step(energy, state, StepSizes(tau, (sigma, *steps), theta))
    return state


def _is_half_window(offsets: Sequence[Offset]) -> bool:
    size = 1 + 2 * max(-dy for dy, _ in offsets)
    return size >= 3 and tuple(offsets) == half_window(size)


class _CpuIterations(torch.autograd.Function):
    """Fused iterations on the CPU; with a gradient, what each iteration leaves for it is kept."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        """N fused iterations."""
        from primaldepth.operators.pairwise import cpu, cpu_backward

        *tensors, ctx.offsets, ctx.A = arguments
        u, u_bar, p, w, f, c, rows, *measured = (t.detach() for t in tensors)
        q, samples = _measured(ctx.A, measured)
        if not any(ctx.needs_input_grad):
            return cpu.iterations(u, u_bar, p, w, (f, c), rows, ctx.offsets, samples, q)
        state = (u, u_bar, p) if q is None else (u, u_bar, p, q)
        ctx.fixed = (w.contiguous(), (f, c), rows, ctx.offsets, samples)
        last, ctx.kept = cpu_backward.iterations_kept(state, *ctx.fixed)
        return tuple(t.clone() for t in last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Undo the iterations."""
        from primaldepth.operators.pairwise.cpu_backward import iterations_backward

        found = iterations_backward(grads, ctx.kept, *ctx.fixed)
        ctx.kept = ctx.fixed = None
        measured = () if ctx.A is None else (found.q, found.d, found.lam)
        images = (found.u, found.u_bar, found.p, found.w, found.f, found.c, found.coefficients)
        return (*images, *measured, None, None)


def _measured(A: LinearOperator | None, tensors: Sequence[Tensor]) -> tuple[Tensor | None, SampleTerm | None]:
    """The dual variable of the sample term and its samples, from the tensors behind the others."""
    if A is None:
        return None, None
    q, d, lam = tensors
    return q, SampleTerm(A, d, lam)
