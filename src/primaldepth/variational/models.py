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


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("a window has an odd number of pixels on each side")
    return value


Window = Annotated[int, Field(ge=3, le=17), AfterValidator(_odd)]
Size = tuple[int, int]
Offsets = Sequence[Offset]


class ModelParameters(Settings):
    """Parameters of the regularisers; each model reads its own.

    Depth is expected in units in which the noise has standard deviation about 1.
    """

    beta: NotNegative = 9.0
    gamma: NotNegative = 0.85
    alpha_0: Positive = 2.0
    window: Window = 7
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
        """The penalty of A u."""
        f = torch.where(self.lam > 0, self.f, 0.0)
        return Quadratic(f, self.lam) if self.norm == "l2" else Absolute(f, self.lam)

    def split(self, channels: int, size: tuple[int, int]) -> tuple[tuple[Term, ...], SimpleTerm]:
        """On the grid of u it is a simple term; through an operator it gets a dual variable."""
        if self.A is None:
            return (), OnDepth(self.penalty)
        K = self.A if channels == 1 else self.A @ SelectChannels((channels, *size), 0, 1)
        return (Term(K, self.penalty),), Unconstrained()


def atv_terms(T: Tensor, size: Size) -> tuple[Term, ...]:
    """|T grad u|."""
    return (Term(EdgeTensor(T) @ ForwardDifference(size), GroupNorm(1.0)),)


def atgv_terms(T: Tensor, size: Size, alpha_0: Number) -> tuple[Term, ...]:
    """|T (grad u - v)| + alpha_0 |E v|."""
    slopes = SymmetrizedGradient(size) @ SelectChannels((3, *size), 1, 3)
    return Term(EdgeTensor(T) @ GradientMinusField(size), GroupNorm(1.0)), Term(slopes, GroupNorm(alpha_0))


def nlh_terms(w: Tensor, offsets: Offsets, size: Size, eps: Number) -> tuple[Term, ...]:
    """Sum w |u(x) - u(y)|_eps; eps = 0 is non-local TV."""
    return (Term(PairwiseDifference(size, offsets), Huber(w, eps)),)


def nltgv_terms(w: Tensor, offsets: Offsets, size: Size, alpha_0: Number) -> tuple[Term, ...]:
    """Sum w |u(x) - u(y) - <v, x - y>| + alpha_0 sum w |v(x) - v(y)|."""
    slopes = PairwiseDifference(size, offsets, channels=2) @ SelectChannels((3, *size), 1, 3)
    return Term(PairwiseSlope(size, offsets), Huber(w)), Term(slopes, Huber(alpha_0 * w.repeat(1, 2, 1, 1)))


@dataclass(frozen=True, slots=True)
class Model:
    """A family of regularisers, the data norm that goes with it, and how many primal channels it needs."""

    family: Literal["atv", "atgv", "nltv", "nlh", "nltgv"]
    norm: Literal["l2", "l1"]
    channels: int

    @property
    def is_local(self) -> bool:
        """Local models read the guide through an edge tensor, the others through pairwise weights."""
        return self.family in ("atv", "atgv")

    def terms(
        self, support: Tensor, offsets: Offsets, size: Size, *, alpha_0: Number, eps: Number
    ) -> tuple[Term, ...]:
        """The regulariser.

        Args:
            support: (B, 3, H, W) edge tensor of a local model, else (B, N, H, W) weights of the pairs.
        """
        if self.family == "atv":
            return atv_terms(support, size)
        if self.family == "atgv":
            return atgv_terms(support, size, alpha_0)
        if self.family == "nltgv":
            return nltgv_terms(support, offsets, size, alpha_0)
        return nlh_terms(support, offsets, size, eps if self.family == "nlh" else 0.0)


MODELS: dict[str, Model] = {
    "atv-l2": Model("atv", "l2", 1),
    "atgv-l2": Model("atgv", "l2", 3),
    "nltv-l2": Model("nltv", "l2", 1),
    "nlh-l2": Model("nlh", "l2", 1),
    "nlh-l1": Model("nlh", "l1", 1),
    "nltgv-l2": Model("nltgv", "l2", 3),
    "nltgv-l1": Model("nltgv", "l1", 3),
}


def build_energy(name: str, guide: Tensor, data: DataTerm, parameters: ModelParameters) -> Energy:
    """The energy `name` on the guide's grid.

    Args:
        guide: (B, C, H, W) in [0, 1].
        data: its norm should be that of the model.

    Example:
        >>> import torch
        >>> from primaldepth.variational import DataTerm, ModelParameters, build_energy
        >>> guide, f = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8)
        >>> energy = build_energy("nlh-l2", guide, DataTerm(f, torch.ones_like(f)), ModelParameters())
        >>> len(energy.terms), energy.terms[0].K.out_shape  # one term: 24 pairs a pixel
        (1, (24, 8, 8))
    """
    model, q = MODELS[name], parameters
    size = (int(guide.shape[2]), int(guide.shape[3]))
    offsets = half_window(q.window)
    if model.is_local:
        support = edge_tensor(guide, q.beta, q.gamma)
    else:
        support = guide_affinities(guide, offsets, q.sigma_d, q.sigma_v)
    data_terms, G = data.split(model.channels, size)
    return Energy(model.terms(support, offsets, size, alpha_0=q.alpha_0, eps=q.eps) + data_terms, G)
