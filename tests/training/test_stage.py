"""A stage: what learns, from which loss, at which rate; averages by their formula."""

import math

import pytest
import torch
from toy_runs import FCN, NET

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.training.losses import affinity_loss, get_loss
from primaldepth.training.optimisation import (
    averaged,
    clip_gradient,
    make_optimiser,
    rate_schedule,
    restore_optimiser,
    sums_of,
    update_average,
)
from primaldepth.training.recipe import StageRecipe
from primaldepth.training.stage import StageLoss, stage_network


def stage(**changes):
    return StageRecipe.model_validate({**FCN, **changes})


@pytest.fixture
def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = DepthNet(NetworkSettings(**NET))
        with torch.no_grad():
            net.fcn.head.weight.normal_(0, 0.1)  # zero at the start: nothing before it would learn
        return net


@pytest.fixture
def batch():
    random = torch.Generator().manual_seed(0)
    images = [torch.rand(2, 1, 12, 12, generator=random) for _ in range(5)]
    valid = torch.rand(2, 1, 12, 12, generator=random) < 0.9
    return tuple(images[:4]), images[4], valid, torch.tensor([2.0, 30.0]).view(2, 1, 1, 1)


class TestLoss:
    def test_fcn(self, net, batch):
        maps, truth, valid, unit = batch
        found = StageLoss(net, stage(part="fcn", loss="l1", affinity=0.5))(*batch)
        seen = net.features(*maps)
        first, affinities = seen.first, seen.affinities
        expected = get_loss("l1")((first - truth) * unit, valid, truth * unit)
        expected = expected + 0.5 * affinity_loss(affinities, truth, valid, net.pdn.offsets)
        assert torch.allclose(found, expected)

    def test_joint(self, net, batch):
        maps, truth, valid, unit = batch
        found = StageLoss(net, stage(part="joint", loss="edge-l2", first=0.3))(*batch)
        estimate = net(*maps)
        parts = [
            get_loss("edge-l2")((depth - truth) * unit, valid, truth * unit)
            for depth in (estimate.depth, estimate.first)
        ]
        assert torch.allclose(found, parts[0] + 0.3 * parts[1])

    def test_in_half_precision_only_convolutions_are(self, net, batch, monkeypatch):
        seen = []
        plain = net.pdn.forward
        monkeypatch.setattr(net.pdn, "forward", lambda *maps: seen.extend(maps[:4]) or plain(*maps))
        exact = StageLoss(net, stage(part="joint"))(*batch)
        found = StageLoss(net, stage(part="joint"), bf16=True)(*batch)
        f, affinities, trust, guide = seen[4:]
        assert (f.dtype, trust.dtype, guide.dtype) == (torch.float32,) * 3
        assert affinities.dtype == torch.bfloat16
        assert found.dtype == torch.float32
        assert torch.allclose(found, exact, rtol=0.02)

    @pytest.mark.parametrize(
        ("part", "learns"), [("fcn", {"fcn"}), ("pdn", {"pdn"}), ("joint", {"fcn", "pdn"})]
    )
    def test_what_learns(self, net, batch, part, learns):
        wanted = stage(part=part, decay=0.1)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        module, optimiser = StageLoss(net, wanted), make_optimiser(net, wanted)
        module(*batch).backward()
        optimiser.step()
        changed = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
        assert changed == {name for name in before if name.split(".")[0] in learns}

    def test_stages_can_follow_in_any_order(self, net):
        for part in ("pdn", "fcn", "joint"):
            StageLoss(net, stage(part=part))
        assert all(parameter.requires_grad for parameter in net.parameters())


class TestOptimiser:
    def test_only_kernels_decay_and_the_solver_has_its_own_rate(self, net):
        wanted = stage(part="joint", decay=0.1, rate=0.01, rate_pdn=5.0)
        StageLoss(net, wanted)
        optimiser = make_optimiser(net, wanted)
        settings = {
            id(p): (group["weight_decay"], group["lr"])
            for group in optimiser.param_groups
            for p in group["params"]
        }
        for name, parameter in net.named_parameters():
            decay = 0.1 if name.startswith("fcn") and name.endswith("weight") else 0.0
            assert settings[id(parameter)] == (decay, 0.05 if name.startswith("pdn") else 0.01)

    def test_sgd_has_momentum(self, net):
        wanted = stage(part="fcn", optimiser="sgd")
        StageLoss(net, wanted)
        optimiser = make_optimiser(net, wanted)
        assert isinstance(optimiser, torch.optim.SGD)
        assert {group["momentum"] for group in optimiser.param_groups} == {0.9}

    def test_restored_sums_lie_in_memory_as_their_weights(self, net, batch):
        net.to(memory_format=torch.channels_last)
        wanted = stage(part="fcn")
        module, optimiser = StageLoss(net, wanted), make_optimiser(net, wanted)
        module(*batch).backward()
        optimiser.step()
        sums = {name: value.contiguous() for name, value in sums_of(optimiser).items()}
        fresh = make_optimiser(net, wanted)
        restore_optimiser(fresh, sums)
        weight = net.fcn.features[2].weight
        assert weight.stride() != weight.contiguous().stride()
        assert fresh.state[weight]["exp_avg"].stride() == weight.stride()
        assert torch.equal(fresh.state[weight]["exp_avg"], optimiser.state[weight]["exp_avg"])


class TestClipping:
    def parameters(self, *gradients):
        result = []
        for gradient in gradients:
            parameter = torch.nn.Parameter(torch.zeros(2))
            parameter.grad = torch.tensor(gradient)
            result.append(parameter)
        return result

    def test_norm_for_adamw(self):
        parameters = self.parameters([3.0, 0.0], [0.0, 4.0])
        assert float(clip_gradient(parameters, stage(clip=1.0))) == pytest.approx(5.0)
        assert torch.allclose(parameters[0].grad, torch.tensor([0.6, 0.0]), atol=1e-5)
        assert torch.allclose(parameters[1].grad, torch.tensor([0.0, 0.8]), atol=1e-5)

    def test_values_for_sgd(self):
        parameters = self.parameters([3.0, 0.05], [-0.2, 4.0])
        norm = clip_gradient(parameters, stage(optimiser="sgd", clip=0.1))
        assert float(norm) == pytest.approx(math.sqrt(9 + 0.05**2 + 0.2**2 + 16))
        assert torch.allclose(parameters[0].grad, torch.tensor([0.1, 0.05]))
        assert torch.allclose(parameters[1].grad, torch.tensor([-0.1, 0.1]))

    def test_what_does_not_learn_does_not_count(self):
        parameters = self.parameters([3.0, 4.0], [100.0, 0.0])
        parameters[1].requires_grad_(False)  # left from an earlier stage
        assert float(clip_gradient(parameters, stage())) == pytest.approx(5.0)


class TestSchedules:
    def rates(self, *steps, start=0, **changes):
        """Rates of the first group at these steps of a schedule that is begun at `start`."""
        wanted = stage(**{"steps": 1200, "rate": 0.8, "warmup": 0, **changes})
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=wanted.rate)
        schedule, found = rate_schedule(optimiser, wanted, start), []
        for step in range(start, max(steps) + 1):
            found += [optimiser.param_groups[0]["lr"]] * (step in steps)
            optimiser.step()
            schedule.step()
        return found

    def test_cosine(self):
        assert self.rates(0, 400, 600, 800) == pytest.approx([0.8, 0.6, 0.4, 0.2])
        assert 0 < self.rates(1199)[0] < 1e-5

    def test_constant(self):
        assert self.rates(0, 600, 1199, schedule="constant") == [0.8, 0.8, 0.8]

    def test_steps(self):
        found = self.rates(0, 599, 600, 999, 1000, 1199, schedule="steps")
        assert found == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.08, 0.08])

    def test_warmup_grows_linearly(self):
        assert self.rates(0, 1, 2, 3, 4, warmup=3, schedule="constant") == pytest.approx(
            [0.2, 0.4, 0.6, 0.8, 0.8]
        )

    def test_begun_amid_a_stage(self):
        assert self.rates(700, 701, start=700, warmup=3) == self.rates(700, 701, warmup=3)


class TestAverage:
    def test_formula(self, net):
        average = averaged(net)
        expected = {name: value.double().clone() for name, value in net.state_dict().items()}
        for step in range(20):
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.add_(0.1 * (step + 1))
            update_average(average, net, stage(ema=0.6), step)
            decay = min(0.6, (1 + step) / (10 + step))
            for name, value in net.state_dict().items():
                expected[name] = decay * expected[name] + (1 - decay) * value.double()
        for name, value in average.module.state_dict().items():
            assert torch.allclose(value.double(), expected[name], rtol=1e-5, atol=1e-6)

    def test_the_network_is_not_touched_and_not_shared(self, net):
        average = averaged(net)
        before = {name: value.clone() for name, value in net.state_dict().items()}
        for value in average.module.state_dict().values():
            value.zero_()
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


class TestNetwork:
    @pytest.mark.parametrize("part", ["fcn", "joint", "pdn"])
    def test_what_a_stage_gives(self, net, batch, part):
        found = stage_network(net.settings, stage(part=part), net.state_dict())
        assert (found.pdn is None) == (part == "fcn")
        expected = net(*batch[0])
        assert torch.equal(found(*batch[0]).depth, expected.first if part == "fcn" else expected.depth)
