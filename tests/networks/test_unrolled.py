"""The unrolled solver: the classical one, stopped early, with coefficients that can be learned."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from small_nets import classical_energy, uniform

from primaldepth.networks import PrimalDualNet
from primaldepth.networks.unrolled import ALPHA_0
from primaldepth.operators.pairwise import use_backend
from primaldepth.variational import (
    MODELS,
    State,
    guide_distance,
    primal_dual_step,
)
from primaldepth.variational.huber_iterations import huber_iterations

TENSORS = ("log_coefficients", "log_support", "log_alpha_0")


def inputs(pdn, size=(9, 11), batch=1, dtype=torch.float32):
    """First estimate, affinities, trust with holes, guide."""
    f = uniform(batch, 1, *size, seed=1, dtype=dtype)
    affinities = 0.1 * uniform(batch, len(pdn.offsets), *size, seed=2, dtype=dtype) - 0.03
    trust = (uniform(batch, 1, *size, seed=3, dtype=dtype) > 0.3).to(dtype)
    return f, affinities, trust, uniform(batch, 1, *size, seed=4, dtype=dtype)


def classical(pdn, n, f, affinities, trust, guide):
    """n steps of the solver on the energy that the first row of coefficients describes."""
    energy, steps = classical_energy(pdn, f, affinities, trust, guide)
    slopes = f.new_zeros((f.shape[0], pdn.model.channels - 1, *f.shape[2:]))
    state = State.start(energy, torch.cat([f, slopes], dim=1))
    for _ in range(n):
        state = primal_dual_step(energy, state, steps)
    return state.u[:, :1]


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("model", MODELS)
def test_tied_iterations_are_the_classical_solver(model, n):
    pdn = PrimalDualNet(n, 5, model)
    if model.startswith("nltgv") or model == "atgv-l2":
        with torch.no_grad():
            pdn.log_alpha_0.fill_(torch.tensor(ALPHA_0).log())
    with use_backend("torch"), torch.no_grad():
        given = inputs(pdn)
        expected = classical(pdn, n, *given)
        result = pdn(*given)
    tolerance = 0.0 if pdn.model.channels == 1 else 1e-6  # alpha_0 goes through log and exp
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("model", ["nlh-l2", "nltv-l2"])
def test_the_fused_cpu_iterations_agree(model):
    pytest.importorskip("numba")
    pdn = PrimalDualNet(6, 7, model)
    given = inputs(pdn, (23, 17), batch=2)
    with torch.no_grad(), use_backend("torch"):
        expected = classical(pdn, 6, *given)
    with torch.no_grad(), use_backend("numba"):
        result = pdn(*given)
    assert (result - expected).norm() <= 1e-5 * expected.norm()


INTERPRETED = """
import torch
from test_unrolled import PrimalDualNet, classical, inputs, use_backend
pdn = PrimalDualNet(3, 3, "nlh-l2")
given = inputs(pdn, (6, 7), batch=2)
with torch.no_grad(), use_backend("torch"):
    expected = classical(pdn, 3, *given)
with torch.no_grad(), use_backend("triton"):
    print(float((pdn(*given) - expected).norm() / expected.norm()))
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_the_interpreted_triton_iterations_agree():
    child = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        # TRITON_INTERPRET is read when triton is imported; helpers lie beside this file and one folder above
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    assert float(child.stdout) <= 1e-5


def tensors_of(pdn):
    return [name for name in TENSORS if hasattr(pdn, name)]


def as_function(pdn):
    """The network as a function of its inputs and its parameters."""
    names = tensors_of(pdn)

    def run(f, affinities, trust, guide, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(pdn, given, (f, affinities, trust, guide))

    return run


@pytest.mark.parametrize("n", [1, 4, 8])
def test_gradients_against_finite_differences(n):
    pdn = PrimalDualNet(n, 3, "nlh-l2").double()
    given = [t.requires_grad_() for t in inputs(pdn, (5, 6), dtype=torch.float64)]
    parameters = [getattr(pdn, name).detach().clone().requires_grad_() for name in tensors_of(pdn)]
    with use_backend("torch"):
        assert torch.autograd.gradcheck(as_function(pdn), (*given, *parameters), eps=1e-7, atol=1e-6)


@pytest.mark.parametrize("model", ["atgv-l2", "nlh-l1", "nltgv-l2"])
def test_gradients_of_other_energies(model):
    pdn = PrimalDualNet(2, 3, model).double()
    given = [t.requires_grad_() for t in inputs(pdn, (4, 5), dtype=torch.float64)]
    parameters = [getattr(pdn, name).detach().clone().requires_grad_() for name in tensors_of(pdn)]
    with use_backend("torch"):
        assert torch.autograd.gradcheck(as_function(pdn), (*given, *parameters), eps=1e-7, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_every_energy_learns(model):
    pdn = PrimalDualNet(4, 3, model)
    if pdn.model.channels == 3:
        with torch.no_grad():
            pdn.log_alpha_0.fill_(-7.0)  # small enough for the bound on the slopes to be met
    given = inputs(pdn, (9, 8), batch=2)
    result = pdn(*given)
    assert result.shape == given[0].shape
    ((result - 0.5) ** 2).sum().backward()
    for name in tensors_of(pdn):
        grad = getattr(pdn, name).grad
        assert grad is not None, name
        assert torch.isfinite(grad).all(), name
        assert grad.abs().max() > 0, name
    used = pdn.log_coefficients.grad.abs().sum(dim=0) > 0
    assert used.tolist() == [True, True, pdn.model.family == "nlh", True, True]


@pytest.mark.parametrize("model", ["nlh-l2", "atgv-l2"])
def test_parameters_stay_positive_whatever_the_update(model):
    pdn = PrimalDualNet(3, 3, model)
    with torch.no_grad():
        for seed, parameter in enumerate(pdn.parameters()):
            parameter.add_(20 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
    assert (pdn.coefficients > 0).all()
    assert (pdn.log_support.exp() > 0).all()
    weights = pdn.support(*(inputs(pdn)[i] for i in (1, 3)))
    assert torch.isfinite(weights).all()


def test_untrained_it_removes_noise_and_keeps_the_step():
    clean = torch.where(torch.arange(24) < 12, -0.5, 0.5).expand(1, 1, 20, 24)
    noise = 0.1 * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    pdn = PrimalDualNet(20, 7, "nlh-l2")
    affinities = guide_distance(clean, pdn.offsets)
    with torch.no_grad():
        result = pdn(clean + noise, affinities, torch.ones_like(clean), clean)
    assert (result - clean).std() < 0.5 * noise.std()
    assert (result[..., 11] - result[..., 12]).abs().min() > 0.7


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_data_without_trust_is_not_read(backend):
    pytest.importorskip("numba") if backend == "numba" else None
    pdn = PrimalDualNet(5, 5, "nlh-l2")
    f, affinities, trust, guide = inputs(pdn, (8, 9))
    w, start = pdn.support(affinities, guide), f.clone()
    garbage = torch.where(trust > 0, f, 1e6)
    with torch.no_grad(), use_backend(backend):
        runs = [
            huber_iterations(
                State(start, start, (torch.zeros_like(w),)), w, data, trust, pdn.coefficients, pdn.offsets
            ).u
            for data in (f, garbage)
        ]
    assert runs[0].equal(runs[1])


def test_an_unknown_energy_is_refused():
    with pytest.raises(ValueError, match="'nlh-l3' is not one of"):
        PrimalDualNet(2, 3, "nlh-l3")
