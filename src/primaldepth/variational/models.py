"""The seven models of the paper, each an `Energy` built from a guide and a data term."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import AfterValidator, Field
from torch import Tensor

from primaldepth.core.settings import NotNegative, Positive, Settings
from primaldepth.operators import (
    EdgeTensor,
    ForwardDifference,
    GradientMinusField,
    LinearOperator,
    PairwiseDifference,
    PairwiseSlope,
    SelectChannels,
    SymmetrizedGradient,
    half_window,
)
from primaldepth.operators.pairwise import Offset
from primaldepth.variational.affinities import edge_tensor, guide_affinities
from primaldepth.variational.energies import Energy, OnDepth, SimpleTerm, Term, Unconstrained
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Number, Penalty, Quadratic


def _odd(size: int) -> int:
    half_window(size)
    return size


WindowSize = Annotated[int, Field(ge=3, le=17), AfterValidator(_odd)]
Size = tuple[int, int]
Offsets = Sequence[Offset]


class ModelParameters(Settings):
    """Parameters of the regularisers; each model reads its own.

    Depth is expected in units in which the noise has standard deviation about 1.
    """

    beta: NotNegative = 9.0
    gamma: NotNegative = 0.85
    alpha_0: Positive = 2.0
    window: WindowSize = 7
    sigma_d: Positive = 3.0
    sigma_v: Positive = 0.1
    eps: NotNegative = 0.0


@dataclass(frozen=True, slots=True)
class DataTerm:
    """lam / 2 (A u - f)^2 or lam |A u - f|.

    Args:
        f: (B, 1, h, w) samples; any value where lam is 0.
        lam: (B, 1, h, w) weights >= 0: trust, confidence and validity in one map.
        norm: "l2" or "l1".
        A: how the sensor sees the depth, (1, H, W) -> (1, h, w); None if f lies on the grid of u.
    """

    f: Tensor
    lam: Tensor
    norm: Literal["l2", "l1"] = "l2"
    A: LinearOperator | None = None

    @property
    def penalty(self) -> Penalty:
        """Return the penalty of A u."""
        f = torch.where(self.lam > 0, self.f, 0.0)
        return Quadratic(f, self.lam) if self.norm == "l2" else Absolute(f, self.lam)

    def split(self, channels: int, size: tuple[int, int]) -> tuple[tuple[Term, ...], SimpleTerm]:
        """Split into a term with a dual variable, where samples come by an operator, and a simple term.

        Args:
            channels: of u.
            size: (H, W) of u.

        Returns:
            The terms with a dual variable, none or one, and the simple term.
        """
        if self.A is None:
            return (), OnDepth(self.penalty)
        K = self.A if channels == 1 else self.A @ SelectChannels((channels, *size), 0, 1)
        return (Term(K, self.penalty),), Unconstrained()


class PairOperators:
    """Makes the operators over the pairs of a window, for images of one size; here by their definition."""

    def __init__(self, size: Size, offsets: Offsets) -> None:
        self.size, self.offsets = size, offsets

    def difference(self, channels: int = 1) -> LinearOperator:
        """Return u(x) - u(y) of every pair and channel.

        Args:
            channels: of u.

        Returns:
            Operator (channels, H, W) -> (channels * N, H, W).
        """
        return PairwiseDifference(self.size, self.offsets, channels)

    def slope(self) -> LinearOperator:
        """Return the departure of every pair from the plane through its slopes, (3, H, W) -> (N, H, W)."""
        return PairwiseSlope(self.size, self.offsets)


def _size(image: Tensor) -> Size:
    return image.shape[2], image.shape[3]


@dataclass(frozen=True, slots=True)
class EnergyModel:
    """A family of regularisers, the data norm that goes with it, and how many primal channels it needs."""

    family: Literal["atv", "atgv", "nltv", "nlh", "nltgv"]
    norm: Literal["l2", "l1"]
    channels: int

    @property
    def is_local(self) -> bool:
        """Return whether the guide is read through an edge tensor, and not through weights of pairs."""
        return self.family in ("atv", "atgv")

    def terms(
        self, support: Tensor, pairs: PairOperators, *, alpha_0: Number, eps: Number
    ) -> tuple[Term, ...]:
        """Return the terms of the regulariser.

        Args:
            support: (B, 3, H, W) edge tensor of a local model, else (B, N, H, W) weights of the pairs.
            pairs: makes the operators of a model that is not local.
            alpha_0: weight of the second order, where the model has one.
            eps: width of Huber's quadratic part, where the model has one.
        """
        size = _size(support)
        slopes = SelectChannels((3, *size), 1, 3)
        if self.family == "atv":  # |T grad u|
            return (Term(EdgeTensor(support) @ ForwardDifference(size), GroupNorm(1.0)),)
        if self.family == "atgv":  # |T (grad u - v)| + alpha_0 |E v|
            first = Term(EdgeTensor(support) @ GradientMinusField(size), GroupNorm(1.0))
            return first, Term(SymmetrizedGradient(size) @ slopes, GroupNorm(alpha_0))
        if self.family == "nltgv":  # sum w |u(x) - u(y) - <v, x - y>| + alpha_0 sum w |v(x) - v(y)|
            second = Huber(alpha_0 * support.repeat(1, 2, 1, 1))
            return Term(pairs.slope(), Huber(support)), Term(pairs.difference(channels=2) @ slopes, second)
        eps = eps if self.family == "nlh" else 0.0  # sum w |u(x) - u(y)|_eps; eps = 0 is non-local TV
        return (Term(pairs.difference(), Huber(support, eps)),)


MODELS: dict[str, EnergyModel] = {
    "atv-l2": EnergyModel("atv", "l2", 1),
    "atgv-l2": EnergyModel("atgv", "l2", 3),
    "nltv-l2": EnergyModel("nltv", "l2", 1),
    "nlh-l2": EnergyModel("nlh", "l2", 1),
    "nlh-l1": EnergyModel("nlh", "l1", 1),
    "nltgv-l2": EnergyModel("nltgv", "l2", 3),
    "nltgv-l1": EnergyModel("nltgv", "l1", 3),
}


def build_energy(name: str, guide: Tensor, data: DataTerm, parameters: ModelParameters) -> Energy:
    """Build the energy of a model on the guide's grid.

    Args:
        name: of `MODELS`, such as "nlh-l2".
        guide: (B, C, H, W) in [0, 1].
        data: its norm should be that of the model.
        parameters: of the regulariser; each model reads its own.

    Returns:
        The energy, ready for `solve`.

    Example:
        >>> import torch
        >>> from primaldepth.variational import DataTerm, ModelParameters, build_energy
        >>> guide, f = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8)
        >>> energy = build_energy("nlh-l2", guide, DataTerm(f, torch.ones_like(f)), ModelParameters())
        >>> len(energy.terms), energy.terms[0].K.out_shape  # one term: 24 pairs a pixel
        (1, (24, 8, 8))
    """
    model, q = MODELS[name], parameters
    size, offsets = _size(guide), half_window(q.window)
    if model.is_local:
        support = edge_tensor(guide, q.beta, q.gamma)
    else:
        support = guide_affinities(guide, offsets, q.sigma_d, q.sigma_v)
    data_terms, G = data.split(model.channels, size)
    terms = model.terms(support, PairOperators(size, offsets), alpha_0=q.alpha_0, eps=q.eps)
    return Energy(terms + data_terms, G)
