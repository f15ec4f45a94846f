"""Sigma after training: 68 % of the validation errors within it, and only sigma changes."""

import torch
from toy_runs import FCN, JOINT, recipe, run

from primaldepth.evaluation.protocol import Case
from primaldepth.networks import DepthNet, NetworkSettings, from_pretrained
from primaldepth.networks.card import read_card
from primaldepth.training.calibration import calibrate
from primaldepth.training.validation import ValidationFrame, ValidationResult

NET = {"backbone": "unet", "widths": (8, 8), "blocks": (1, 1), "window": 3, "iterations": 2}


def seen(group, truth, depth):
    case = Case("scene", 2, None, truth, torch.ones_like(truth, dtype=torch.bool))
    return ValidationResult(ValidationFrame(group, case), depth, torch.ones_like(truth), {})


class Judge:
    """A validator whose errors are normal with standard deviation 3 where sigma says 1."""

    def results(self, net):
        random = torch.Generator().manual_seed(0)
        truth = torch.zeros(1, 1, 200, 200)
        depth = 3.0 * torch.randn(truth.shape, generator=random)
        yield seen("group", truth, depth)


def test_the_factor_is_the_one_that_was_missing():
    net = DepthNet(NetworkSettings(**NET))
    maps = [torch.rand(1, 1, 8, 8) for _ in range(3)] + [torch.rand(1, 3, 8, 8)]
    with torch.no_grad():
        before = net(*maps)
        found = calibrate(net, Judge())
        after = net(*maps)
    assert abs(found["sigma factor"] - 3.0) < 0.1
    assert abs(found["within sigma before"] - 0.26) < 0.02
    assert torch.allclose(after.sigma, found["sigma factor"] * before.sigma)
    assert after.depth.equal(before.depth)


class TwoGroups:
    """A large group whose sigma is right, and a small one in which it is four times too small."""

    def results(self, net):
        random = torch.Generator().manual_seed(0)
        for group, deviation, size in (("large", 1.0, 400), ("small", 4.0, 60)):
            truth = torch.zeros(1, 1, size, size)
            depth = deviation * torch.randn(truth.shape, generator=random)
            yield seen(group, truth, depth)


def test_every_group_counts_alike():
    found = calibrate(DepthNet(NetworkSettings(**NET)), TwoGroups())
    assert abs(found["sigma factor"] - 2.0) < 0.1
    assert abs(found["within sigma before"] - (0.68 + 0.20) / 2) < 0.03


class WithHeldOut(TwoGroups):
    """The same, and scenes held out in which sigma is much too large."""

    def results(self, net):
        yield from super().results(net)
        truth = torch.zeros(1, 1, 60, 60)
        yield seen("held-out x2", truth, truth + 0.01)


def test_scenes_held_out_do_not_speak_where_there_are_others():
    net = DepthNet(NetworkSettings(**NET))
    assert calibrate(net, WithHeldOut()) == calibrate(net, TwoGroups())


def test_a_run_leaves_calibrated_weights(shards, tmp_path):
    stages = {**FCN, "likelihood": 0.1}, {**JOINT, "likelihood": 0.1, "save_as": "toy-any"}
    run(recipe(*stages, net=NET), shards, tmp_path / "run")
    path = tmp_path / "run" / "toy-any-x2.safetensors"
    assert read_card(path.with_suffix(".json")).scores["sigma factor"] > 0
    assert from_pretrained(path).settings.backbone == "unet"
