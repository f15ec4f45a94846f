"""Non-local Huber primal-dual iterations in one Triton kernel each, forward and backward.

A program owns a tile of pixels. The dual update of the pairs that start in the tile is written
out; that of the pairs that end in it is computed a second time from p, w and u_bar, which the
cache still holds. So an iteration needs no exchange between programs and moves p twice (read,
written) and w once through memory. README.md beside this file has the derivation and the bytes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import triton_steps as steps
from primaldepth.operators.pairwise.padded_layout import PaddedLayout
from primaldepth.operators.pairwise.reference import Offset
from primaldepth.operators.pairwise.triton_gradients import TritonFromAffinities, TritonIterations
from primaldepth.operators.sampling import SampleTerm
from primaldepth.operators.sampling.triton_term import SampleDual

DTYPES = (torch.float32,)
LEARNS_FROM_AFFINITIES = True


def run(
    *tensors: Tensor,
    offsets: Sequence[Offset] = (),
    A: LinearOperator | None = None,
    storage: torch.dtype | None = None,
) -> tuple[Tensor, ...]:
    """Run N iterations as `cpu_iterations.run` does; keep the states only if a gradient will be asked for.

    Args:
        tensors: as of `cpu_iterations.run`.
        offsets: those of the half window with as many pairs as p has maps; not read.
        A: operator of the sample term, or None.
        storage: type in which p and w are kept.

    Returns:
        u, u_bar, p and, with samples, q.
    """
    tensors = tuple(t.contiguous() for t in tensors)
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: tuple[Tensor, ...] = TritonIterations.apply(A, *tensors)  # type: ignore[no-untyped-call]
        return result
    u, u_bar, p, w, f, c, coefficients, *measured = tensors
    layout = PaddedLayout.of(p)
    state = (layout.enter(u), layout.enter(u_bar), layout.enter(p, storage))
    fixed = (layout.enter(w, storage), layout.enter(f), layout.enter(c))
    sample_dual = None if A is None else SampleDual(layout.leave, A, *measured)
    found = tuple(layout.leave(t) for t in iterate(layout, state, fixed, coefficients, sample_dual))
    return found if sample_dual is None else (*found, sample_dual.q)


def run_from_affinities(
    *tensors: Tensor,
    offsets: Sequence[Offset] = (),
    samples: SampleTerm | None = None,
    storage: torch.dtype | None = None,
) -> Tensor:
    """Run N iterations as `cpu_iterations.run_from_affinities` does, also with gradients.

    Args:
        tensors: f, affinities, c, scales and coefficients.
        offsets: those of the half window with as many pairs as there are affinities; not read.
        samples: of the sample term, or None.
        storage: type in which p and w are kept.

    Returns:
        The last u, (B, 1, H, W).
    """
    measured = () if samples is None else (samples.d, samples.lam)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *measured)):
        A = None if samples is None else samples.A
        found: Tensor = TritonFromAffinities.apply(A, storage, *tensors, *measured)  # type: ignore[no-untyped-call]
        return found
    f, affinities, c, scales, coefficients = tensors
    layout = PaddedLayout.of(affinities)
    w = layout.support(affinities, scales, storage)
    start = layout.enter(f)
    state = (start, start, layout.zeros(w, layout.pairs))
    sample_dual = None
    if samples is not None:
        sample_dual = SampleDual(layout.leave, samples.A, torch.zeros_like(samples.d), samples.d, samples.lam)
    fixed = (w, start, layout.enter(c))
    return layout.leave(iterate(layout, state, fixed, coefficients, sample_dual)[0])


def iterate(
    layout: PaddedLayout,
    state: tuple[Tensor, Tensor, Tensor],
    fixed: tuple[Tensor, Tensor, Tensor],
    coefficients: Tensor,
    sample_dual: SampleDual | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the iterations between two sets of buffers; no argument but `sample_dual` is modified.

    Args:
        layout: of all padded tensors.
        state: u, u_bar and p, padded.
        fixed: w, f and c, padded.
        coefficients: (n, 5) or more.
        sample_dual: dual variable of the sample term; None without one.

    Returns:
        u, u_bar and p after the last iteration, padded.
    """
    buffers = []
    for _ in range(min(2, len(coefficients))):
        images = layout.zeros(state[0]), layout.zeros(state[0])
        buffers.append((*images, torch.empty_like(state[2])))
    for n, row in enumerate(coefficients):
        pull = None if sample_dual is None else sample_dual.step(state[1], row)
        steps.forward(layout, state, fixed, row, buffers[n % 2], pull)
        state = buffers[n % 2]
    return state
