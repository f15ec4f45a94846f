"""n primal-dual iterations of the non-local Huber model with coefficients of their own, on any backend."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from primaldepth.operators.pairwise import (
    Offset,
    PairwiseDifference,
    half_window,
    pick_backend,
    refuse_forced_backend,
)
from primaldepth.operators.sampling import SampleTerm
from primaldepth.variational.affinities import support_weights
from primaldepth.variational.energies import Energy, OnDepth, Term
from primaldepth.variational.penalties import Huber, Quadratic
from primaldepth.variational.primal_dual import State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes

KERNELS = {
    "numba": "primaldepth.operators.pairwise.cpu_iterations",
    "triton": "primaldepth.operators.pairwise.triton",
}
"""Module with the iterations of each backend, imported on first use.

It has `DTYPES` that it takes, and `run` and `run_from_affinities`: the functions below on tensors alone.
`LEARNS_FROM_AFFINITIES` says whether the second has gradients, as the first always has.
"""


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

    Returns:
        The state after the last iteration.

    Raises:
        InputError: a faster backend was asked for by name and cannot do this.
    """
    measured = () if samples is None else (state.p[1], samples.d, samples.lam)
    tensors = (state.u, state.u_bar, state.p[0], w, f, c, coefficients, *measured)
    kernel = _kernel(f, offsets)
    if kernel is None or any(t.dtype not in kernel.DTYPES for t in tensors):
        refuse_forced_backend("it takes a half window of pairs, Triton only float32")
        return _definition(state, w, (f, c), coefficients, offsets, samples)
    A = None if samples is None else samples.A
    u, u_bar, *p = kernel.run(*tensors, offsets=tuple(offsets), A=A, storage=storage)
    return State(u, u_bar, tuple(p))


def huber_from_affinities(
    f: Tensor,
    affinities: Tensor,
    c: Tensor,
    scales: Tensor,
    coefficients: Tensor,
    offsets: Sequence[Offset],
    *,
    storage: torch.dtype | None = None,
    samples: SampleTerm | None = None,
) -> Tensor:
    """Iterate from u = f, p = q = 0 with w = exp(-|d_k| / scales[0] - |a| / scales[1]); return u.

    Differentiable. The kernels make the weights in one pass, Triton in the type `storage`, in which it also
    keeps p; on the CPU only without a gradient.

    Args:
        f: (B, 1, H, W) data, and the start.
        affinities: (B, N, H, W); their sign has no influence.
        c: (B, 1, H, W) trust in the data.
        scales: (2,) of the distance of two pixels and of their affinity.
        coefficients: as of `huber_iterations`, like what follows.
        offsets: of the N pairs.
        storage: type in which Triton keeps p and w.
        samples: of the sample term, or None.

    Returns:
        (B, 1, H, W).
    """
    tensors = (f, affinities, c, scales, coefficients)
    measured = () if samples is None else (samples.d, samples.lam)
    learns = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *measured))
    kernel = _kernel(f, offsets)
    if kernel is not None and (not learns or (kernel.LEARNS_FROM_AFFINITIES and f.dtype in kernel.DTYPES)):
        u: Tensor = kernel.run_from_affinities(
            *tensors, offsets=tuple(offsets), samples=samples, storage=storage
        )
        return u
    w = support_weights(affinities.to(f.dtype).abs(), offsets, scales[0], scales[1])
    duals = (torch.zeros_like(w),) if samples is None else (torch.zeros_like(w), torch.zeros_like(samples.d))
    return huber_iterations(State(f, f, duals), w, f, c, coefficients, offsets, samples, storage=storage).u


def _definition(
    state: State,
    w: Tensor,
    data: tuple[Tensor, Tensor],
    coefficients: Tensor,
    offsets: Sequence[Offset],
    samples: SampleTerm | None,
) -> State:
    """Return the state after one `primal_dual_step` per row of coefficients; data: f and c."""
    K = PairwiseDifference((w.shape[2], w.shape[3]), offsets)
    measured = () if samples is None else (Term(samples.A, Quadratic(samples.d, samples.lam)),)
    for sigma, tau, eps, lam, theta, *steps in coefficients:
        G = OnDepth(Quadratic(data[0], lam * data[1]))
        energy = Energy((Term(K, Huber(w, eps)), *measured), G)
        state = primal_dual_step(energy, state, StepSizes(tau, (sigma, *steps), theta))
    return state


def _kernel(like: Tensor, offsets: Sequence[Offset]) -> ModuleType | None:
    """Import the kernels of the backend in use; None for torch, or if the pairs are no half window."""
    size = 1 + 2 * max(-dy for dy, _ in offsets)
    name = KERNELS.get(pick_backend(like))
    if name is None or size < 3 or tuple(offsets) != half_window(size):
        return None
    return import_module(name)
