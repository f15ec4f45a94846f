"""Networks and inputs small enough for every test."""

from datetime import UTC, datetime

import torch

from primaldepth.networks import DepthNet, ModelCard, NetworkSettings

SMALL = {"layers": 2, "maps": 3, "window": 3, "iterations": 2}


def uniform(*shape, seed=0, dtype=torch.float32):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def small_net(seed=0, **changes):
    """A network whose every parameter is random, so that no output is trivially zero."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        net = DepthNet(NetworkSettings(**{**SMALL, **changes}))
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return net.eval()


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
