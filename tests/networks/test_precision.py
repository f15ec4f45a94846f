"""Which precision "auto" means, who is told, and that evaluations do not depend on the processor."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.evaluation import rows
from primaldepth.methods import create
from primaldepth.networks import DepthNet, ModelCard, NetworkSettings, precision, save_model
from primaldepth.networks.precision import bfloat16_instructions, usual_dtype

CPU = torch.device("cpu")
UNET = NetworkSettings(backbone="unet", widths=(8, 16), blocks=(1, 1), window=3, iterations=2)


@pytest.fixture(params=[("avx512_bf16",), ()], ids=["with instructions", "without"])
def instructions(request, monkeypatch):
    """The processor as far as `usual_dtype` knows; computing in bfloat16 works on every one."""
    monkeypatch.setattr(precision, "bfloat16_instructions", lambda: request.param)
    return request.param


@pytest.fixture
def frame():
    random = torch.Generator().manual_seed(0)
    depth = 1.0 + torch.rand((1, 1, 12, 16), generator=random)
    guide = torch.rand((1, 3, 48, 64), generator=random)
    return Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=torch.full_like(depth, 0.01))


@pytest.fixture
def own_weights(tmp_path):
    torch.manual_seed(0)
    net = DepthNet(UNET)
    torch.nn.init.normal_(net.fcn.leave.weight, std=0.05)
    path = tmp_path / "own.safetensors"
    card = ModelCard(name="own", scale=None, settings=UNET, created="2026-01-01T00:00:00Z")
    save_model(path, net, card)
    return str(path)


def test_torch_says_what_the_processor_has(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False, "amx_bf16": True})
    bfloat16_instructions.cache_clear()
    try:
        assert bfloat16_instructions() == ("amx_bf16",)
    finally:
        bfloat16_instructions.cache_clear()


def test_auto_is_bfloat16_for_networks_of_every_scale_on_such_a_cpu(instructions):
    paper, any_scale = DepthNet(NetworkSettings(maps=4, layers=2, iterations=1)), DepthNet(UNET)
    wanted = torch.bfloat16 if instructions else torch.float32
    assert usual_dtype(any_scale, CPU) == wanted
    assert usual_dtype(any_scale, torch.device("cuda")) == torch.float32
    assert usual_dtype(paper, CPU) == torch.float32


def test_predictions_say_which_one_was_used(instructions, own_weights, frame):
    assert create(own_weights)(frame).info["precision"] == ("bf16" if instructions else "fp32")
    for name in ("fp32", "bf16"):
        assert create(own_weights, {"precision": name})(frame).info["precision"] == name


def test_auto_gives_what_its_precision_gives(instructions, own_weights, frame):
    name = "bf16" if instructions else "fp32"
    asked = create(own_weights, {"precision": name})(frame).depth
    assert create(own_weights)(frame).depth.equal(asked)


@pytest.mark.parametrize("shipped", [True, False])
def test_evaluations_compute_in_float32_unless_asked(instructions, own_weights, shipped):
    name = "pdn-any-small" if shipped else own_weights
    found = {each: rows.comparable(create(name, {"precision": each})) for each in ("auto", "fp32", "bf16")}
    precisions = {key: _asked(method) for key, method in found.items()}
    assert precisions == {"auto": "fp32", "fp32": "fp32", "bf16": "bf16"}
    other = create("bicubic")
    assert rows.comparable(other) is other


def _asked(method):
    return method.options.precision if hasattr(method, "options") else precision.name_of(method.precision)


def test_float32_does_not_depend_on_the_processor(monkeypatch, own_weights, frame):
    results = []
    for each in (("avx512_bf16",), ()):
        monkeypatch.setattr(precision, "bfloat16_instructions", lambda each=each: each)
        results.append(rows.comparable(create(own_weights))(replace(frame)).depth)
    assert results[0].equal(results[1])


def test_the_first_layer_of_a_cpu_stays_in_float32():
    """Differences of the depth that bfloat16 cannot hold reach the features."""
    torch.manual_seed(0)
    unet = DepthNet(UNET).stored_as(torch.bfloat16).fcn
    torch.nn.init.normal_(unet.leave.weight, std=1.0)
    flat = torch.ones((1, 7, 16, 16))
    near = flat + 1e-3  # the next bfloat16 after 1 is 1.0078
    with torch.no_grad():
        weight = unet.enter.weight
        weight.fill_(0.0)
        weight[0, 0, 1, 1], unet.enter.bias.data[0] = 1000.0, -1000.0
        with torch.autocast("cpu", torch.bfloat16):
            assert not unet(flat).equal(unet(near))
