"""Steps that are played back as a CUDA graph, and the fixed shapes that they need."""

import pytest
import torch
from test_sample_batches import JOINT, NET, learned, scenes, wanted
from toy_runs import recipe

from primaldepth.networks import DepthNet
from primaldepth.operators.sampling import MixedResample
from primaldepth.training.batches import StageBatches, draw_batch
from primaldepth.training.recorded_step import with_fixed_shapes
from primaldepth.training.stage_loop import Learner
from primaldepth.training.state import Position, TrainState


@pytest.mark.parametrize("scale", [(2, 4, 8), (4,)])
def test_fixed_shapes_change_neither_loss_nor_gradient(scale):
    job = wanted("middlebury-noisy-v1", "structured-light-v1", scale=scale, blend=4)
    fixed = with_fixed_shapes(job, job.stages[0])
    shapes = set()
    for step in range(3):
        batch = draw_batch(scenes(), job, 8, 16, (0, step, 0))
        same = fixed(batch)
        torch.manual_seed(0)
        net = DepthNet(job.net)
        loss, grads = learned(net, job, batch)
        grads = [grad.clone() for grad in grads]
        torch.testing.assert_close(learned(net, job, same), (loss, grads), rtol=1e-4, atol=1e-6)
        shapes.add(tuple(each.shape for each in (*same.tensors().values(), *same.maps.samples.A.matrices)))
    assert len(shapes) == 1


def test_bands_of_fixed_shapes_hold_all_weights():
    job = wanted("middlebury-noisy-v1", "structured-light-v1", scale=(1, 2, 4, 8), blend=4)
    batch = with_fixed_shapes(job, job.stages[0])(draw_batch(scenes(), job, 8, 16, (0, 0, 0)))
    A = batch.maps.samples.A
    assert isinstance(A, MixedResample)
    for transposed in (False, True):
        for band, whole in zip(A.bands(A.rows, transposed=transposed), A.matrices[:2], strict=True):
            matrix = whole[:, 0].mT if transposed else whole[:, 0]
            index = band.first[..., None] + torch.arange(band.taps)
            weights = band.weights.mT
            assert torch.equal(torch.zeros_like(matrix).scatter_add(2, index, weights), matrix)
            assert bool((weights[torch.arange(band.taps) >= band.kept[..., None]] == 0).all())


def test_a_stage_of_convolutions_reads_no_samples():
    job = recipe({**JOINT, "part": "fcn"}, net=NET, scale=2)
    batch = draw_batch(scenes(), job, 8, 16, (0, 0, 0))
    assert with_fixed_shapes(job, job.stages[0])(batch).maps.samples is None


def learn(job, recorded, steps):
    """Losses of the first steps on a GPU, and the weights after them."""
    from lightning_fabric import Fabric

    torch.manual_seed(0)
    fabric = Fabric(accelerator="cuda", devices=1)
    fabric.launch()
    state = TrainState("", "", Position(), DepthNet(job.net).state_dict())
    held = scenes(count=8)
    on_device = type(held)(held.depth.cuda(), held.image.cuda())
    learner = Learner(state, job.stages[0], job, fabric)
    if not recorded:
        learner._recorder = None
    data = StageBatches(on_device, job, 0)
    losses = []
    for step in range(steps):
        learner.step(data.batches(step))
        losses.append(learner._loss.clone())
    return torch.stack(losses).diff().cpu(), [weight.detach().cpu() for weight in learner.net.parameters()]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "optimiser",
    [{}, {"optimiser": "sgd", "rate": 1e-3, "clip": 0.1}, {"optimiser": "muon"}],
    ids=["adamw", "sgd", "muon"],
)
@pytest.mark.parametrize("part", ["fcn", "joint"])
def test_a_recorded_step_is_the_step(part, optimiser):
    stage = {**JOINT, "part": part, "steps": 12, "warmup": 2, "ema": 0.9, **optimiser}
    mix = [{"sensor": "middlebury-noisy-v1"}, {"sensor": "structured-light-v1"}]
    job = recipe(stage, data={"mix": mix, "blend": 4}, scale=(1, 2, 4), net=NET, precision="fp32")
    (played, weights), (plain, expected) = (learn(job, recorded, 12) for recorded in (True, False))
    torch.testing.assert_close(played, plain, rtol=2e-3, atol=1e-5)
    for one, other in zip(weights, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=2e-4)
