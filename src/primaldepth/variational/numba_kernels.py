"""The kernels of the CPU, compiled by numba, in two tables: of the terms, and of the descent after them."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from primaldepth.operators.base import Parts
from primaldepth.operators.channel_selection import SelectChannels
from primaldepth.operators.differences import ForwardDifference, GradientMinusField, SymmetrizedGradient
from primaldepth.operators.local.cpu import bend_step, edge_step
from primaldepth.operators.local.descent import descend
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope
from primaldepth.operators.pairwise.cpu import dual_step
from primaldepth.operators.pairwise.cpu_slope import slope_step
from primaldepth.operators.pairwise.cpu_value import pair_value
from primaldepth.operators.pointwise import EdgeTensor
from primaldepth.operators.sampling import Resample
from primaldepth.operators.sampling.cpu import reduce, spread
from primaldepth.variational.energies import SimpleTerm, Unconstrained
from primaldepth.variational.kernels import DualUpdate, TermKernel, WeightedStep
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Number, Penalty, Quadratic


def _tensors(*values: object) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _readable(*values: object) -> bool:
    """All tensors among them are float32, or all float64, and none is to be differentiated."""
    tensors = _tensors(*values)
    learning = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return not learning and {t.dtype for t in tensors} in ({torch.float32}, {torch.float64})


def _fits(update: DualUpdate) -> bool:
    """Whether p and u_bar have the operator's own shapes."""
    images, K = update.u_bar.shape[0], update.K
    return update.u_bar.shape[1:] == K.in_shape and update.p.shape == (images, *K.out_shape)


class PairKernel(TermKernel):
    """Differences over the pairs of a half window, under Huber's penalty."""

    takes_rows = False  # whether every pair may have a step of its own

    def can_step(self, update: DualUpdate) -> bool:
        """A step that is one number, or the numbers of a `WeightedStep` on the penalty's own weights."""
        F, sigma = update.F, update.sigma
        if isinstance(sigma, Tensor) or not self._reads(update.K, F, update.p, update.u_bar):
            return False
        if not isinstance(sigma, WeightedStep):
            return True
        return sigma.w is F.w and (sigma.rows is None or self.takes_rows)

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """One pass over the pairs; every channel is an image of its own."""
        K, p = update.K, update.p
        images, channels = update.u_bar.shape[0], K.in_shape[0]
        folded = (images * channels, len(K.offsets), *K.size)
        p_next, divergence = dual_step(
            update.u_bar.reshape(-1, 1, *K.size),
            p.reshape(folded),
            update.F.w.expand(p.shape).reshape(folded),
            K.offsets,
            _numbers(update),
            None if out is None else out.view(folded),
        )
        return p_next.view(p.shape), divergence.view(images, channels, *K.size)

    def has_value(self, K: Any, F: Huber, u: Tensor) -> bool:
        """The same conditions as for a step."""
        return self._reads(K, F, u)

    def value(self, K: Any, F: Any, u: Tensor) -> Tensor:
        """Sums without a tensor of differences."""
        images = u.shape[0]
        w = F.w.expand(images, *K.out_shape).reshape(-1, len(K.offsets), *K.size)
        values = pair_value(u.reshape(-1, 1, *K.size), w, K.offsets, F.eps)
        return values.view(images, -1).sum(dim=1)

    def _reads(self, K: Any, F: Huber, *given: Tensor) -> bool:
        """Weights as a map, eps as a number, and pairs that all reach up, or left in their own row."""
        half = all(dy < 0 or (dy == 0 and dx < 0) for dy, dx in K.offsets)
        usual = isinstance(F.w, Tensor) and not isinstance(F.eps, Tensor)
        return usual and half and K.sign < 0 and _readable(*given, F.w)


class SlopeKernel(PairKernel):
    """Departures of pairs from their plane, under Huber's penalty."""

    takes_rows = True

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """One pass over the pairs."""
        K, p, sigma = update.K, update.p, update.sigma
        rows = sigma.rows if isinstance(sigma, WeightedStep) else None
        w = update.F.w.expand(p.shape)
        return slope_step(update.u_bar, p, w, K.offsets, _numbers(update), rows, out)

    def value(self, K: Any, F: Any, u: Tensor) -> Tensor:
        """Sums without a tensor of departures."""
        return pair_value(u, F.w.expand(u.shape[0], *K.out_shape), K.offsets, F.eps)


def _numbers(update: DualUpdate) -> tuple[float, float, float]:
    """(base, slope, eps): the step of a pair is base + slope w."""
    sigma, eps = update.sigma, update.F.eps
    return (sigma.base, sigma.slope, eps) if isinstance(sigma, WeightedStep) else (float(sigma), 0.0, eps)


class SelectedPairKernel(TermKernel):
    """`PairKernel` on some channels of the primal variable."""

    pairs = PairKernel()

    def can_step(self, update: DualUpdate) -> bool:
        """Whether the pairs can be updated."""
        return self.pairs.can_step(_selected(update))

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """The update of the pairs; its pull is 0 in the other channels."""
        p, divergence = self.pairs.step(_selected(update), out)
        return p, update.K.inner.adjoint(divergence)

    def has_value(self, K: Any, F: Huber, u: Tensor) -> bool:
        """Whether the pairs have one."""
        return self.pairs.has_value(K.outer, F, K.inner(u))

    def value(self, K: Any, F: Huber, u: Tensor) -> Tensor:
        """That of the pairs."""
        return self.pairs.value(K.outer, F, K.inner(u))


def _selected(update: DualUpdate) -> DualUpdate:
    return replace(update, K=update.K.outer, u_bar=update.K.inner(update.u_bar))


class EdgeKernel(TermKernel):
    """T grad u and T (grad u - v), under the norm of each pixel."""

    def can_step(self, update: DualUpdate) -> bool:
        """Steps and weights that are numbers or maps of one channel; not the sums that `magnitude` makes."""
        T = update.K.outer.tensor
        return _is_difference(update.K.inner) and len(T) in (1, len(update.p)) and _is_local(update, T)

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """One pass over the rows."""
        T = update.K.outer.tensor
        return edge_step(update.u_bar, update.p, T, update.step, update.F.w, out)


class BendKernel(TermKernel):
    """E v, under the norm of each pixel."""

    def can_step(self, update: DualUpdate) -> bool:
        """Conditions as of `EdgeKernel`."""
        return update.K.outer.sign == -1 and _is_local(update)

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """One pass over the rows."""
        first = update.K.inner.first
        return bend_step(update.u_bar, update.p, first, update.step, update.F.w, out)


def _is_difference(K: ForwardDifference | GradientMinusField) -> bool:
    if isinstance(K, GradientMinusField):
        return K.gradient.sign == K.field_sign == -1
    return K.sign == -1


def _is_local(update: DualUpdate, *given: Tensor) -> bool:
    """Whether the kernels of next neighbours can read the update and what else is given."""
    p, sigma, w = update.p, update.sigma, update.F.w
    if isinstance(sigma, WeightedStep) or not _fits(update):
        return False
    maps = all(_is_per_pixel(values, p) for values in _tensors(sigma, w))
    return maps and _readable(p, update.u_bar, sigma, w, *given)


def _is_per_pixel(values: Tensor, p: Tensor) -> bool:
    """Whether they are one number, or a map of one channel."""
    whole = values.ndim == 4 and values.shape[0] in (1, p.shape[0])
    return values.numel() == 1 or (whole and values.shape[1:] == (1, *p.shape[2:]))


class SampleKernel(TermKernel):
    """Data seen through resampling, by any penalty: A u, or A on one channel of u."""

    def can_step(self, update: DualUpdate) -> bool:
        """Samples, weights and steps that do not add images to the batch."""
        F, sigma = update.F, update.sigma
        if isinstance(sigma, WeightedStep) or not _fits(update) or _operator(update.K)[0].in_shape[0] != 1:
            return False
        images = all(values.ndim < 4 or len(values) in (1, len(update.p)) for values in _tensors(F.f, F.lam))
        return images and _readable(update.p, update.u_bar, sigma, F.f, F.lam)

    def step(self, update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
        """The penalty's own map between the two products; `out` is not used."""
        A, channel = _operator(update.K)
        sigma = update.step
        p = update.F.prox_conjugate(update.p + sigma * reduce(A, update.u_bar, channel), sigma)
        return p, spread(A, p, update.K.in_shape[0], channel)


def _operator(K: Any) -> tuple[Resample, int]:
    """The resampling, and the channel it reads."""
    return (K, 0) if len(K.parts) == 1 else (K.outer, K.inner.first)


class Descent:
    """u+ = u - tau sum(pulls) and u_bar = u+ + theta (u+ - u), for an energy without a simple term."""

    def fits(self, u: Tensor, pulls: list[Tensor], tau: Number, theta: Number) -> bool:
        """Whether the step is a number or a map of the shape of u, and theta a number."""
        if not pulls or any(pull.shape != u.shape for pull in pulls):
            return False
        numbers = all(t.numel() == 1 for t in _tensors(theta))
        shapes = (u.shape, (1, *u.shape[1:]))
        maps = all(t.numel() == 1 or t.shape in shapes for t in _tensors(tau))
        return numbers and maps and _readable(u, *pulls, tau, theta)

    def run(self, u: Tensor, pulls: list[Tensor], tau: Number, theta: Number) -> tuple[Tensor, Tensor]:
        """In one pass over memory."""
        return descend(u, pulls, tau, theta)


_PAIRS, _EDGES, _SAMPLES = PairKernel(), EdgeKernel(), SampleKernel()

TERMS: dict[tuple[Parts, type[Penalty]], TermKernel] = {
    ((PairwiseDifference,), Huber): _PAIRS,
    ((PairwiseDifference, SelectChannels), Huber): SelectedPairKernel(),
    ((PairwiseSlope,), Huber): SlopeKernel(),
    ((EdgeTensor, ForwardDifference), GroupNorm): _EDGES,
    ((EdgeTensor, GradientMinusField), GroupNorm): _EDGES,
    ((SymmetrizedGradient, SelectChannels), GroupNorm): BendKernel(),
    ((Resample,), Quadratic): _SAMPLES,
    ((Resample,), Absolute): _SAMPLES,
    ((Resample, SelectChannels), Quadratic): _SAMPLES,
    ((Resample, SelectChannels), Absolute): _SAMPLES,
}
"""Kernels of a term F(K u) by the parts of K, outermost first, and the type of F."""

DESCENTS: dict[type[SimpleTerm], Descent] = {Unconstrained: Descent()}
"""Kernels of the primal update by the type of the energy's simple term."""
