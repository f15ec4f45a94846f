"""The backbone on several scales: starts at nothing, reaches as far as it says, any size."""

import pytest
import torch

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.networks.unet import UNet

SMALL = {"backbone": "unet", "widths": (8, 16, 24), "blocks": (1, 0, 1), "window": 3, "iterations": 2}


def shaken(net, seed=0):
    """Every weight random, so that nothing is hidden by a zero."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(0.2 * torch.randn(weight.shape, generator=random))
    return net


def maps(size=(24, 40), batch=1):
    random = torch.Generator().manual_seed(1)
    depth, sigma, trust = (torch.rand(batch, 1, *size, generator=random) for _ in range(3))
    return (
        depth,
        sigma,
        trust,
        torch.rand(batch, 3, *size, generator=random),
        torch.full((batch, 1, 1, 1), 2.0),
    )


def test_untrained_it_is_the_interpolation():
    found = DepthNet(NetworkSettings(**{**SMALL, "iterations": 0}))(*maps())
    assert torch.equal(found.depth, maps()[0])
    assert found.sigma is not None
    assert torch.allclose(found.sigma, torch.tensor(0.05))


@pytest.mark.parametrize("size", [(1, 1), (7, 33), (24, 40)])
def test_any_size(size):
    found = shaken(DepthNet(NetworkSettings(**SMALL)))(*maps(size, batch=2))
    assert found.depth.shape == found.sigma.shape == found.features.weight.shape == (2, 1, *size)
    assert found.affinities.shape == (2, 4, *size)
    assert torch.isfinite(found.depth).all()


@pytest.mark.parametrize("blocks", [(0, 0), (1, 1), (1, 0, 1), (2, 1, 1)])
def test_it_reaches_no_farther_than_it_says(blocks):
    net = shaken(UNet(2, 3, (4, 6, 8)[: len(blocks)], blocks))
    side = 2 * (net.radius // net.stride + 2) * net.stride
    x = torch.randn(1, 2, side, side, generator=torch.Generator().manual_seed(0), requires_grad=True)
    reached = 0
    for at in range(side // 2, side // 2 + net.stride):
        (grad,) = torch.autograd.grad(net(x)[..., at, at].sum(), x)
        rows = grad.abs().sum((0, 1, 3)).nonzero()
        reached = max(reached, int((rows - at).abs().max()))
    assert 0.6 * net.radius < reached <= net.radius


def test_the_ratio_and_each_map_play_a_part():
    net, inputs = shaken(DepthNet(NetworkSettings(**SMALL))), maps()
    before = net(*inputs).depth
    for index in range(5):
        changed = [value + 0.3 if k == index else value for k, value in enumerate(inputs)]
        assert not torch.allclose(net(*changed).depth - (0.3 if index == 0 else 0.0), before)


def test_the_weight_of_the_data_stays_within_bounds():
    net = shaken(DepthNet(NetworkSettings(**SMALL)))
    with torch.no_grad():
        net.fcn.leave.weight.mul_(1e4)
        weight = net(*maps()).features.weight
    assert 0 < float(weight.min()) < float(weight.max()) <= torch.e**4.0


def test_levels_and_blocks_must_agree():
    with pytest.raises(ValueError, match="one of each per level"):
        UNet(1, 1, (4, 8), (1,))
