"""The kernels of the CPU, compiled by numba, in two tables: of the terms, and of the descent after them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from primaldepth.operators.base import Parts
from primaldepth.operators.differences import ForwardDifference, GradientMinusField, SymmetrizedGradient
from primaldepth.operators.local.cpu import bend_step, edge_step
from primaldepth.operators.local.descent import descend
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope
from primaldepth.operators.pairwise.cpu import dual_step
from primaldepth.operators.pairwise.cpu_slope import slope_step
from primaldepth.operators.pairwise.cpu_value import pair_value
from primaldepth.operators.pointwise import EdgeTensor, SelectChannels
from primaldepth.operators.sampling import Resample
from primaldepth.operators.sampling.cpu import reduce, spread
from primaldepth.variational.energies import SimpleTerm, Unconstrained
from primaldepth.variational.kernels import DualUpdate, TermKernel, WeightedStep, as_number
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Number, Penalty, Quadratic


def _tensors(*values: object) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _readable(*values: object) -> bool:
    """Return whether all tensors among them are float32, or all float64, and none needs a gradient."""
    tensors = _tensors(*values)
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return not learning and {t.dtype for t in tensors} in ({torch.float32}, {torch.float64})


def _fits(update: DualUpdate) -> bool:
    """Whether p and u_bar have the operator's own shapes, and the step is a number or a tensor."""
    images, K = update.u_bar.shape[0], update.K
    shapes = update.u_bar.shape[1:] == K.in_shape and update.p.shape == (images, *K.out_shape)
    return shapes and not isinstance(update.sigma, WeightedStep)


def _reads_pairs(K: Any, F: Huber, *given: Tensor) -> bool:
    """Return whether weights are a map, eps a number, and all pairs reach up, or left in their own row."""
    half = all(dy < 0 or (dy == 0 and dx < 0) for dy, dx in K.offsets)
    usual = isinstance(F.w, Tensor) and not isinstance(F.eps, Tensor)
    return usual and half and K.sign < 0 and _readable(*given, F.w)


def _weighted(update: DualUpdate) -> WeightedStep:
    """Return a dual step size as base + slope * w; a single number becomes the base, with slope 0."""
    sigma = update.sigma
    return sigma if isinstance(sigma, WeightedStep) else WeightedStep(float(sigma), 0.0, update.F.w)


def _can_slope(update: DualUpdate) -> bool:
    """Return whether the step is a number, or a `WeightedStep` on the penalty's own weights."""
    F = update.F
    by_weights = not isinstance(update.sigma, Tensor) and _weighted(update).w is F.w
    return by_weights and _reads_pairs(update.K, F, update.p, update.u_bar)


def _can_pair(update: DualUpdate) -> bool:
    """Return whether kernels can do the step of pairs: as `_can_slope`, but not a step for every pair."""
    return _can_slope(update) and _weighted(update).rows is None


def _numbers(update: DualUpdate) -> tuple[float, float, float]:
    """Return (base, slope, eps): the step of a pair is base + slope w."""
    step = _weighted(update)
    return step.base, step.slope, update.F.eps


def _pair_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    K, p = update.K, update.p
    images, channels = update.u_bar.shape[0], K.in_shape[0]
    folded = (images * channels, len(K.offsets), *K.size)  # every channel is an image of its own
    u_bar, w = update.u_bar.reshape(-1, 1, *K.size), update.F.w.expand(p.shape).reshape(folded)
    memory = None if out is None else out.view(folded)
    p_next, divergence = dual_step(u_bar, p.reshape(folded), w, K.offsets, _numbers(update), memory)
    return p_next.view(p.shape), divergence.view(images, channels, *K.size)


def _pair_value(K: Any, F: Any, u: Tensor) -> Tensor:
    images = u.shape[0]
    w = F.w.expand(images, *K.out_shape).reshape(-1, len(K.offsets), *K.size)
    return pair_value(u.reshape(-1, 1, *K.size), w, K.offsets, F.eps).view(images, -1).sum(dim=1)


def _slope_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    w, rows = update.F.w.expand(update.p.shape), _weighted(update).rows
    return slope_step(update.u_bar, update.p, w, update.K.offsets, _numbers(update), rows, out)


def _slope_value(K: Any, F: Any, u: Tensor) -> Tensor:
    return pair_value(u, F.w.expand(u.shape[0], *K.out_shape), K.offsets, F.eps)


def _selected(update: DualUpdate) -> DualUpdate:
    """Rewrite an update with K = outer(inner(x)) as one with K = outer, which reads inner(u_bar)."""
    return replace(update, K=update.K.outer, u_bar=update.K.inner(update.u_bar))


def _selected_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    p, divergence = _pair_step(_selected(update), out)
    return p, update.K.inner.adjoint(divergence)


def _is_local(update: DualUpdate, *given: Tensor) -> bool:
    """Whether the kernels of next neighbours can read the update and what else is given."""
    p, sigma, w = update.p, update.sigma, update.F.w
    if not _fits(update):
        return False
    maps = all(_is_per_pixel(values, p) for values in _tensors(sigma, w))
    return maps and _readable(p, update.u_bar, sigma, w, *given)


def _is_per_pixel(values: Tensor, p: Tensor) -> bool:
    """Whether they are one number, or a map of one channel."""
    whole = values.ndim == 4 and values.shape[0] in (1, p.shape[0])
    return values.numel() == 1 or (whole and values.shape[1:] == (1, *p.shape[2:]))


def _can_edge(update: DualUpdate) -> bool:
    """Return whether the term takes differences, not sums, with one edge tensor for all images or each."""
    T = update.K.outer.tensor
    return update.K.inner.sign < 0 and len(T) in (1, len(update.p)) and _is_local(update, T)


def _edge_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    return edge_step(update.u_bar, update.p, update.K.outer.tensor, as_number(update.sigma), update.F.w, out)


def _can_bend(update: DualUpdate) -> bool:
    return update.K.outer.sign < 0 and _is_local(update)


def _bend_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    return bend_step(update.u_bar, update.p, update.K.inner.first, as_number(update.sigma), update.F.w, out)


def _resampling(K: Any) -> tuple[Resample, int]:
    """Return the operator by which samples come from the image, and the channel it reads."""
    return (K, 0) if len(K.parts) == 1 else (K.outer, K.inner.first)


def _can_sample(update: DualUpdate) -> bool:
    """Return whether samples, weights and steps fit the batch of images."""
    F, sigma = update.F, update.sigma
    if not _fits(update) or _resampling(update.K)[0].in_shape[0] != 1:
        return False
    images = all(values.ndim < 4 or len(values) in (1, len(update.p)) for values in _tensors(F.f, F.lam))
    return images and _readable(update.p, update.u_bar, sigma, F.f, F.lam)


def _sample_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    (A, channel), sigma = _resampling(update.K), as_number(update.sigma)
    p = update.F.prox_conjugate(update.p + sigma * reduce(A, update.u_bar, channel), sigma)
    return p, spread(A, p, update.K.in_shape[0], channel)


_EDGES, _SAMPLES = TermKernel(_can_edge, _edge_step), TermKernel(_can_sample, _sample_step)

TERMS: dict[tuple[Parts, type[Penalty]], TermKernel] = {
    ((PairwiseDifference,), Huber): TermKernel(_can_pair, _pair_step, _reads_pairs, _pair_value),
    ((PairwiseDifference, SelectChannels), Huber): TermKernel(
        lambda update: _can_pair(_selected(update)),
        _selected_step,
        lambda K, F, u: _reads_pairs(K.outer, F, K.inner(u)),
        lambda K, F, u: _pair_value(K.outer, F, K.inner(u)),
    ),
    ((PairwiseSlope,), Huber): TermKernel(_can_slope, _slope_step, _reads_pairs, _slope_value),
    ((EdgeTensor, ForwardDifference), GroupNorm): _EDGES,
    ((EdgeTensor, GradientMinusField), GroupNorm): _EDGES,
    ((SymmetrizedGradient, SelectChannels), GroupNorm): TermKernel(_can_bend, _bend_step),
    ((Resample,), Quadratic): _SAMPLES,
    ((Resample,), Absolute): _SAMPLES,
    ((Resample, SelectChannels), Quadratic): _SAMPLES,
    ((Resample, SelectChannels), Absolute): _SAMPLES,
}
"""Kernels of a term F(K u) by the parts of K, outermost first, and the type of F."""


class Descent:
    """u+ = u - tau sum(pulls) and u_bar = u+ + theta (u+ - u), for an energy without a simple term."""

    run = staticmethod(descend)

    def fits(self, u: Tensor, pulls: list[Tensor], tau: Number, theta: Number) -> bool:
        """Return whether the step is a number or a map of the shape of u, and theta a number.

        Args:
            u: (B, C, H, W).
            pulls: each of the shape of u.
            tau: primal step.
            theta: of the extrapolation.
        """
        if not pulls or any(pull.shape != u.shape for pull in pulls):
            return False
        numbers = all(t.numel() == 1 for t in _tensors(theta))
        maps = all(t.numel() == 1 or t.shape in (u.shape, (1, *u.shape[1:])) for t in _tensors(tau))
        return numbers and maps and _readable(u, *pulls, tau, theta)


DESCENTS: dict[type[SimpleTerm], Descent] = {Unconstrained: Descent()}
"""Kernels of the primal update by the type of the energy's simple term."""
