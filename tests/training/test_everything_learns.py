"""No weight of a new network is dead: each has a gradient in the stage that trains it."""

import pytest
import torch

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.training.optimisation import make_optimiser
from primaldepth.training.recipe import StageRecipe
from primaldepth.training.stage import StageLoss

FCN = {"layers": 3, "maps": 8, "window": 3, "iterations": 3}
UNET = {"backbone": "unet", "widths": (8, 8), "blocks": (1, 1), "window": 3, "iterations": 3}
LEARNT = {"likelihood": 0.1, "affinity": 0.5, "first": 0.1, "steps": 9}


def batch(settings):
    random = torch.Generator().manual_seed(0)
    depth, sigma, truth = (torch.rand(2, 1, 16, 16, generator=random) for _ in range(3))
    guide = torch.rand(2, settings.colours, 16, 16, generator=random)
    trust, unit = torch.ones_like(depth), torch.ones(2, 1, 1, 1)
    return (depth, 0.1 * sigma, trust, guide, unit), truth, trust > 0, unit


@pytest.mark.parametrize("net", [FCN, UNET], ids=["fcn", "unet"])
@pytest.mark.parametrize("part", ["fcn", "joint"])
def test_every_output_map_moves(net, part):
    """Affinities above all: |a| has no slope at 0, where a last layer of zeros would put them."""
    torch.manual_seed(0)
    model = DepthNet(NetworkSettings(**net))
    stage = StageRecipe(part=part, **{**LEARNT, "affinity": 0.5 if part == "fcn" else 0.0})
    loss, optimiser = StageLoss(model, stage), make_optimiser(model, stage)
    last = model.fcn.head if hasattr(model.fcn, "head") else model.fcn.leave
    for _ in range(3):
        optimiser.zero_grad()
        loss(*batch(model.settings)).backward()
        optimiser.step()
    moved = last.weight.detach().flatten(1).abs().amax(dim=1)
    unused = {0} if part == "fcn" and net is UNET else set()  # the weight of the data: nothing reads it yet
    maps = moved.view(-1, 4).amin(dim=1) if net is UNET else moved
    dead = {k - 1 for k in range(len(maps)) if float(maps[k]) == 0.0}
    assert dead == unused


@pytest.mark.parametrize("net", [FCN, UNET], ids=["fcn", "unet"])
def test_the_learned_affinities_follow_the_depth(net):
    """After some steps on one scene a step in depth has a larger affinity than a flat part."""
    torch.manual_seed(0)
    model = DepthNet(NetworkSettings(**net))
    stage = StageRecipe(part="fcn", affinity=5.0, steps=300, rate=2e-3, warmup=20)
    loss, optimiser = StageLoss(model, stage), make_optimiser(model, stage)
    truth = (torch.arange(16) >= 8).float().expand(1, 1, 16, 16).contiguous()
    one, ratio = torch.ones_like(truth), torch.ones(1, 1, 1, 1)
    maps = (truth, 0.1 * one, one, truth.expand(1, model.settings.colours, 16, 16), ratio)
    for _ in range(300):
        optimiser.zero_grad()
        loss(maps, truth, one > 0, ratio).backward()
        optimiser.step()
    with torch.no_grad():
        found = model(*maps).affinities.abs().amax(dim=1)[0, 4:12]
    assert float(found[:, 7:9].mean()) > 0.5
    assert float(found[:, :4].mean()) < 0.2
