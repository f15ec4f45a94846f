"""Networks and inputs small enough for every test."""

from datetime import UTC, datetime

import torch

from primaldepth.networks import ModelCard
from primaldepth.networks.unrolled import ALPHA_0
from primaldepth.variational import Absolute, Energy, OnDepth, Quadratic, StepSizes, Term
from random_nets import random_net

SMALL = {"layers": 2, "maps": 3, "window": 3, "iterations": 2}


def uniform(*shape, seed=0, dtype=torch.float32):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def small_net(seed=0, **changes):
    return random_net(seed, **{**SMALL, **changes}).eval()


def classical_energy(pdn, f, affinities, trust, guide, samples=None):
    """The energy that the first row of coefficients describes, and its steps."""
    sigma, tau, eps, lam, theta, *rho = pdn.coefficients[0].detach()
    support = pdn.support(affinities, guide).detach()
    terms = pdn.model.terms(support, pdn.pairs(f), alpha_0=ALPHA_0, eps=eps)
    steps = (sigma,) * len(terms)
    if samples is not None:
        terms = (*terms, Term(samples.A, Quadratic(samples.d, samples.lam)))
        steps = (*steps, rho[0] / samples.A.norm_bound**2)
    data = Quadratic if pdn.model.norm == "l2" else Absolute
    return Energy(terms, OnDepth(data(f, lam * trust))), StepSizes(tau, steps, theta)


def images(*size, batch=1, seed=0, dtype=torch.float32):
    """Depth, sigma, trust with holes, and guide: (B, 1, H, W) each."""
    depth, sigma, trust, guide = uniform(4, batch, 1, *size, seed=seed, dtype=dtype)
    return 2 * depth - 1, 0.1 * sigma, (trust > 0.3).to(dtype), guide


def card_of(net, **changes):
    values = {
        "name": "fcn-pdn-s",
        "scale": 8,
        "settings": net.settings,
        "created": datetime(2024, 5, 1, tzinfo=UTC),
        "config": {"steps": 10, "loss": {"kind": "l2"}},
        "data": "rendered",
        "seed": 3,
        "commit": "abc1234",
        "seconds": 12.5,
        "scores": {"rmse": 1.25},
        "notes": "for tests",
    }
    return ModelCard(**{**values, **changes})
