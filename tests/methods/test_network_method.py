from dataclasses import replace

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.methods.network import Network, memory_in_use, tile_for_memory, tiles
from primaldepth.networks import DepthNet, ModelCard, NetworkSettings, save_model

SMALL = NetworkSettings(layers=3, maps=4, iterations=3)


@pytest.fixture
def net():
    torch.manual_seed(0)
    made = DepthNet(SMALL).eval()
    torch.nn.init.normal_(made.fcn.head.weight, std=0.05)
    return made


@pytest.fixture
def frame():
    random = torch.Generator().manual_seed(1)
    depth = 1 + torch.rand((1, 1, 14, 21), generator=random)
    valid = torch.rand((1, 1, 14, 21), generator=random) > 0.15
    return Frame(depth, valid, torch.rand((1, 3, 61, 83), generator=random))


@pytest.mark.parametrize("tile", [16, 30, 64, 1000])
def test_tiles_give_the_result_of_the_whole_frame(net, frame, tile):
    whole = Network("net", net)(frame).depth
    assert (Network("net", net, tile=tile)(frame).depth - whole).abs().max() < 1e-5


def test_tiles_cover_the_frame_once():
    count = torch.zeros(1, 1, 50, 70)
    for part in tiles((50, 70), 32):
        part.cut(count)[:] += 1
    assert (count == 1).all()


def test_invalid_samples_are_never_read(net, frame):
    garbage = replace(frame, depth=torch.where(frame.valid, frame.depth, torch.nan))
    assert Network("net", net)(garbage).depth.equal(Network("net", net)(frame).depth)


def test_the_unit_does_not_matter(net, frame):
    sigma = 0.01 * torch.ones_like(frame.depth)
    metres = Network("net", net)(replace(frame, sigma=sigma)).depth
    millimetres = Network("net", net)(replace(frame, depth=1000 * frame.depth, sigma=1000 * sigma)).depth
    assert (millimetres / 1000 - metres).abs().max() < 1e-3 * (metres.max() - metres.min())


def test_memory_sets_the_tile():
    assert tile_for_memory(4e9, 2000, 70) > tile_for_memory(1e9, 2000, 70) >= 32
    with pytest.raises(InputError, match=r"0\.01 GiB are left for tiles, which is too little"):
        tile_for_memory(1e7, 2000, 70)


def test_a_tile_is_made_smaller_by_the_memory_cap_and_never_larger(net, frame):
    whole = Network("net", net)(frame).depth
    held = memory_in_use(frame.depth.device) / 2**30
    assert held > 0.05
    for cap in (held + 0.02, held + 1.0):
        tiled = Network("net", net, tile=64, memory_gib=cap)(frame).depth
        assert (tiled - whole).abs().max() <= 1e-4 * (whole.max() - whole.min())
    with pytest.raises(InputError, match="allow more"):
        Network("net", net, tile=64, memory_gib=0.01)(frame)


def test_a_saved_network_is_a_method(net, frame, tmp_path):
    card = ModelCard(name="mine", scale=None, settings=SMALL, created="2026-01-01T00:00:00Z")
    save_model(tmp_path / "mine", net, card)
    method = create(str(tmp_path / "mine.safetensors"), {"tile": 32})
    assert (method(frame).depth - Network("net", net)(frame).depth).abs().max() < 1e-5


def test_names_without_weights_say_so():
    with pytest.raises(InputError, match="no trained weights exist yet"):
        create("fcn-pdn-s")
