"""Orthogonal steps: what becomes of singular values, and which weights take them."""

import pytest
import torch
from torch import nn

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.training.muon import STEP_RMS, Muon, orthogonal
from primaldepth.training.optimisation import make_optimiser
from primaldepth.training.recipe import StageRecipe

STAGE = StageRecipe(part="joint", steps=10, rate=1e-2, optimiser="muon")


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stepped(weight, gradients, optimiser):
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimiser.step()
    return weight.detach()


class TestOrthogonal:
    @pytest.mark.parametrize("shape", [(3, 8, 8), (2, 5, 40), (2, 40, 5), (1, 1, 7)])
    def test_singular_values_come_near_one_and_directions_stay(self, shape):
        D = random(*shape)
        U, _, Vh = torch.linalg.svd(D, full_matrices=False)
        core = U.mT @ orthogonal(D) @ Vh.mT  # diagonal where U and V are those of D
        values = core.diagonal(dim1=1, dim2=2)
        assert values.min() > 0.3
        assert values.max() < 1.3
        assert (core - torch.diag_embed(values)).abs().max() < 1e-9

    def test_its_scale_does_not_count(self):
        D = random(1, 4, 6)
        torch.testing.assert_close(orthogonal(1e3 * D), orthogonal(D), rtol=1e-4, atol=1e-6)

    def test_zeros_stay_zeros(self):
        assert not orthogonal(torch.zeros(2, 3, 4)).any()


class TestMuon:
    def test_two_steps_by_hand(self):
        start, first, second = random(4, 3, 2, 2), random(4, 3, 2, 2, seed=1), random(4, 3, 2, 2, seed=2)
        weight = nn.Parameter(start.clone())
        rate, decay, mu = 0.1, 0.5, 0.9
        groups = [{"params": [weight], "lr": rate, "weight_decay": decay, "momentum": mu}]
        found = stepped(weight, [first, second], Muon(groups))
        expected, M = start.clone(), torch.zeros_like(start)
        for G in (first, second):
            M = mu * M + (1 - mu) * G
            D = (mu * M + (1 - mu) * G).reshape(1, 4, 12)
            step = STEP_RMS * 12**0.5 * orthogonal(D).view(4, 3, 2, 2)
            expected = (1 - rate * decay) * expected - rate * step
        torch.testing.assert_close(found, expected)

    def test_matrices_of_one_shape_do_not_mix(self):
        weights = [nn.Parameter(random(4, 6, seed=n)) for n in range(3)]
        gradients = [random(4, 6, seed=n) for n in (5, 6, 7)]
        alone = []
        for weight, gradient in zip(weights, gradients, strict=True):
            own = nn.Parameter(weight.detach().clone())
            alone.append(stepped(own, [gradient], Muon([{"params": [own], "momentum": 0.9}])))
            weight.grad = gradient.clone()
        Muon([{"params": weights, "momentum": 0.9}]).step()
        for weight, expected in zip(weights, alone, strict=True):
            torch.testing.assert_close(weight.detach(), expected)

    def test_without_momentum_it_is_adamw(self):
        start, gradients = random(4, 6), [random(4, 6, seed=n) for n in range(1, 5)]
        mine, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
        options = {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.3}
        found = stepped(mine, gradients, Muon([{"params": [mine]}], **options))
        assert torch.equal(found, stepped(theirs, gradients, torch.optim.AdamW([theirs], **options)))

    def test_a_weight_without_a_gradient_stays(self):
        weights = [nn.Parameter(random(3, 3, seed=n)) for n in range(2)]
        before = weights[1].detach().clone()
        weights[0].grad = random(3, 3, seed=2)
        Muon([{"params": weights, "momentum": 0.9}]).step()
        assert torch.equal(weights[1].detach(), before)


@pytest.mark.parametrize(
    "settings", [{"backbone": "unet", "widths": (8, 16), "blocks": (1, 1)}, {"layers": 4}]
)
def test_the_first_and_the_last_layer_are_no_matrices(settings):
    net = DepthNet(NetworkSettings(window=3, iterations=2, **settings))
    groups = make_optimiser(net, STAGE).param_groups
    matrices = {weight for group in groups if group["momentum"] is not None for weight in group["params"]}
    kernels = [weight for weight in net.fcn.parameters() if weight.ndim > 1]
    assert matrices == set(kernels[1:-1])
    assert {weight for group in groups for weight in group["params"]} == set(net.parameters())
