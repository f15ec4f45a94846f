"""The sample term of the unrolled solver: its step is the classical one, and it reproduces samples."""

import math

import pytest
import torch
from small_nets import classical_energy, uniform
from test_unrolled import inputs, tensors_of

from primaldepth.networks import DepthNet, NetworkSettings, PrimalDualNet
from primaldepth.networks.inputs import SIGMA_FLOOR, SensorSamples
from primaldepth.operators.pairwise import use_backend
from primaldepth.operators.sampling import PointSamples, Resample, SampleTerm
from primaldepth.variational import (
    MODELS,
    State,
    primal_dual_step,
)
from primaldepth.variational.step_sizes import check_step_sizes


def samples_of(A, batch=1, dtype=torch.float32):
    """Samples a little off, a third of them holes."""
    d, lam = (uniform(batch, *A.out_shape, seed=seed, dtype=dtype) for seed in (5, 6))
    return SampleTerm(A, d, torch.where(lam < 0.33, 0.0, 300.0 * lam))


ONE_CHANNEL = [model for model in MODELS if MODELS[model].channels == 1]


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("model", ONE_CHANNEL)
def test_tied_iterations_are_the_classical_solver(model, n):
    pdn = PrimalDualNet(n, 5, model, samples=True)
    samples = samples_of(Resample((9, 11), (4, 3)))
    with use_backend("torch"), torch.no_grad():
        given = inputs(pdn)
        energy, steps = classical_energy(pdn, *given, samples)
        check_step_sizes(energy, steps, given[0])
        state = State.start(energy, given[0])
        for _ in range(n):
            state = primal_dual_step(energy, state, steps)
        result = pdn(*given, samples=samples)
    torch.testing.assert_close(result, state.u, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_every_energy_takes_samples(model):
    pdn = PrimalDualNet(30, 3, model, samples=True)
    given = inputs(pdn)
    samples = samples_of(Resample((9, 11), (4, 3)))
    with torch.no_grad():
        plain, anchored = pdn(*given), pdn(*given, samples=samples)
    known = samples.lam > 0
    before, after = (((samples.A(u) - samples.d)[known]).square().mean().sqrt() for u in (plain, anchored))
    assert after < 0.5 * before


def test_the_fused_cpu_iterations_agree():
    pytest.importorskip("numba")
    pdn = PrimalDualNet(6, 7, "nlh-l2", samples=True)
    given, samples = inputs(pdn, (23, 17), batch=2), samples_of(Resample((23, 17), (9, 5)), batch=2)
    results = []
    for backend in ("torch", "numba"):
        with torch.no_grad(), use_backend(backend):
            results.append(pdn(*given, samples=samples))
    assert (results[1] - results[0]).norm() <= 1e-5 * results[0].norm()


def test_without_samples_the_other_coefficients_count():
    """A network that is given no samples iterates on the paper's energy with its own steps."""
    pdn, plain = PrimalDualNet(4, 5, samples=True), PrimalDualNet(4, 5)
    with torch.no_grad():
        plain.log_coefficients.copy_(pdn.log_coefficients[:, :5])
        given = inputs(pdn)
        assert pdn(*given).equal(plain(*given))


def test_a_network_without_the_term_ignores_samples():
    pdn = PrimalDualNet(4, 5)
    given = inputs(pdn)
    with torch.no_grad():
        assert pdn(*given).equal(pdn(*given, samples=samples_of(Resample((9, 11), (4, 3)))))
    assert set(pdn.state_dict()) == {"log_coefficients", "log_support"}


def test_other_numbers_of_iterations_keep_the_term():
    pdn = PrimalDualNet(4, 5, samples=True)
    with torch.no_grad():
        pdn.log_precision.fill_(0.7)
    longer = pdn.resampled(9)
    assert longer.samples
    assert longer.log_coefficients.shape == (9, 6)
    assert longer.log_precision.equal(pdn.log_precision)


OPERATORS = {
    "average": lambda: Resample((5, 6), (2, 3)),
    "point": lambda: Resample((5, 6), (2, 3), "point"),
    "same grid": lambda: Resample((5, 6), (5, 6)),
    "scattered": lambda: PointSamples((5, 6), 5.0 * uniform(7, 2, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", [1, 4])
def test_gradients_against_finite_differences(name, n):
    A = OPERATORS[name]()
    pdn = PrimalDualNet(n, 3, "nlh-l2", samples=True).double()
    given = [t.requires_grad_() for t in inputs(pdn, (5, 6), dtype=torch.float64)]
    names = [*tensors_of(pdn), "log_precision"]
    parameters = [getattr(pdn, each).detach().clone().requires_grad_() for each in names]
    measured = samples_of(A, dtype=torch.float64)
    d, lam = (t.clone().requires_grad_() for t in (measured.d, measured.lam))

    def run(f, affinities, trust, guide, d, lam, *parameters):
        state = dict(zip(names, parameters, strict=True))
        keywords = {"samples": SampleTerm(A, d, lam)}
        return torch.func.functional_call(pdn, state, (f, affinities, trust, guide), keywords)

    with use_backend("torch"):
        assert torch.autograd.gradcheck(run, (*given, d, lam, *parameters), eps=1e-7, atol=1e-6)


RATIOS = [(1.0, 1.0), (2.0, 2.0), (2.7, 2.7), (4.0, 4.0), (7.5, 3.2), (16.0, 16.0)]


def low_size(high, ratio):
    return tuple(round(side / factor) for side, factor in zip(high, ratio, strict=True))


@pytest.mark.parametrize("kernel", ["bicubic", "point"])
@pytest.mark.parametrize("ratio", RATIOS, ids=lambda ratio: f"{ratio[0]:g}x{ratio[1]:g}")
def test_samples_without_noise_are_reproduced(ratio, kernel):
    """The distance from the samples falls to a fifth in 16 iterations and to a twentieth in 60."""
    high = (48, 64)
    A = Resample(high, low_size(high, ratio), kernel)
    truth = uniform(1, 1, *high, seed=8).cumsum(3) / 16.0 - 1.0
    f = truth + 0.1 * (uniform(1, 1, *high, seed=9) - 0.5) + 0.05
    d = A(truth)
    measured = SensorSamples(A, d, torch.zeros_like(d), torch.ones_like(d)).weighed(None)
    affinities = 0.1 * uniform(1, 24, *high, seed=10)
    left = {}
    for n in (16, 60):
        pdn = PrimalDualNet(n, 7, samples=True)
        with torch.no_grad():
            u = pdn(f, affinities, torch.ones_like(f), f, samples=measured)
        left[n] = float((A(u) - d).square().mean().sqrt())
    before = float((A(f) - d).square().mean().sqrt())
    assert left[16] <= before / 5
    assert left[60] <= before / 20


def test_the_noise_weighs_the_samples():
    """A sample counts by omega trust / sigma^2, and never more than the floor of sigma allows."""
    A = Resample((4, 4), (2, 2))
    depth, sigma = torch.zeros(1, 1, 2, 2), torch.tensor([0.0, 0.1, 0.2, 0.2]).view(1, 1, 2, 2)
    trust = torch.tensor([1.0, 1.0, 1.0, 0.0]).view(1, 1, 2, 2)
    found = SensorSamples(A, depth, sigma, trust).weighed(torch.full_like(depth, 2.0)).lam.flatten()
    assert math.isclose(found[0], 2.0 / SIGMA_FLOOR**2, rel_tol=1e-5)
    assert found[1:].tolist() == pytest.approx([200.0, 50.0, 0.0], rel=1e-3)


def test_adding_the_term_changes_nothing_without_samples():
    settings = NetworkSettings(backbone="unet", widths=(8, 16), blocks=(1, 1), window=3, iterations=3)
    torch.manual_seed(0)
    plain = DepthNet(settings)
    with torch.no_grad():
        for weight in plain.parameters():
            weight.add_(0.02 * torch.randn_like(weight))
        anchored = plain.with_samples()
        depth, guide = uniform(1, 1, 16, 16, seed=1), uniform(1, 3, 16, 16, seed=2)
        one = torch.ones_like(depth)
        given = (depth, 0.1 * one, one, guide, torch.zeros(1, 1, 1, 1))
        torch.testing.assert_close(anchored(*given).depth, plain(*given).depth)
        samples = SensorSamples(Resample((16, 16), (4, 4)), *(torch.ones(1, 1, 4, 4),) * 3)
        omega = anchored(*given).features.omega(samples.A)
    assert anchored.settings == settings.model_copy(update={"samples": True})
    assert torch.equal(omega, torch.ones_like(omega))
    assert anchored.with_samples() is anchored


@pytest.mark.parametrize("change", [{"backbone": "fcn"}, {"iterations": 0}])
def test_only_a_unet_with_a_solver_can_have_the_term(change):
    settings = {
        "backbone": "unet",
        "widths": (8, 16),
        "blocks": (1, 1),
        "window": 3,
        "iterations": 3,
        **change,
    }
    with pytest.raises(ValueError, match="sample term"):
        DepthNet(NetworkSettings(**settings)).with_samples()
