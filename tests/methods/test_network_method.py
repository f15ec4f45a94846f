import pickle
from dataclasses import replace

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.methods.network import Network, memory_in_use, tile_for_memory
from primaldepth.methods.network_inputs import NetworkInputs, Window, tiles
from primaldepth.networks import DepthNet, ModelCard, NetworkSettings, load, save_model

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


def test_names_without_weights_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr("primaldepth.networks.zoo.weights_folder", lambda: tmp_path)
    with pytest.raises(InputError, match="no trained weights exist yet"):
        create("fcn-pdn-s")


UNET = NetworkSettings(backbone="unet", widths=(8, 16, 24), blocks=(1, 0, 1), window=3, iterations=3)


@pytest.fixture
def unet():
    return shaken(DepthNet(UNET)).eval()


def shaken(net):
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=random))
    return net


def test_an_ensemble_does_not_care_how_the_camera_is_held(unet, frame):
    method = Network("net", unet, ensemble=True)
    turned = Frame(*(image.rot90(1, (2, 3)).flip(2) for image in (frame.depth, frame.valid, frame.guide)))
    here, there = method(frame), method(turned)
    alone = Network("net", unet)(frame).depth
    back = there.depth.flip(2).rot90(-1, (2, 3))
    inner = (..., slice(0, 56), slice(0, 80))  # the border is repeated to a multiple of the stride
    assert (alone - here.depth).abs().max() > 1e-3
    assert (back - here.depth)[inner].abs().mean() < 0.2 * (alone - here.depth)[inner].abs().mean()
    assert here.sigma.shape == here.depth.shape


def test_an_ensemble_of_a_frame_that_fits_the_stride_is_exact(unet):
    random = torch.Generator().manual_seed(1)
    frame = Frame(
        1 + torch.rand((1, 1, 8, 12), generator=random),
        torch.ones(1, 1, 8, 12, dtype=torch.bool),
        torch.rand((1, 3, 32, 48), generator=random),
    )
    method = Network("net", unet, ensemble=True)
    flipped = Frame(frame.depth.flip(3), frame.valid, frame.guide.flip(3))
    assert (method(flipped).depth.flip(3) - method(frame).depth).abs().max() < 1e-5


@pytest.mark.parametrize("ensemble", [False, True])
def test_tiles_of_a_network_on_several_scales(unet, frame, ensemble):
    whole, tiled = (Network("net", unet, tile=tile, ensemble=ensemble)(frame) for tile in (None, 24))
    assert (tiled.depth - whole.depth).abs().max() < 1e-5
    assert (tiled.sigma - whole.sigma).abs().max() < 1e-5


def test_the_number_of_iterations_can_be_changed(net, frame, tmp_path):
    card = ModelCard(name="mine", scale=None, settings=SMALL, created="2026-01-01T00:00:00Z")
    with torch.no_grad():
        net.pdn.log_coefficients.add_(torch.linspace(-1, 1, 3)[:, None])
    save_model(tmp_path / "mine", net, card)
    name = str(tmp_path / "mine.safetensors")
    same, more = (create(name, {"iterations": n}) for n in (3, 5))
    assert (same(frame).depth - create(name)(frame).depth).abs().max() < 1e-6
    learned, found = net.pdn.coefficients.log(), more.net.pdn.coefficients.log()
    assert torch.allclose(found[::2], learned, atol=1e-6)
    assert torch.allclose(found[1::2], (learned[1:] + learned[:-1]) / 2, atol=1e-6)
    assert not more(frame).depth.equal(same(frame).depth)


def test_iterations_of_a_network_without_a_solver(frame, tmp_path):
    bare = SMALL.model_copy(update={"iterations": 0})
    card = ModelCard(name="mine", scale=None, settings=bare, created="2026-01-01T00:00:00Z")
    save_model(tmp_path / "mine", DepthNet(bare), card)
    with pytest.raises(InputError, match="iterations: the network has no primal-dual part"):
        create(str(tmp_path / "mine.safetensors"), {"iterations": 5})


def test_another_process_can_have_it():
    net = DepthNet(NetworkSettings(maps=4, layers=2, iterations=2)).eval()
    method = pickle.loads(pickle.dumps(Network("net", net, ensemble=True)))  # noqa: S301
    depth = torch.rand(1, 1, 6, 8) + 1.0
    frame = Frame(depth, depth > 0, torch.rand(1, 3, 12, 16))
    assert torch.equal(method(frame).depth, Network("net", net, ensemble=True)(frame).depth)


@pytest.mark.parametrize(("samples", "scale"), [((16, 16), 4), ((8, 32), 4), ((32, 8), 4), ((8, 8), 8)])
def test_the_weights_are_those_of_the_scale_of_both_sides(samples, scale):
    random = torch.Generator().manual_seed(1)
    depth = 1 + torch.rand((1, 1, *samples), generator=random)
    frame = Frame(depth, depth > 0, torch.rand((1, 3, 64, 64), generator=random))
    wanted = Network("wanted", load("fcn-s", scale))
    assert torch.allclose(create("fcn-s")(frame).depth, wanted(frame).depth, atol=1e-5)


def frame_with_a_hole(confidence=None):
    depth = torch.ones(1, 1, 8, 32)
    valid = torch.ones_like(depth, dtype=torch.bool)
    valid[..., 10:26] = False
    return Frame(depth, valid, torch.zeros(1, 3, 32, 128), confidence)


def test_samples_beside_a_hole_keep_their_trust():
    frame = frame_with_a_hole()
    everything = Window(0, 32, 0, 128)
    before = NetworkInputs.of(frame).window(everything, frame.guide)[2]
    after = NetworkInputs.of(frame).with_trusted_borders(frame.valid).window(everything, frame.guide)[2]
    measured = frame.valid.repeat_interleave(4, 2).repeat_interleave(4, 3)
    assert before[measured].min() < 0.9
    assert after[measured].min() == 1.0


def test_trust_falls_with_the_depth_of_the_hole():
    frame = frame_with_a_hole()
    trust = NetworkInputs.of(frame).with_trusted_borders(frame.valid).trust[0, 0, 4]
    assert trust[9:19].tolist() == [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0]


def test_a_hole_is_trusted_no_more_than_the_samples_beside_it():
    frame = frame_with_a_hole(torch.full((1, 1, 8, 32), 0.5))
    assert NetworkInputs.of(frame).with_trusted_borders(frame.valid).trust.max() == 0.5


def test_holes_of_a_registered_map_are_read_as_in_training():
    """The other place did not see them: no surface is continued there, and the result differs."""
    torch.manual_seed(0)
    net = DepthNet(NetworkSettings(backbone="unet", widths=(8, 16), blocks=(1, 1), window=3, iterations=2))
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    frame, method = frame_with_a_hole(), Network("net", net)
    plain = method._whole(frame, NetworkInputs.of(frame)).depth
    assert torch.equal(method(replace(frame, registered=True)).depth[..., :36], plain[..., :36])
    assert not torch.equal(method(frame).depth[..., :36], plain[..., :36])


def test_a_frame_without_holes_is_read_as_it_is(frame):
    whole = replace(frame, valid=torch.ones_like(frame.valid))
    inputs = NetworkInputs.of(whole)
    assert inputs.with_trusted_borders(whole.valid) is inputs
