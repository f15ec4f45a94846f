"""Batches that carry the sensor's samples, and truth with holes."""

import pytest
import torch
from toy_runs import recipe, run, scene, write_scenes

from primaldepth.data.patches import Scenes
from primaldepth.networks import DepthNet, NetworkSettings, from_pretrained
from primaldepth.operators.sampling import MixedResample, Resample
from primaldepth.sensors import sensor, sensor_names
from primaldepth.training.batches import draw_batch
from primaldepth.training.optimisation import make_optimiser
from primaldepth.training.stage import StageLoss
from primaldepth.training.weights import partly

NET = {"backbone": "unet", "widths": (8, 16), "blocks": (1, 1), "window": 3, "iterations": 3, "samples": True}
JOINT = {
    "part": "joint",
    "steps": 6,
    "batch": 8,
    "patch": 16,
    "first": 0.2,
    "affinity": 0.5,
    "likelihood": 0.5,
}


def scenes(hole=None, count=4, size=64):
    """Scenes with a slanted stripe of holes of that value."""
    made = [scene(number, size) for number in range(count)]
    depth = torch.stack([torch.from_numpy(each["depth"]) for each in made])
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    if hole is not None:
        depth = torch.where((x + y // 3) % size < size // 2, hole, depth)
    return Scenes(depth, torch.stack([torch.from_numpy(each["image"]) for each in made]))


def wanted(*sensors, scale=(2, 4), **data):
    mix = [{"sensor": name, "noise": (0.01, 0.01)} for name in sensors]
    return recipe(JOINT, data={"mix": mix, **data}, scale=scale, net=NET)


def learned(net, job, batch):
    """The loss and the gradients of one batch."""
    net.zero_grad()
    loss = StageLoss(net, job.stages[0])(batch.maps, batch.truth, batch.valid, batch.unit)
    loss.backward()
    return loss, [weight.grad for weight in net.parameters() if weight.grad is not None]


@pytest.mark.parametrize("hole", [0.0, torch.nan, torch.inf, -1.0])
@pytest.mark.parametrize("name", ["middlebury-noisy-v1", "metric-gaussian-v1", "structured-light-v1"])
def test_truth_with_holes_trains(name, hole):
    job = wanted(name)
    batch = draw_batch(scenes(hole), job, 8, 16, (0, 0, 0))
    assert not batch.valid.all()
    assert all(torch.isfinite(each).all() for each in batch.tensors().values())
    torch.manual_seed(0)
    loss, grads = learned(DepthNet(job.net), job, batch)
    assert torch.isfinite(loss)
    assert all(torch.isfinite(grad).all() for grad in grads)


@pytest.mark.parametrize("hole", [torch.nan, torch.inf, -1.0])
def test_every_mark_of_a_hole_means_the_same(hole):
    job = wanted("metric-gaussian-v1")
    marked, usual = (draw_batch(scenes(mark), job, 8, 16, (0, 0, 0)) for mark in (hole, 0.0))
    for name, value in usual.tensors().items():
        assert torch.equal(marked.tensors()[name], value), name


@pytest.mark.parametrize("name", sensor_names())
def test_samples_come_from_the_truth_by_the_sensors_operator(name):
    job = wanted(name, scale=(4,))
    batch = draw_batch(scenes(), job, 4, 32, (0, 0, 0))
    samples = batch.maps.samples
    assert samples.A.out_shape == (1, 8, 8)
    assert sensor(name).sampling in ("average", "point")
    seen = samples.trust > 0
    off = (samples.A(batch.truth) - samples.depth)[seen].abs()
    assert float(off.median()) < 0.05


def test_a_network_without_the_term_gets_no_samples():
    job = recipe(JOINT, net={**NET, "samples": False}, scale=2)
    assert draw_batch(scenes(), job, 4, 16, (0, 0, 0)).maps.samples is None


def test_a_blend_of_scales_has_the_gradient_of_its_images():
    """One operator per image, of different sizes, gives what the images give one kind at a time."""
    job = wanted("middlebury-noisy-v1", "structured-light-v1", scale=(2, 4, 8), blend=4)
    batch = draw_batch(scenes(), job, 8, 16, (0, 1, 0))
    samples = batch.maps.samples
    assert isinstance(samples.A, MixedResample)
    torch.manual_seed(0)
    net = DepthNet(job.net).eval()
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.02 * torch.randn_like(weight))
        together = net(*batch.maps).depth
        for index in range(8):
            one = batch.part(slice(index, index + 1)).maps
            scale = round(2.0 ** float(one.ratio))
            assert one.samples.trust[:, :, 16 // scale :].abs().sum() == 0
            A = Resample((16, 16), (16 // scale, 16 // scale), kernel_of(one.samples.A, scale))
            small = one.samples.each(lambda image, n=16 // scale: image[:, :, :n, :n])._replace(A=A)
            alone = net(*one._replace(samples=small)).depth
            assert (alone - together[index : index + 1]).abs().max() < 1e-5


def kernel_of(A, scale):
    """The kernel that made one image's operator: averages have more than two weights in a row."""
    return "bicubic" if int((A.rows[0, 0, 1] != 0).sum()) > 2 else "point"


def test_every_parameter_learns():
    job = wanted("middlebury-noisy-v1", "structured-light-v1", blend=2)
    torch.manual_seed(0)
    net = DepthNet(job.net)
    optimiser = make_optimiser(net, job.stages[0])
    before = {name: value.detach().clone() for name, value in net.named_parameters()}
    for step in range(3):
        learned(net, job, draw_batch(scenes(), job, 8, 16, (0, step, 0)))
        optimiser.step()
    still = [name for name, value in net.named_parameters() if value.equal(before[name])]
    assert still == []
    last = net.fcn.leave.weight.detach().flatten(1).abs().amax(dim=1)
    assert float(last.view(-1, 4)[-1].min()) > 0  # the trust in samples


def test_a_whole_run_with_the_sample_term(tmp_path):
    """From scenes whose truth has holes to saved weights, with sensors and scales blended."""
    mix = [{"sensor": "middlebury-noisy-v1"}, {"sensor": "structured-light-v1"}]
    stage = {**JOINT, "steps": 3, "warmup": 1, "save_as": "toy-samples"}
    wanted_run = recipe(stage, data={"mix": mix, "blend": 2}, scale=(2, 4), net=NET)
    run(wanted_run, write_scenes(tmp_path / "scenes"), tmp_path / "run")
    assert from_pretrained(tmp_path / "run" / "toy-samples").settings.samples


def test_where_nobody_says_the_sampling_it_is_read_as_points():
    sure, unsure = (wanted("middlebury-noisy-v1", scale=(4,), unsaid=share) for share in (0.0, 1.0))
    read = [draw_batch(scenes(), job, 4, 32, (0, 0, 0)).maps.samples for job in (sure, unsure)]
    assert torch.equal(read[0].depth, read[1].depth)
    taps = [
        int((each.A(torch.eye(32).view(32, 1, 32, 1).expand(-1, -1, -1, 32))[:, 0, 3, 3] != 0).sum())
        for each in read
    ]
    assert taps[0] > 2 >= taps[1]


def test_a_head_leaves_the_layers_before_it(tmp_path):
    """The last convolution and the solver learn, starting from weights without the sample term."""
    plain = recipe(
        {**JOINT, "steps": 1, "warmup": 0, "save_as": "plain"}, net={**NET, "samples": False}, scale=2
    )
    folder = write_scenes(tmp_path / "scenes")
    run(plain, folder, tmp_path / "plain")
    start = tmp_path / "plain" / "plain-x2.safetensors"
    stage = {**JOINT, "part": "head", "steps": 3, "warmup": 0, "save_as": "anchored"}
    run(recipe(stage, net=NET, scale=2, start=str(start)), folder, tmp_path / "run")
    before, after = (
        from_pretrained(path).state_dict() for path in (start, tmp_path / "run" / "anchored-x2.safetensors")
    )
    changed = {name for name in before if not torch.equal(before[name], after[name][: len(before[name])])}
    assert {name for name in changed if name.startswith("fcn.")} == {"fcn.leave.weight", "fcn.leave.bias"}
    assert "pdn.log_precision" in after


def test_only_what_the_start_has_of_the_backbone_is_mixed():
    small = {name: value for name, value in NET.items() if name != "samples"}
    torch.manual_seed(0)
    start = DepthNet(NetworkSettings(**small))
    net = start.with_samples()
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(1.0)
    mixed, old, new = (each.state_dict() for each in (partly(net, start, 0.25), start, net))
    for name, value in new.items():
        if name.startswith("pdn."):
            assert torch.equal(mixed[name], value)
    for name, value in start.fcn.state_dict().items():
        own = mixed[f"fcn.{name}"]
        torch.testing.assert_close(own[: len(value)], value + 0.75)
        torch.testing.assert_close(own[len(value) :], new[f"fcn.{name}"][len(value) :])
    assert old.keys() < new.keys()
