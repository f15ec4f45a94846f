"""The primal-dual network: n iterations of the primal-dual step with coefficients learned for each."""

import math

import torch
from torch import Tensor, nn

from primaldepth.operators.pairwise import half_window
from primaldepth.variational.affinities import edge_tensor, support_weights
from primaldepth.variational.energies import Energy, OnDepth
from primaldepth.variational.huber_iterations import huber_from_affinities
from primaldepth.variational.models import MODELS
from primaldepth.variational.penalties import Absolute, Quadratic
from primaldepth.variational.primal_dual import State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes

# The iteration on depth of unit spread: the noise left in the first estimate is a few hundredths.
LAMBDA, LAMBDA_L1, EPSILON, SIGMA_D, SIGMA_V, ALPHA_0, BETA, GAMMA = (
    20.0,
    1.0,
    0.01,
    2.0,
    0.05,
    2.0,
    9.0,
    0.85,
)
DUAL_TO_PRIMAL = 400.0  # sigma / tau
COEFFICIENTS = ("sigma", "tau", "eps", "lam", "theta")
FUSED = ("nlh-l2", "nltv-l2")  # have kernels of their own


class PrimalDualNet(nn.Module):
    """u = argmin R(u; affinities) + lam/2 sum c (u - f)^2, by n unrolled iterations.

    All parameters are stored as logarithms, so they stay positive. Untrained, every iteration has
    the classical step sizes tau sigma L^2 = 1: the network is the classical solver, stopped after
    n iterations.

    Args:
        iterations: n.
        window: size of the non-local window.
        model: one of the seven energies.
    """

    def __init__(self, iterations: int = 20, window: int = 7, model: str = "nlh-l2") -> None:
        super().__init__()
        if model not in MODELS:
            raise ValueError(f"model '{model}' is not one of {', '.join(MODELS)}")
        self.model, self.name, self.offsets = MODELS[model], model, half_window(window)
        self.radius = iterations * (window // 2 if not self.model.is_local else 1)
        start = torch.tensor(self._classical_steps()).log()
        self.log_coefficients = nn.Parameter(start.repeat(iterations, 1))
        support = (BETA, GAMMA) if self.model.is_local else (SIGMA_D, SIGMA_V)
        self.log_support = nn.Parameter(torch.tensor(support).log())
        if self.model.channels == 3:
            self.log_alpha_0 = nn.Parameter(torch.full((iterations,), math.log(ALPHA_0)))

    @staticmethod
    def parameters_of(iterations: int, model: str) -> int:
        """Count the parameters of a solver that is not built yet; arguments as for the class."""
        own = len(COEFFICIENTS) + (MODELS[model].channels == 3)
        return iterations * own + 2

    def _classical_steps(self) -> tuple[float, float, float, float, float]:
        size = (64, 64)
        shape = (1, 3, *size) if self.model.is_local else (1, len(self.offsets), *size)
        terms = self.model.terms(torch.ones(shape), self.offsets, size, alpha_0=ALPHA_0, eps=EPSILON)
        L = math.sqrt(sum(term.K.norm_bound**2 for term in terms))
        ratio = math.sqrt(DUAL_TO_PRIMAL)
        lam = LAMBDA if self.model.norm == "l2" else LAMBDA_L1
        return ratio / L, 1.0 / (ratio * L), EPSILON, lam, 1.0

    def resampled(self, count: int) -> "PrimalDualNet":
        """With `count` iterations: log coefficients linear between those of the learned ones."""
        window = 2 * max(abs(dy) for dy, _ in self.offsets) + 1
        other = PrimalDualNet(count, window, self.name).to(self.log_coefficients)
        state = {
            name: value if name == "log_support" else _between(value, count)
            for name, value in self.state_dict().items()
        }
        other.load_state_dict(state)
        return other

    @property
    def is_fused(self) -> bool:
        """Whether the iterations of its energy have kernels of their own."""
        return self.name in FUSED

    @property
    def coefficients(self) -> Tensor:
        """(n, 5): sigma, tau, eps, lam, theta of each iteration."""
        return self.log_coefficients.exp()

    def support(self, affinities: Tensor, guide: Tensor) -> Tensor:
        """Pairwise weights from the affinities, or the edge tensor of the guide for local models."""
        first, second = self.log_support.exp()
        if self.model.is_local:
            return edge_tensor(guide, first, second)
        return support_weights(affinities.abs(), self.offsets, first, second)

    def forward(
        self,
        f: Tensor,
        affinities: Tensor,
        trust: Tensor,
        guide: Tensor,
        storage: torch.dtype | None = None,
    ) -> Tensor:
        """(B, 1, H, W) first estimate -> (B, 1, H, W) result.

        Args:
            affinities: (B, N, H, W) expected differences of depth; their sign is ignored.
            trust: (B, 1, H, W) weight of the data term: 0 in holes.
            guide: (B, 1, H, W); read by local models only.
            storage: type in which Triton keeps p and w between iterations; None keeps float32.
        """
        if self.is_fused:
            scales, rows = self.log_support.exp(), self._rows()
            return huber_from_affinities(f, affinities, trust, scales, rows, self.offsets, storage=storage)
        return self._generic(f, self.support(affinities.to(f.dtype), guide), trust)

    def _rows(self) -> Tensor:
        if self.model.family == "nlh":
            return self.coefficients
        keep = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])
        return self.coefficients * keep.to(self.log_coefficients)

    def _generic(self, f: Tensor, support: Tensor, trust: Tensor) -> Tensor:
        """Any energy, through the one primal-dual step."""
        size = (int(f.shape[2]), int(f.shape[3]))
        u = torch.cat([f, f.new_zeros((f.shape[0], self.model.channels - 1, *size))], dim=1)
        data = Quadratic if self.model.norm == "l2" else Absolute
        state: State | None = None
        for n, (sigma, tau, eps, lam, theta) in enumerate(self.coefficients):
            alpha_0 = self.log_alpha_0[n].exp() if self.model.channels == 3 else ALPHA_0
            terms = self.model.terms(support, self.offsets, size, alpha_0=alpha_0, eps=eps)
            energy = Energy(terms, OnDepth(data(f, lam * trust)))
            state = State.start(energy, u) if state is None else state
            state = primal_dual_step(energy, state, StepSizes(tau, (sigma,) * len(terms), theta))
        return u[:, :1] if state is None else state.u[:, :1]


def _between(rows: Tensor, count: int) -> Tensor:
    """(n, ...) -> (count, ...), linear between the rows; the first and the last stay."""
    place = torch.linspace(0, len(rows) - 1, count, device=rows.device) if count > 1 else rows.new_zeros(1)
    below = place.floor().long().clamp(max=max(0, len(rows) - 2))
    above = (below + 1).clamp(max=len(rows) - 1)
    share = (place - below).view(-1, *[1] * (rows.ndim - 1))
    return torch.lerp(rows[below], rows[above], share)
