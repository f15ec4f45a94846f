"""`train_stage` is a plain loop over batches, and goes on from any state."""

import math
from dataclasses import replace

import pytest
import torch
from toy_runs import FCN, JOINT, recipe

from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.networks import DepthNet, precision
from primaldepth.training.batches import StageBatches
from primaldepth.training.run import _fabric
from primaldepth.training.stage import StageLoss
from primaldepth.training.stage_loop import Callback, Learner, train_stage
from primaldepth.training.state import Position, TrainState
from primaldepth.training.weights import start_network

ADAMW = {**JOINT, "steps": 9, "warmup": 3, "decay": 0.1, "ema": 0.7}
SGD = {**FCN, "optimiser": "sgd", "schedule": "steps", "rate": 1e-3, "clip": 0.05, "steps": 12, "ema": 0.9}


def plain(wanted, data):
    """The same in so many words: the last weights and the averaged ones."""
    stage = wanted.stages[0]
    net = start_network(wanted)
    loss = StageLoss(net, stage)
    named = dict(net.named_parameters())
    learned = {name: weight for name, weight in named.items() if weight.requires_grad}
    average = {name: weight.detach().clone() for name, weight in named.items()}
    sums = {name: [torch.zeros_like(weight), torch.zeros_like(weight)] for name, weight in learned.items()}
    for step in range(stage.steps):
        net.zero_grad()
        for batch in data.batches(step):
            loss(batch.maps, batch.truth, batch.valid, batch.unit).backward()
        done = step / stage.steps
        falling = 0.5 * (1 + math.cos(math.pi * done)) if stage.schedule == "cosine" else 0.0
        stairs = 1.0 if done < 0.5 else 0.5 if done < 5 / 6 else 0.1
        factor = falling if stage.schedule == "cosine" else stairs
        rate = stage.rate * min(1.0, (step + 1) / (stage.warmup + 1)) * factor
        norm = math.sqrt(sum(float(weight.grad.square().sum()) for weight in learned.values()))
        for name, weight in learned.items():
            own = rate * (stage.rate_pdn if name.startswith("pdn") else 1.0)
            with torch.no_grad():
                if stage.optimiser == "sgd":
                    decay = stage.decay if name.startswith("fcn") and weight.ndim > 1 else 0.0
                    sums[name][0].mul_(0.9).add_(weight.grad.clamp(-stage.clip, stage.clip) + decay * weight)
                    weight -= own * sums[name][0]
                    continue
                gradient = weight.grad * min(1.0, stage.clip / (norm + 1e-6))
                if name.startswith("fcn") and weight.ndim > 1:
                    weight *= 1 - own * stage.decay
                first, second = sums[name]
                first.lerp_(gradient, 0.1)
                second.lerp_(gradient.square(), 0.01)
                size = (second / (1 - 0.99 ** (step + 1))).sqrt() + 1e-8
                weight -= own * first / (1 - 0.9 ** (step + 1)) / size
        memory = min(stage.ema, (1 + step) / (10 + step))
        for name, weight in named.items():
            average[name] = memory * average[name] + (1 - memory) * weight.detach()
    return {name: weight.detach() for name, weight in named.items()}, average


def begun(wanted):
    return TrainState("", "", Position(), start_network(wanted).state_dict())


def copied(state):
    """What a checkpoint would have kept."""
    parts = {part: getattr(state, part) for part in ("weights", "average", "best", "optimiser")}
    kept = {part: {key: value.clone() for key, value in tensors.items()} for part, tensors in parts.items()}
    return replace(state, position=replace(state.position), **kept)


@pytest.fixture(scope="module")
def scenes(shards):
    return Scenes.load(Shards(shards))


def trained(wanted, scenes, state=None, at=0):
    """The last weights, the averaged ones, and the state after `at` steps."""
    seen = {}

    def look(learner):
        seen["average"] = {name: value.clone() for name, value in learner.candidate.state_dict().items()}
        seen["last"] = {name: value.clone() for name, value in learner.net.state_dict().items()}
        if learner.position.step == at:
            seen["state"] = copied(learner.state())
        return True

    data, fabric = StageBatches(scenes, wanted, 0), _fabric("cpu")
    train_stage(state or begun(wanted), wanted.stages[0], data, wanted, fabric, [Callback(1, look)])
    return seen


@pytest.mark.parametrize("stage", [ADAMW, SGD], ids=["adamw", "sgd"])
def test_a_plain_loop_gives_the_same(scenes, stage):
    wanted = recipe(stage)
    last, average = plain(wanted, StageBatches(scenes, wanted, 0))
    found = trained(wanted, scenes)
    start = start_network(wanted).state_dict()
    for name in last:
        assert torch.allclose(found["last"][name], last[name], rtol=1e-4, atol=1e-6), name
        assert torch.allclose(found["average"][name], average[name], rtol=1e-4, atol=1e-6), name
    moved = {name for name in last if not torch.allclose(last[name], start[name], atol=1e-5)}
    assert any(name.startswith("fcn") for name in moved)


@pytest.mark.parametrize("stage", [ADAMW, SGD, {**ADAMW, "ema": 0.0}], ids=["adamw", "sgd", "no average"])
def test_a_state_is_all_that_is_needed_to_go_on(scenes, stage):
    wanted = recipe(stage)
    whole = trained(wanted, scenes, at=5)
    rest = trained(wanted, scenes, whole["state"])
    for part in ("last", "average"):
        assert all(torch.equal(rest[part][name], value) for name, value in whole[part].items())


def test_the_state_that_is_given_is_not_changed(scenes):
    wanted = recipe(ADAMW)
    state = begun(wanted)
    before = copied(state)
    trained(wanted, scenes, state)
    assert state.position == before.position
    assert all(torch.equal(state.weights[name], value) for name, value in before.weights.items())


class TestCallbacks:
    def calls(self, scenes, *callbacks):
        wanted, told = recipe({**FCN, "steps": 7}), []
        named = [
            Callback(every, lambda learner, n=n, go=go: told.append((learner.position.step, n)) or go, end)
            for n, (every, go, end) in enumerate(callbacks)
        ]
        data = StageBatches(scenes, wanted, 0)
        state = train_stage(begun(wanted), wanted.stages[0], data, wanted, _fabric("cpu"), named)
        return told, state

    def test_when_and_in_which_order(self, scenes):
        told, state = self.calls(scenes, (3, True, True), (3, True, False), (0, True, True))
        assert told == [(3, 0), (3, 1), (6, 0), (6, 1), (7, 0), (7, 2)]
        assert state.position.step == 7

    def test_one_that_ends_the_stage(self, scenes):
        told, state = self.calls(scenes, (2, True, True), (4, False, True), (2, True, True))
        assert told == [(2, 0), (2, 2), (4, 0), (4, 1)]
        assert state.position.step == 4

    def test_the_best_weights_are_what_is_left(self, scenes):
        wanted = recipe(ADAMW)
        best = {}

        def keep(learner):
            if learner.position.step == 4:
                learner.keep_candidate()
                best.update({name: value.clone() for name, value in learner.candidate.state_dict().items()})
            return True

        data = StageBatches(scenes, wanted, 0)
        callbacks = [Callback(1, keep)]
        state = train_stage(begun(wanted), wanted.stages[0], data, wanted, _fabric("cpu"), callbacks)
        assert all(torch.equal(state.weights[name], value) for name, value in best.items())
        assert (state.average, state.best, state.optimiser) == ({}, {}, {})
        DepthNet(wanted.net).load_state_dict(state.weights)


def test_processes_share_every_batch(scenes):
    wanted = recipe({**FCN, "batch": 8}, accumulate=2)
    whole = list(StageBatches(scenes, wanted, 0).whole(5))
    shares = [list(StageBatches(scenes, wanted, 0, (rank, 2)).batches(5)) for rank in (0, 1)]
    for part, batch in enumerate(whole):
        assert len(batch.truth) == 4
        both = torch.cat([share[part].truth for share in shares])
        assert torch.equal(both, batch.truth)


@pytest.mark.parametrize("backbone", ["fcn", "unet"])
@pytest.mark.parametrize("instructions", [(), ("avx512_bf16",)], ids=["without", "with"])
def test_a_cpu_with_the_instructions_trains_a_unet_in_bfloat16(monkeypatch, backbone, instructions):
    monkeypatch.setattr(precision, "bfloat16_instructions", lambda: instructions)
    unet = {"backbone": "unet", "widths": (8, 8), "blocks": (1, 1), "window": 3, "iterations": 1}
    changes = {"net": unet} if backbone == "unet" else {}
    for asked in ("fp32", "bf16"):
        wanted = recipe(JOINT, precision=asked, **changes)
        learner = Learner(begun(wanted), wanted.stages[0], wanted, _fabric("cpu"))
        fast = asked == "bf16" and backbone == "unet" and bool(instructions)
        assert learner._module.module.bf16 == fast


def test_training_in_bfloat16_stays_close_to_float32(scenes, monkeypatch):
    monkeypatch.setattr(precision, "bfloat16_instructions", lambda: ("avx512_bf16",))
    net = {"backbone": "unet", "widths": (8, 8), "blocks": (1, 1), "window": 3, "iterations": 2}
    last = [trained(recipe(ADAMW, precision=asked, net=net), scenes)["last"] for asked in ("fp32", "bf16")]
    start = begun(recipe(ADAMW, net=net)).weights
    moved = sum(float((last[0][name] - start[name]).square().sum()) for name in start)
    apart = sum(float((last[0][name] - last[1][name]).square().sum()) for name in start)
    assert 0 < apart < 0.1 * moved
