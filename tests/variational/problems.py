"""Small problems in float64, the same for every test."""

import torch

from primaldepth.variational import MODELS, DataTerm, Energy, ModelParameters, StepSizes, build_energy
from primaldepth.variational.kernels import as_number

PARAMETERS = ModelParameters(window=5, eps=0.5, sigma_v=0.5, alpha_0=2.0)


def uniform(*shape: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=random, dtype=torch.float64)


def step_with_noise(size=(12, 12), seed=1) -> torch.Tensor:
    """(1, 1, H, W): a step of height 6 and noise of standard deviation about 1."""
    f = 4 * uniform(1, 1, *size, seed=seed) - 2
    f[..., size[1] // 2 :] += 6
    return f


def energy_of(
    name: str, f=None, lam=None, *, A=None, size=(12, 12), guide=None, parameters=PARAMETERS
) -> Energy:
    """The model on a random guide, with data on the grid unless an operator is given."""
    f = step_with_noise(size) if f is None else f
    lam = torch.full_like(f, 0.5) if lam is None else lam
    guide = uniform(f.shape[0], 3, *size, seed=2) if guide is None else guide
    return build_energy(name, guide, DataTerm(f, lam, MODELS[name].norm, A), parameters)


def dual_steps(steps: StepSizes) -> list[torch.Tensor]:
    """Every sigma as a tensor."""
    return [torch.as_tensor(as_number(s)) for s in steps.sigma]


def first_estimate(name: str, f: torch.Tensor) -> torch.Tensor:
    """The depth f and slopes 0."""
    slopes = f.new_zeros((f.shape[0], MODELS[name].channels - 1, *f.shape[2:]))
    return torch.cat([f, slopes], dim=1)
