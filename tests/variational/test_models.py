"""What the seven models leave alone, what they ignore, and how the data term enters."""

import pytest
import torch
from problems import PARAMETERS, energy_of, first_estimate, step_with_noise, uniform

from primaldepth.operators import Resample
from primaldepth.variational import MODELS, DataTerm, ModelParameters, build_energy, preconditioned, solve

NARROW = PARAMETERS.model_copy(update={"window": 3})
every_model = pytest.mark.parametrize("name", MODELS)


def ramp(size=(12, 12)):
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    return (0.5 * y.double() - 0.8 * x.double())[None, None]


def minimiser(name, energy, start, iterations=1000):
    steps = preconditioned(energy, start, 3.0)
    return solve(energy, first_estimate(name, start), steps, iterations=iterations, check_every=iterations).u


def ramp_error(name):
    f = ramp()
    return float((minimiser(name, energy_of(name, f, parameters=NARROW), f)[:, :1] - f).abs().max())


@pytest.mark.parametrize("name", ["atgv-l2", "nltgv-l2", "nltgv-l1"])
def test_second_order_models_leave_a_ramp_alone(name):
    assert ramp_error(name) < 1e-5


@pytest.mark.parametrize("name", ["atv-l2", "nltv-l2", "nlh-l2", "nlh-l1"])
def test_first_order_models_flatten_a_ramp(name):
    assert ramp_error(name) > 0.1


@pytest.mark.parametrize("name", ["atgv-l2", "nltgv-l2", "nltgv-l1"])
def test_a_ramp_with_its_slope_costs_nothing(name):
    f = ramp()
    slopes = torch.tensor([0.5, -0.8], dtype=torch.float64).view(1, 2, 1, 1).expand(1, 2, 12, 12)
    assert float(energy_of(name, f).value(torch.cat([f, slopes], dim=1))) < 1e-10


@every_model
def test_a_constant_is_left_alone_at_once(name):
    f = torch.full((1, 1, 12, 12), 2.5, dtype=torch.float64)
    u = minimiser(name, energy_of(name, f), f, 5)
    assert (u[:, :1] - 2.5).abs().max() < 1e-14


@every_model
def test_the_energy_is_the_formula(name):
    """Regulariser and data term, each alone by letting the other vanish."""
    f = step_with_noise()
    u = first_estimate(name, f)
    u[:, :1] += 1.5
    constant = torch.full_like(u, 0.0)
    constant[:, :1] = 7.0
    shifted = {"l2": 0.5 * 0.5 * 1.5**2, "l1": 0.5 * 1.5}[MODELS[name].norm] * 144
    regulariser = energy_of(name, f, torch.zeros_like(f)).value(u)
    assert float(energy_of(name, f).value(u) - regulariser) == pytest.approx(shifted)
    assert float(energy_of(name, f, torch.zeros_like(f)).value(constant)) == 0


@every_model
def test_a_sensor_of_equal_size_is_no_sensor(name):
    f = step_with_noise((6, 6))
    A = Resample((6, 6), (6, 6))
    direct = energy_of(name, f, size=(6, 6), parameters=NARROW)
    through = energy_of(name, f, size=(6, 6), A=A, parameters=NARROW)
    u = first_estimate(name, uniform(1, 1, 6, 6, seed=4))
    assert through.value(u).item() == pytest.approx(direct.value(u).item(), rel=1e-13)
    low, high = (float(direct.value(minimiser(name, energy, f, 500))) for energy in (direct, through))
    assert high == pytest.approx(low, rel=2e-3 if name == "nltgv-l1" else 1e-4)


def holes(size):
    lam = torch.full((1, 1, *size), 0.5, dtype=torch.float64)
    lam[..., 1:4, 2:4] = 0.0
    return lam


@every_model
@pytest.mark.parametrize("through_sensor", [False, True])
@pytest.mark.parametrize("garbage", [5.0, 1e30, float("nan")])
def test_what_lies_in_holes_does_not_matter(name, through_sensor, garbage):
    size = (6, 5) if through_sensor else (12, 12)
    lam, f = holes(size), step_with_noise(size)
    A = Resample((12, 12), size) if through_sensor else None
    other = torch.where(lam > 0, f, garbage)
    start = torch.zeros(1, 1, 12, 12, dtype=torch.float64)
    energies = [energy_of(name, data, lam, A=A, parameters=NARROW) for data in (f, other)]
    clean, dirty = (minimiser(name, energy, start, 20) for energy in energies)
    assert torch.isfinite(dirty).all()
    assert dirty.equal(clean)
    assert float(energies[1].value(clean)) == float(energies[0].value(clean))


def test_parameters_reach_their_models():
    f, guide = step_with_noise(), uniform(1, 3, 12, 12)

    def value(name, **changes):
        u = first_estimate(name, f)
        u[:, 1:] = uniform(1, MODELS[name].channels - 1, 12, 12, seed=9)
        parameters = ModelParameters(window=3, eps=0.1).model_copy(update=changes)
        return float(build_energy(name, guide, DataTerm(f, 0 * f), parameters).value(u))

    used = {
        "atv-l2": {"beta", "gamma"},
        "atgv-l2": {"beta", "gamma", "alpha_0"},
        "nltv-l2": {"window", "sigma_d", "sigma_v"},
        "nlh-l2": {"window", "sigma_d", "sigma_v", "eps"},
        "nltgv-l2": {"window", "sigma_d", "sigma_v", "alpha_0"},
    }
    for name, expected in used.items():
        defaults = ModelParameters(window=3, eps=0.1).model_dump()
        changed = {key for key in defaults if value(name, **{key: 2 * defaults[key] + 1}) != value(name)}
        assert changed == expected
