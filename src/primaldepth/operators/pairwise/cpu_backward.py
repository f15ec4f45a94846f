"""Gradients of the fused iterations on the CPU, compiled by numba; README.md beside this file derives them.

Forward keeps u, u_bar and p of every iteration, with samples also q and what arrived there. Backward undoes
the iterations from the last to the first. Rows are shared out to threads as in `cpu.py`: what a band owes to
rows above it goes to its halo.
"""

from dataclasses import dataclass

import numba
import numpy as np
import torch
from torch import Tensor

from primaldepth.operators.pairwise.cpu import BLOCK_ROWS, Offsets, add_flow, add_halo, dual_step, inner_ends
from primaldepth.operators.sampling.samples import SampleTerm
from primaldepth.operators.threads import Array, band_of, thread_count


@dataclass(frozen=True, slots=True)
class KeptIteration:
    """What backward reads of one iteration.

    Args:
        u: (B, 1, H, W) before it, like u_bar.
        u_next: (B, 1, H, W) after it.
        p_next: (B, N, H, W) after it.
        sampled: (B, 1, h, w) each: q of the sample term before it, and what arrived there,
            q + step (A u_bar - d); nothing without samples.
    """

    u: Tensor
    u_bar: Tensor
    u_next: Tensor
    p_next: Tensor
    sampled: tuple[Tensor, ...]


def iterations_kept(
    state: tuple[Tensor, ...],
    w: Tensor,
    data: tuple[Tensor, Tensor],
    coefficients: Tensor,
    offsets: Offsets,
    samples: SampleTerm | None,
) -> tuple[tuple[Tensor, ...], list[KeptIteration]]:
    """Run the iterations, and keep what backward needs of each.

    Args:
        state: u, u_bar, p and, with samples, q.
        w: (B, N, H, W) bounds.
        data: f and c, (B, 1, H, W).
        coefficients: as of `cpu_iterations.iterations`.
        offsets: of a half window.
        samples: of the sample term, or None.

    Returns:
        The last state, and one `KeptIteration` for each iteration.
    """
    u, u_bar, p, *rest = (t.contiguous() for t in state)
    q = rest[0] if rest else None
    sampled: tuple[Tensor, ...]
    (f, c), kept = data, []
    for sigma, tau, eps, lam, theta, *steps in coefficients.tolist():
        p_next, div = dual_step(u_bar, p, w, offsets, (sigma, 0.0, eps))
        sampled, q_next = (), None
        if samples is not None and q is not None:
            arrived = q + steps[0] * (samples.A(u_bar) - samples.d)
            q_next = samples.lam * arrived / (samples.lam + steps[0])
            div, sampled = div + samples.A.adjoint(q_next), (q, arrived)
        u_next = (u - tau * div + tau * lam * c * f) / (1.0 + tau * lam * c)
        kept.append(KeptIteration(u, u_bar, u_next, p_next, sampled))
        u, u_bar, p, q = u_next, u_next + theta * (u_next - u), p_next, q_next
    return (u, u_bar, p) if q is None else (u, u_bar, p, q), kept


@numba.njit(fastmath=True, error_model="numpy", cache=True)
def _back_row(
    grad_p: Array,
    pull: Array,
    pull_there: Array,
    p: Array,
    w: Array,
    shrink: Array,
    grad_w: Array,
    out: Array,
) -> None:
    """Gradient of p into `out`, and that of the bound added to `grad_w`."""
    factor = shrink[0]
    zero = shrink.dtype.type(0)
    for x in range(out.size):
        total = grad_p[x] + (pull[x] - pull_there[x])
        free = abs(p[x]) < w[x]
        out[x] = total * factor if free else zero
        signed = total if p[x] > 0 else (-total if p[x] < 0 else zero)
        grad_w[x] += zero if free else signed


@numba.njit(fastmath=True, cache=True)
def _sum_differences(t: Array, z: Array, z_there: Array) -> float:
    """Sum of t (z - z_there)."""
    total = t.dtype.type(0)
    for x in range(t.size):
        total += t[x] * (z[x] - z_there[x])
    return float(total)


@numba.njit(fastmath=True, cache=True)
def _sum_products(t: Array, p: Array) -> float:
    """Sum of t p."""
    total = t.dtype.type(0)
    for x in range(t.size):
        total += t[x] * p[x]
    return float(total)


@numba.njit(parallel=True, fastmath=True, error_model="numpy", cache=True)
def _back_bands(
    z: Array, pull: Array, p: Array, w: Array, offsets: Array, step: Array,
    grad_p: Array, grad_w: Array, flow: Array, halo: Array, sums: Array,
) -> None:  # fmt: skip
    """z, pull, flow: (B, H, W), p, w, grad_p, grad_w: (B, N, H, W), halo: (B, bands, reach, W).

    Turns `grad_p` into the gradient of the p before, adds to `grad_w`, and leaves K' t in `flow` and the sums
    of t D and t p of each band in `sums`: (B, bands, 2).
    """
    images, pairs, height, width = p.shape
    bands, reach = halo.shape[1], halo.shape[2]
    for job in numba.prange(images * bands):
        b, band, top, bottom = band_of(job, bands, height)
        flow[b, top:bottom] = 0
        halo[b, band] = 0
        sums[b, band] = 0
        new = np.empty_like(z[b, 0])
        for start in range(top, bottom, BLOCK_ROWS):
            for k in range(pairs):
                for y in range(start, min(start + BLOCK_ROWS, bottom)):
                    there, left, right = inner_ends(offsets[k], y, width)
                    old, bound, value, to_w = grad_p[b, k, y], w[b, k, y], p[b, k, y], grad_w[b, k, y]
                    here = pull[b, y]
                    for low, high in ((0, left), (right, width)):  # pairs that leave the image: no difference
                        part = here[low:high]
                        _back_row(
                            old[low:high], part, part, value[low:high], bound[low:high], step,
                            to_w[low:high], new[low:high],
                        )  # fmt: skip
                    if left < right:
                        a, e = left + offsets[k, 1], right + offsets[k, 1]
                        t = new[left:right]
                        _back_row(
                            old[left:right], here[left:right], pull[b, there, a:e], value[left:right],
                            bound[left:right], step, to_w[left:right], t,
                        )  # fmt: skip
                        owner = flow[b, there] if there >= top else halo[b, band, there - top + reach]
                        add_flow(t, flow[b, y, left:right], owner[a:e])
                        sums[b, band, 0] += _sum_differences(t, z[b, y, left:right], z[b, there, a:e])
                    sums[b, band, 1] += _sum_products(new, value)
                    grad_p[b, k, y] = new


def dual_backward(
    grad_p: Tensor,
    grad_div: Tensor,
    kept: KeptIteration,
    w: Tensor,
    offsets: Offsets,
    row: list[float],
    grad_w: Tensor,
) -> tuple[Tensor, float, float]:
    """Pass gradients back through p+ = clamp((p + sigma K u_bar) / (1 + sigma eps), -w, w) and div = K' p+.

    Args:
        grad_p: (B, N, H, W) gradient of p+; becomes that of p.
        grad_div: (B, 1, H, W) gradient of div.
        kept: of the iteration.
        w: (B, N, H, W) bounds.
        offsets: of a half window.
        row: coefficients of the iteration.
        grad_w: (B, N, H, W); the gradient of w is added to it.

    Returns:
        The gradients of u_bar, (B, 1, H, W), of sigma and of eps.
    """
    images, _, height, width = grad_p.shape
    sigma, eps = row[0], row[2]
    flow = torch.empty_like(grad_div)
    reach = max(1, max(-dy for dy, _ in offsets))
    bands = thread_count(images, height, reach)
    halo = np.empty((images, bands, reach, width), dtype=flow.numpy().dtype)
    sums = np.empty((images, bands, 2))
    shrink = np.array([1.0 / (1.0 + sigma * eps)], dtype=halo.dtype)
    _back_bands(
        kept.u_bar[:, 0].numpy(), grad_div[:, 0].numpy(), kept.p_next.numpy(), w.numpy(), np.array(offsets),
        shrink, grad_p.numpy(), grad_w.numpy(), flow[:, 0].numpy(), halo, sums,
    )  # fmt: skip
    add_halo(flow[:, 0].numpy(), halo)
    moved, shrunk = sums.sum(axis=(0, 1))
    return sigma * flow, float(moved - eps * shrunk), float(-sigma * shrunk)


def iterations_backward(
    grads: tuple[Tensor, ...],
    kept: list[KeptIteration],
    w: Tensor,
    data: tuple[Tensor, Tensor],
    coefficients: Tensor,
    offsets: Offsets,
    samples: SampleTerm | None,
) -> dict[str, Tensor]:
    """Undo all iterations, given the gradients of the last u, u_bar, p and, with samples, q.

    Args:
        grads: gradients of the last u, u_bar, p and, with samples, q.
        kept: from `iterations_kept`, as all that follows.
        w: (B, N, H, W) bounds.
        data: f and c, (B, 1, H, W).
        coefficients: of the iterations.
        offsets: of a half window.
        samples: of the sample term, or None.

    Returns:
        The gradients of u, u_bar, p, w, f, c, coefficients and, with samples, q, d and lam, in this order.
    """
    u, u_bar, p, *rest = (t.clone(memory_format=torch.contiguous_format) for t in grads)
    found = {"u": u, "u_bar": u_bar, "p": p}
    fixed = {"w": w, "f": data[0], "c": data[1], "coefficients": coefficients}
    found |= {name: torch.zeros_like(tensor) for name, tensor in fixed.items()}
    if samples is not None:
        found |= {"q": rest[0], "d": torch.zeros_like(samples.d), "lam": torch.zeros_like(samples.lam)}
    for n in range(len(kept) - 1, -1, -1):
        row = coefficients[n].tolist()
        numbers, grad_div = _undo(found, kept[n], w, data, row, offsets)
        if samples is not None:
            numbers.append(_undo_samples(found, kept[n], samples, grad_div, row[5]))
        found["coefficients"][n] = torch.tensor(numbers).to(coefficients)
    return found


def _undo(
    found: dict[str, Tensor],
    kept: KeptIteration,
    w: Tensor,
    data: tuple[Tensor, Tensor],
    row: list[float],
    offsets: Offsets,
) -> tuple[list[float], Tensor]:
    """Undo the primal step of an iteration and the dual step of its pairs.

    Gradients of the state are replaced by those before the iteration, the others added to.

    Returns:
        The gradients of sigma, tau, eps, lam and theta, and that of the divergence.
    """
    (f, c), (_, tau, _, lam, theta) = data, row[:5]
    bar, move, departure = found["u_bar"], kept.u_next - kept.u, f - kept.u_next
    h = (found["u"] + (1.0 + theta) * bar) / (1.0 + tau * lam * c)
    grad_div = -tau * h
    found["u"] = h - theta * bar
    found["f"] += tau * lam * c * h
    found["c"] += tau * lam * h * departure
    by_tau, by_lam, by_theta = (h * move).sum() / tau, (tau * c * h * departure).sum(), (bar * move).sum()
    found["u_bar"], by_sigma, by_eps = dual_backward(found["p"], grad_div, kept, w, offsets, row, found["w"])
    return [by_sigma, float(by_tau), by_eps, float(by_lam), float(by_theta)], grad_div


def _undo_samples(
    found: dict[str, Tensor], kept: KeptIteration, samples: SampleTerm, grad_div: Tensor, step: float
) -> float:
    """Undo q+ = lam a / (lam + step), a = q + step (A u_bar - d); return the gradient of the step."""
    (q, arrived), A, lam = kept.sampled, samples.A, samples.lam
    g = found["q"] + A(grad_div)
    t = lam * g / (lam + step)
    found["q"] = t
    found["u_bar"] = found["u_bar"] + A.adjoint(step * t)
    found["d"] -= step * t
    found["lam"] += g * arrived * step / (lam + step).square()
    departure = (arrived - q) / step
    return float((t * (departure - arrived / (lam + step))).sum())
