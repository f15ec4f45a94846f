"""Recorded runs on a GPU against plain ones, and when nothing is recorded."""

import pytest
import torch

from primaldepth.methods.network_inputs import sampling_operator
from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.networks import inference as inference_module
from primaldepth.networks.inference import Inference, RecordingKey
from primaldepth.networks.inputs import NetworkInput, SensorSamples
from primaldepth.operators.pairwise import use_backend

UNET = {"backbone": "unet", "widths": (16, 24), "blocks": (1, 1), "window": 5, "iterations": 3}
SAMPLES = {**UNET, "samples": True}
FCN = {"layers": 3, "maps": 16, "window": 5, "iterations": 3}


def made(device: str, **settings: object) -> DepthNet:
    torch.manual_seed(0)
    net = DepthNet(NetworkSettings(**settings)).eval()
    with torch.no_grad():
        for parameter in net.fcn.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return net.to(device)


def maps(device: str, size: tuple[int, int], colours: int, seed: int = 0) -> NetworkInput:
    draw = torch.Generator().manual_seed(seed)
    images = (torch.rand((1, n, *size), generator=draw).to(device) for n in (1, 1, 1, colours))
    A = sampling_operator(size, (size[0] // 4, size[1] // 3), "average")
    measured = (each.to(device) for each in torch.rand((3, 1, *A.out_shape), generator=draw))
    return NetworkInput(*images, samples=SensorSamples(A, *measured))


@pytest.mark.parametrize(("settings", "channels"), [(UNET, 2), (SAMPLES, 2), (FCN, 1)])
def test_depth_and_sigma_are_the_networks(settings, channels):
    net = made("cpu", **settings)
    seen = maps("cpu", (18, 22), net.settings.colours)
    found, expected = Inference(net)(seen), net(*seen)
    assert found.shape == (1, channels, 18, 22)
    assert not found.requires_grad
    assert torch.allclose(found[:, :1], expected.depth, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("settings", [UNET, SAMPLES, FCN])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_what_is_played_back_equals_what_is_run(settings, precision):
    net = made("cuda", **settings).stored_as(precision)
    inference = Inference(net, precision)
    kept = []
    for seed in range(4):
        for size in ((40, 56), (33, 47)):
            seen = maps("cuda", size, net.settings.colours, seed)
            kept.append((inference(seen), inference.run(seen)))
    assert len(inference._seen) == 2
    assert all(inference._seen.values())
    for found, expected in kept:  # compared at the end: no result may be written over
        assert torch.equal(found, expected)


@pytest.mark.gpu
def test_weights_that_change_in_place_or_move_are_seen():
    net = made("cuda", **UNET)
    inference, seen = Inference(net), maps("cuda", (32, 32), 3)
    before = [inference(seen) for _ in range(3)][-1]
    with torch.no_grad():
        next(net.fcn.parameters()).mul_(1.5)
    assert torch.equal(inference(seen), inference.run(seen))
    assert not torch.equal(inference(seen), before)
    net.cpu()
    net.cuda()
    assert torch.equal(inference(seen), inference.run(seen))


def test_the_oldest_sizes_are_forgotten(monkeypatch):
    monkeypatch.setattr(inference_module, "KEPT", 1000)
    inference = Inference(made("cpu", **UNET))
    keys = [RecordingKey((torch.Size((1, 1, side, 10)),), 0, ()) for side in (40, 50, 30, 90, 200)]
    kept = []
    for key in keys:
        inference._remember(key)
        kept.append([each.shapes[0][2] for each in inference._seen])
    assert kept == [[40], [40, 50], [50, 30], [90], [200]]


@pytest.mark.gpu
def test_large_frames_and_other_backends_are_run(monkeypatch):
    net = made("cuda", **UNET)
    inference, seen = Inference(net), maps("cuda", (32, 32), 3)
    with use_backend("torch"):
        inference(seen)
    monkeypatch.setattr(inference_module, "LARGEST", 1000)
    inference(seen)
    assert not inference._seen
