"""The seven models of the paper, each an `Energy` built from a guide and a data term."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from primaldepth.core.settings import Settings
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
from primaldepth.variational.affinities import edge_tensor, guide_affinities
from primaldepth.variational.energies import Energy, OnDepth, SimpleTerm, Term, Unconstrained
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Penalty, Quadratic


class ModelParameters(Settings):
    """Parameters of the regularisers; each model reads its own.

    Depth is expected in units in which the noise has standard deviation about 1.
    """

    beta: float = 9.0
    gamma: float = 0.85
    alpha_0: float = 2.0
    window: int = 7
    sigma_d: float = 3.0
    sigma_v: float = 0.1
    eps: float = 0.0


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
        return Quadratic(self.f, self.lam) if self.norm == "l2" else Absolute(self.f, self.lam)

    def split(self, channels: int, size: tuple[int, int]) -> tuple[tuple[Term, ...], SimpleTerm]:
        """On the grid of u it is a simple term; through an operator it gets a dual variable."""
        if self.A is None:
            return (), OnDepth(self.penalty)
        K = self.A if channels == 1 else self.A @ SelectChannels((channels, *size), 0, 1)
        return (Term(K, self.penalty),), Unconstrained()


def _atv(guide: Tensor, size: tuple[int, int], q: ModelParameters) -> tuple[Term, ...]:
    """|T grad u|."""
    T = EdgeTensor(edge_tensor(guide, q.beta, q.gamma))
    return (Term(T @ ForwardDifference(size), GroupNorm(1.0)),)


def _atgv(guide: Tensor, size: tuple[int, int], q: ModelParameters) -> tuple[Term, ...]:
    """|T (grad u - v)| + alpha_0 |E v|."""
    T = EdgeTensor(edge_tensor(guide, q.beta, q.gamma))
    slopes = SymmetrizedGradient(size) @ SelectChannels((3, *size), 1, 3)
    return Term(T @ GradientMinusField(size), GroupNorm(1.0)), Term(slopes, GroupNorm(q.alpha_0))


def _nltv(guide: Tensor, size: tuple[int, int], q: ModelParameters) -> tuple[Term, ...]:
    """Sum w |u(x) - u(y)|."""
    return _nlh(guide, size, q.model_copy(update={"eps": 0.0}))


def _nlh(guide: Tensor, size: tuple[int, int], q: ModelParameters) -> tuple[Term, ...]:
    """Sum w |u(x) - u(y)|_eps."""
    offsets = half_window(q.window)
    w = guide_affinities(guide, offsets, q.sigma_d, q.sigma_v)
    return (Term(PairwiseDifference(size, offsets), Huber(w, q.eps)),)


def _nltgv(guide: Tensor, size: tuple[int, int], q: ModelParameters) -> tuple[Term, ...]:
    """Sum w |u(x) - u(y) - <v, x - y>| + alpha_0 sum w |v(x) - v(y)|."""
    offsets = half_window(q.window)
    w = guide_affinities(guide, offsets, q.sigma_d, q.sigma_v)
    slopes = PairwiseDifference(size, offsets, channels=2) @ SelectChannels((3, *size), 1, 3)
    return Term(PairwiseSlope(size, offsets), Huber(w)), Term(slopes, Huber(q.alpha_0 * w.repeat(1, 2, 1, 1)))


@dataclass(frozen=True, slots=True)
class Model:
    """A regulariser, the data norm that goes with it, and how many primal channels it needs."""

    regulariser: Callable[[Tensor, tuple[int, int], ModelParameters], tuple[Term, ...]]
    norm: Literal["l2", "l1"]
    channels: int


MODELS: dict[str, Model] = {
    "atv-l2": Model(_atv, "l2", 1),
    "atgv-l2": Model(_atgv, "l2", 3),
    "nltv-l2": Model(_nltv, "l2", 1),
    "nlh-l2": Model(_nlh, "l2", 1),
    "nlh-l1": Model(_nlh, "l1", 1),
    "nltgv-l2": Model(_nltgv, "l2", 3),
    "nltgv-l1": Model(_nltgv, "l1", 3),
}


def build_energy(name: str, guide: Tensor, data: DataTerm, parameters: ModelParameters) -> Energy:
    """The energy `name` on the guide's grid.

    Args:
        guide: (B, C, H, W) in [0, 1].
        data: its norm should be that of the model.
    """
    model = MODELS[name]
    size = (int(guide.shape[2]), int(guide.shape[3]))
    data_terms, G = data.split(model.channels, size)
    return Energy(model.regulariser(guide, size, parameters) + data_terms, G)
