"""The primal-dual network: n iterations of the primal-dual step with coefficients learned for each."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from primaldepth.operators import LinearOperator, SelectChannels
from primaldepth.operators.pairwise import half_window
from primaldepth.operators.sampling import SampleTerm
from primaldepth.variational.affinities import edge_tensor, support_weights
from primaldepth.variational.energies import Energy, OnDepth, Term
from primaldepth.variational.huber_iterations import huber_from_affinities
from primaldepth.variational.models import MODELS, PairOperators
from primaldepth.variational.penalties import Absolute, Number, Quadratic
from primaldepth.variational.primal_dual import State, primal_dual_step
from primaldepth.variational.step_sizes import StepSizes

# The iteration on depth of unit spread: the noise left in the first estimate is a few hundredths.
LAMBDA, LAMBDA_L1, EPSILON = 20.0, 1.0, 0.01
SIGMA_D, SIGMA_V, ALPHA_0, BETA, GAMMA = 2.0, 0.05, 2.0, 9.0, 0.85
DUAL_TO_PRIMAL = 400.0  # sigma / tau
SHARE_OF_SAMPLES = 0.25  # of the largest sensible step, for a sample term added to a trained solver
COEFFICIENTS = ("sigma", "tau", "eps", "lam", "theta", "rho")
OF_ALL_ITERATIONS = ("log_support", "log_precision")
FUSED = ("nlh-l2", "nltv-l2")  # have kernels of their own


class PrimalDualNet(nn.Module):
    """u = argmin R(u; affinities) + lam/2 sum c (u - f)^2, by n unrolled iterations.

    All parameters are stored as logarithms, so they stay positive. Untrained, every iteration has
    the classical step sizes tau sigma L^2 = 1: the network is the classical solver, stopped after
    n iterations.

    With `samples` the energy also has the sample term g/2 sum_i lam_i ((A u)_i - d_i)^2. Its dual variable
    has the step rho / ||A||^2 with one rho per iteration, so that rho means the same for every A. The learned
    factor g starts at 1; it makes up for R, which is no calibrated likelihood. Untrained, tau sigma L^2 =
    tau rho = 1/2: the sum over both terms of tau times the step times the squared norm is 1, as convergence
    requires.

    Args:
        iterations: n.
        window: size of the non-local window.
        model: one of the seven energies.
        samples: whether the energy can have the sample term.
    """

    def __init__(
        self, iterations: int = 20, window: int = 7, model: str = "nlh-l2", *, samples: bool = False
    ) -> None:
        super().__init__()
        if model not in MODELS:
            raise ValueError(f"model '{model}' is not one of {', '.join(MODELS)}")
        self.model, self.name, self.window, self.offsets = MODELS[model], model, window, half_window(window)
        self.samples = samples
        self.radius = iterations * (window // 2 if not self.model.is_local else 1)
        start = torch.tensor(self._classical_steps()).log()
        self.log_coefficients = nn.Parameter(start.repeat(iterations, 1))
        support = (BETA, GAMMA) if self.model.is_local else (SIGMA_D, SIGMA_V)
        self.log_support = nn.Parameter(torch.tensor(support).log())
        if self.model.channels == 3:
            self.log_alpha_0 = nn.Parameter(torch.full((iterations,), math.log(ALPHA_0)))
        if samples:
            self.log_precision = nn.Parameter(torch.zeros(()))

    @staticmethod
    def parameters_of(iterations: int, model: str, *, samples: bool = False) -> int:
        """Return the number of parameters of a solver that is not built yet.

        Args:
            iterations: n; 0 for no solver.
            model: as for the class.
            samples: as for the class.
        """
        if not iterations:
            return 0
        own = len(COEFFICIENTS) - (not samples) + (MODELS[model].channels == 3)
        return iterations * own + 2 + samples

    def _classical_steps(self) -> tuple[float, ...]:
        support = torch.ones(1, 3 if self.model.is_local else len(self.offsets), 64, 64)
        pairs = PairOperators((64, 64), self.offsets)
        terms = self.model.terms(support, pairs, alpha_0=ALPHA_0, eps=EPSILON)
        L = math.sqrt(sum(term.K.norm_bound**2 for term in terms))
        ratio = math.sqrt(DUAL_TO_PRIMAL)
        lam = LAMBDA if self.model.norm == "l2" else LAMBDA_L1
        if not self.samples:
            return ratio / L, 1.0 / (ratio * L), EPSILON, lam, 1.0
        L *= math.sqrt(2.0)  # each of the two terms with a dual variable gets half of what convergence allows
        return ratio / L, 1.0 / (ratio * L), EPSILON, lam, 1.0, 0.5 * ratio * L

    def resampled(self, count: int) -> "PrimalDualNet":
        """Return the solver with `count` iterations, log coefficients interpolated between learned ones.

        Args:
            count: of the iterations.
        """
        other = PrimalDualNet(count, self.window, self.name, samples=self.samples).to(self.log_coefficients)
        state = {
            name: value if name in OF_ALL_ITERATIONS else _between(value, count)
            for name, value in self.state_dict().items()
        }
        other.load_state_dict(state)
        return other

    def with_samples(self) -> "PrimalDualNet":
        """Return the same solver with the sample term in its energy.

        The step of the term starts at rho = (1 / tau + lam) / 4: an update divides by 1 + tau lam, so with
        a trained lam, which is large, the steps of an untrained solver would hardly move u.
        """
        if self.samples:
            return self
        other = PrimalDualNet(len(self.log_coefficients), self.window, self.name, samples=True)
        _, tau, _, lam, _ = self.coefficients.detach().unbind(1)
        rho = SHARE_OF_SAMPLES * (1.0 / tau + lam)
        state = self.state_dict() | {"log_precision": torch.zeros(()).to(rho)}
        state["log_coefficients"] = torch.cat([self.log_coefficients.detach(), rho.log()[:, None]], dim=1)
        other.load_state_dict(state)
        return other.to(rho)

    @property
    def is_fused(self) -> bool:
        """Whether the iterations of its energy have kernels of their own."""
        return self.name in FUSED

    @property
    def coefficients(self) -> Tensor:
        """Return sigma, tau, eps, lam, theta of each iteration, (n, 5); with `samples` also rho, (n, 6)."""
        return self.log_coefficients.exp()

    def support(self, affinities: Tensor, guide: Tensor) -> Tensor:
        """Return pairwise weights from the affinities, or for local models the edge tensor of the guide.

        Args:
            affinities: (B, N, H, W); read by models that are not local.
            guide: (B, C, H, W); read by local models.
        """
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
        samples: SampleTerm | None = None,
    ) -> Tensor:
        """Run the iterations.

        Args:
            f: (B, 1, H, W) first estimate.
            affinities: (B, N, H, W) expected differences of depth; their sign is ignored.
            trust: (B, 1, H, W) weight of the data term: 0 in holes.
            guide: (B, 1, H, W); read by local models only.
            storage: type in which Triton keeps p and w between iterations; None keeps float32.
            samples: of the sample term; None leaves it out. Ignored by a network without `samples`.

        Returns:
            (B, 1, H, W) result.
        """
        samples = self.scaled(samples)
        if self.is_fused:
            scales, rows = self.log_support.exp(), self._rows(samples)
            return huber_from_affinities(
                f, affinities, trust, scales, rows, self.offsets, storage=storage, samples=samples
            )
        support = self.support(affinities.to(f.dtype), guide)
        return self.iterate(f, support, trust, samples, self.pairs(f), self.rows(samples), self.alphas)

    def scaled(self, samples: SampleTerm | None) -> SampleTerm | None:
        """Return the samples with their precisions times g, or None for a network without the sample term.

        Args:
            samples: of the sample term, or None.
        """
        if samples is None or not self.samples:
            return None
        return SampleTerm(samples.A, samples.d, self.log_precision.exp() * samples.lam)

    def rows(self, samples: SampleTerm | None) -> Iterable[Iterable[Number]]:
        """Return the coefficients that `iterate` reads, iteration by iteration.

        Args:
            samples: of the sample term, or None.
        """
        return self._rows(samples)

    def _rows(self, samples: SampleTerm | None) -> Tensor:
        """Return the coefficients for the iterations: eps is 0 where a model has none, rho becomes a step."""
        rows = self.coefficients[:, :5]
        if self.model.family != "nlh":
            rows = rows * torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0]).to(rows)
        if samples is None:
            return rows
        return torch.cat([rows, self.coefficients[:, 5:] * samples.A.norm_bound**-2], dim=1)

    @property
    def alphas(self) -> Tensor | list[float]:
        """Return alpha_0 of each iteration; of no influence in models without a second order."""
        return self.log_alpha_0.exp() if self.model.channels == 3 else [ALPHA_0] * len(self.log_coefficients)

    def pairs(self, image: Tensor) -> PairOperators:
        """Return the maker of pairwise operators for images of this size.

        Args:
            image: (B, C, H, W).
        """
        return PairOperators((image.shape[2], image.shape[3]), self.offsets)

    def iterate(
        self,
        f: Tensor,
        support: Tensor,
        trust: Tensor,
        samples: SampleTerm | None,
        pairs: PairOperators,
        rows: Iterable[Iterable[Number]],
        alphas: Iterable[Number],
    ) -> Tensor:
        """Run the unrolled primal-dual iterations of the network's energy with the given operators.

        Args:
            f: (B, 1, H, W) first estimate.
            support: as from the method of that name.
            trust: (B, 1, H, W) weight of the data term.
            samples: of the sample term, or None.
            pairs: makes the operators of models that are not local.
            rows: sigma, tau, eps, lam, theta and, with samples, the step of their dual variable.
            alphas: alpha_0 of each iteration.

        Returns:
            (B, 1, H, W) result.
        """
        u = torch.cat([f, *[torch.zeros_like(f)] * (self.model.channels - 1)], dim=1)
        data = Quadratic if self.model.norm == "l2" else Absolute
        state: State | None = None
        measured = self._sample_terms(samples, f)
        for (sigma, tau, eps, lam, theta, *steps), alpha_0 in zip(rows, alphas, strict=True):
            terms = self.model.terms(support, pairs, alpha_0=alpha_0, eps=eps)
            energy = Energy((*terms, *measured), OnDepth(data(f, lam * trust)))
            state = State.start(energy, u) if state is None else state
            sigmas = (*(sigma,) * len(terms), *steps[: len(measured)])
            state = primal_dual_step(energy, state, StepSizes(tau, sigmas, theta))
        return u[:, :1] if state is None else state.u[:, :1]

    def _sample_terms(self, samples: SampleTerm | None, f: Tensor) -> tuple[Term, ...]:
        """Return the sample term on the depth, the first channel; no term without samples."""
        if samples is None:
            return ()
        A: LinearOperator = samples.A
        if self.model.channels > 1:
            A = A @ SelectChannels((self.model.channels, f.shape[2], f.shape[3]), 0, 1)
        return (Term(A, Quadratic(samples.d, samples.lam)),)


def _between(rows: Tensor, count: int) -> Tensor:
    """Return `count` rows, linear between the given (n, ...); the first and the last stay as they are."""
    place = torch.linspace(0, len(rows) - 1, count, device=rows.device) if count > 1 else rows.new_zeros(1)
    below = place.floor().long().clamp(max=max(0, len(rows) - 2))
    above = (below + 1).clamp(max=len(rows) - 1)
    share = (place - below).view(-1, *[1] * (rows.ndim - 1))
    return torch.lerp(rows[below], rows[above], share)
