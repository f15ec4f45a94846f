"""Whole iterations of the non-local Huber model on the CPU, compiled by numba, and their gradient."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise.cpu import Offsets, dual_step
from primaldepth.operators.pairwise.cpu_backward import iterations_backward, iterations_kept
from primaldepth.operators.sampling.cpu import sample_step
from primaldepth.operators.sampling.samples import SampleTerm
from primaldepth.operators.threads import MAX_THREADS, Array

LEARNS_FROM_AFFINITIES = False
DTYPES = (torch.float32, torch.float64)


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _primal_rows(
    u: Array, div: Array, f: Array, c: Array, step: Array, u_out: Array, u_bar_out: Array
) -> None:
    """u+ = (u - tau div + tau lam c f) / (1 + tau lam c), u_bar+ = u+ + theta (u+ - u); all (rows, W)."""
    tau, lam, theta = step[0], step[1], step[2]
    one = step.dtype.type(1)
    for y in numba.prange(u.shape[0]):
        for x in range(u.shape[1]):
            pull = tau * lam * c[y, x]
            value = (u[y, x] - tau * div[y, x] + pull * f[y, x]) / (one + pull)
            u_out[y, x] = value
            u_bar_out[y, x] = value + theta * (value - u[y, x])


@numba.njit(parallel=True, fastmath=True, cache=True)
def _exponents(affinities: Array, near: Array, rate: Array, out: Array) -> None:
    """-near[k] - rate[0] |a|, map by map; `affinities` may lie in memory in any order."""
    images, pairs, height, width = out.shape
    slope = rate[0]
    for job in numba.prange(images * height):
        b, y = job // height, job % height
        for k in range(pairs):
            base = near[k]
            for x in range(width):
                out[b, k, y, x] = -base - slope * abs(affinities[b, k, y, x])


def weights_of(affinities: Tensor, near: Tensor, rate: Tensor) -> Tensor:
    """Return exp(-near_k - rate |a|) as (B, N, H, W), contiguous; `near` has N numbers."""
    out = torch.empty(affinities.shape, dtype=affinities.dtype)
    numba.set_num_threads(min(torch.get_num_threads(), MAX_THREADS))
    _exponents(affinities.numpy(), near.numpy(), rate.view(1).numpy(), out.numpy())
    for image in out:
        for one in image:  # while it is in the cache
            one.exp_()
    return out


def run(
    *tensors: Tensor, offsets: Offsets, A: LinearOperator | None = None, storage: torch.dtype | None = None
) -> tuple[Tensor, ...]:
    """Run N iterations with a gradient for every tensor.

    Args:
        tensors: u, u_bar, p, w, f, c, coefficients as of `iterations`, then q, d and lam of the sample term
            or nothing.
        offsets: of a half window.
        A: operator of the sample term, or None.
        storage: ignored; p and w keep the type they are given in.

    Returns:
        u, u_bar, p and, with samples, q.
    """
    found: tuple[Tensor, ...] = CpuIterations.apply(A, offsets, *tensors)  # type: ignore[no-untyped-call]
    return found


def run_from_affinities(
    *tensors: Tensor, offsets: Offsets, samples: SampleTerm | None = None, storage: torch.dtype | None = None
) -> Tensor:
    """Run N iterations without gradient from u = f, p = q = 0, w = exp(-|d_k| / scales[0] - |a| / scales[1]).

    Args:
        tensors: f, affinities, c, scales and coefficients.
        offsets: of a half window.
        samples: of the sample term, or None.
        storage: ignored; p and w have the type of f.

    Returns:
        The last u, (B, 1, H, W).
    """
    f, affinities, c, scales, coefficients = (t.detach().to(tensors[0].dtype) for t in tensors)
    near = torch.tensor([(dy * dy + dx * dx) ** 0.5 for dy, dx in offsets], dtype=f.dtype) / scales[0]
    w = weights_of(affinities, near, 1.0 / scales[1])
    p = torch.zeros(w.shape, dtype=w.dtype)
    q = None if samples is None else torch.zeros_like(samples.d)
    return iterations(f, f, p, w, (f, c), coefficients, offsets, samples, q, out=p)[0]


class CpuIterations(torch.autograd.Function):
    """The iterations; if a gradient is asked for, what each leaves for it is kept."""

    @staticmethod
    def forward(ctx: Any, A: LinearOperator | None, offsets: Offsets, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Run N iterations."""
        u, u_bar, p, w, f, c, rows, *measured = (t.detach() for t in tensors)
        q, samples = (None, None) if A is None else (measured[0], SampleTerm(A, *measured[1:]))
        if not any(ctx.needs_input_grad):
            return iterations(u, u_bar, p, w, (f, c), rows, offsets, samples, q)
        state = (u, u_bar, p) if q is None else (u, u_bar, p, q)
        ctx.fixed = (w.contiguous(), (f, c), rows, offsets, samples)
        last, ctx.kept = iterations_kept(state, *ctx.fixed)
        return tuple(t.clone() for t in last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Undo the iterations."""
        found = iterations_backward(grads, ctx.kept, *ctx.fixed)
        ctx.kept = ctx.fixed = None
        return (None, None, *found.values())


def iterations(
    u: Tensor,
    u_bar: Tensor,
    p: Tensor,
    w: Tensor,
    data: tuple[Tensor, Tensor],
    coefficients: Tensor,
    offsets: Offsets,
    samples: SampleTerm | None = None,
    q: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Run N iterations of non-local Huber with quadratic data terms; no argument but `out` is modified.

    Args:
        u: (B, 1, H, W).
        u_bar: (B, 1, H, W).
        p: (B, N, H, W).
        w: (B, N, H, W).
        data: f and c, (B, 1, H, W).
        coefficients: (n, 5) of sigma, tau, eps, lam, theta; with samples (n, 6), the step of q behind them.
        offsets: of a half window.
        samples: of the sample term, or None for none.
        q: (B, 1, h, w) dual variable of the sample term.
        out: memory for the new p, which may be p itself, or None for fresh memory.

    Returns:
        The new u, u_bar, p and, with samples, q.
    """
    width = u.shape[-1]
    f, c = (t.contiguous().view(-1, width).numpy() for t in data)
    p, w = p.contiguous(), w.contiguous()
    u, u_bar = (t.clone(memory_format=torch.contiguous_format) for t in (u, u_bar))
    out, div = torch.empty_like(p) if out is None else out, torch.empty_like(u)
    spare = (torch.empty_like(u), torch.empty_like(u_bar))
    for sigma, tau, eps, lam, theta, *steps in coefficients.tolist():
        p, _ = dual_step(u_bar, p, w, offsets, (sigma, 0.0, eps), out=out, div=div)
        if samples is not None and q is not None:
            q, pull = sample_step(samples, u_bar, q, steps[0])
            div += pull
        step = np.array((tau, lam, theta), dtype=f.dtype)
        rows = [t.view(-1, width).numpy() for t in (u, div, *spare)]
        _primal_rows(rows[0], rows[1], f, c, step, rows[2], rows[3])
        (u, u_bar), spare = spare, (u, u_bar)
    return (u, u_bar, p) if q is None else (u, u_bar, p, q)
