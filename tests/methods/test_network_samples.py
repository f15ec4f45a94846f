"""Networks with the sample term as methods: whole, in tiles, turned, and on samples that stand alone."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.methods.network import Network
from primaldepth.methods.network_inputs import NetworkInputs, Window, sampling_operator
from primaldepth.methods.sparse import gathered
from primaldepth.networks import DepthNet, NetworkSettings

SETTINGS = NetworkSettings(
    backbone="unet", widths=(8, 16), blocks=(1, 1), window=3, iterations=12, samples=True
)


def shaken(settings):
    random = torch.Generator().manual_seed(2)
    net = DepthNet(settings)
    with torch.no_grad():
        for weight in net.fcn.parameters():
            weight.add_(0.03 * torch.randn(weight.shape, generator=random))
    return net.eval()


@pytest.fixture(scope="module")
def net():
    return shaken(SETTINGS)


def scene(high, low, sampling="average", holes=0.1):
    """Two planes with an edge, as samples without noise."""
    y, x = torch.meshgrid(torch.linspace(0, 1, high[0]), torch.linspace(0, 1, high[1]), indexing="ij")
    truth = (2.0 + 0.4 * y + 0.3 * x + (x > 0.45 + 0.2 * y)).view(1, 1, *high)
    random = torch.Generator().manual_seed(1)
    depth = sampling_operator(high, low, sampling)(truth)
    valid = torch.rand((1, 1, *low), generator=random) >= holes
    guide = (0.2 * truth).expand(-1, 3, -1, -1)
    return Frame(depth, valid, guide, sigma=torch.zeros_like(depth), sampling=sampling)


@pytest.mark.parametrize("sampling", ["average", "point"])
@pytest.mark.parametrize(("high", "low"), [((60, 82), (15, 20)), ((48, 50), (48, 50)), ((75, 64), (10, 20))])
def test_samples_are_reproduced_by_their_own_operator(net, high, low, sampling):
    frame = scene(high, low, sampling)
    with torch.no_grad():
        found = Network("net", net)(frame).depth
        plain = Network("net", shaken_without(net))(frame).depth
    A = sampling_operator(high, low, sampling)
    left, before = ((A(u) - frame.depth)[frame.valid].square().mean().sqrt() for u in (found, plain))
    assert left < 0.2 * before


def shaken_without(net):
    """The same weights without the sample term."""
    other = DepthNet(net.settings.model_copy(update={"samples": False}))
    state = other.state_dict()
    for name, value in net.state_dict().items():
        if name in state:
            state[name] = value[tuple(slice(0, side) for side in state[name].shape)]
    other.load_state_dict(state)
    return other.eval()


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("low", [(3, 26), (12, 104), (18, 154), (48, 416)], ids=str)
def test_tiles_give_the_result_of_the_whole_frame(net, low, ensemble):
    """In a frame that is wider than a tile with its margins on both sides."""
    frame = scene((48, 416), low)
    whole, tiled = (Network("net", net, tile=tile, ensemble=ensemble)(frame).depth for tile in (None, 48))
    assert (tiled - whole).abs().max() < 1e-5


def test_an_ensemble_does_not_care_how_the_camera_is_held(net):
    frame = scene((64, 80), (16, 20))
    method = Network("net", net, ensemble=True)
    turned = Frame(
        *(image.rot90(1, (2, 3)).flip(2) for image in (frame.depth, frame.valid, frame.guide)),
        sigma=torch.zeros_like(frame.depth).mT,
        sampling="average",
    )
    back = method(turned).depth.flip(2).rot90(-1, (2, 3))
    assert (back - method(frame).depth).abs().max() < 1e-4


def test_windows_keep_only_the_samples_they_hold_whole():
    frame = scene((40, 48), (10, 12))
    inputs = NetworkInputs.of(frame)
    samples = inputs.window(Window(8, 40, 0, 24), frame.guide, 3).samples
    assert samples.A.in_shape == (1, 32, 24)
    assert samples.depth.shape[1:] == samples.A.out_shape == (1, 6, 4)
    assert samples.A.norm_bound == inputs.measured.A.norm_bound
    image = torch.rand(1, 1, 40, 48)
    whole, part = inputs.measured.A(image), samples.A(image[:, :, 8:, :24])
    assert (part - whole[:, :, 4:, :4]).abs().max() < 1e-6
    assert inputs.window(Window(0, 4, 0, 4), frame.guide, 3).samples is None


def test_lone_samples_count_where_they_fall(net):
    high = (64, 80)
    frame = scene(high, high, "point", holes=0.0)
    lone = torch.zeros_like(frame.valid)
    lone[:, :, 2::6, 3::6] = True
    frame = replace(frame, valid=lone, sampling=None)
    samples = NetworkInputs.of(frame, replace(frame, valid=lone)).measured
    assert samples.A.out_shape == (1, *high)
    assert (samples.trust > 0).equal(lone)
    found, plain = (  # before either is drawn to the samples
        Network("net", each).predict(frame, gathered(frame)).depth for each in (net, shaken_without(net))
    )
    left, before = ((u - frame.depth)[lone].square().mean().sqrt() for u in (found, plain))
    assert left < 0.2 * before


def test_deep_holes_are_filled_from_coarser_samples(net):
    frame = scene((96, 96), (48, 48), holes=0.0)
    valid = frame.valid.clone()
    valid[:, :, 8:40, 10:40] = False
    found = Network("net", net)(replace(frame, valid=valid))
    assert torch.isfinite(found.depth).all()


def test_invalid_samples_are_never_read(net):
    frame = scene((60, 82), (15, 20), holes=0.3)
    garbage = replace(frame, depth=torch.where(frame.valid, frame.depth, torch.nan))
    assert Network("net", net)(garbage).depth.equal(Network("net", net)(frame).depth)


def test_an_unknown_way_of_sampling_is_refused():
    frame = scene((8, 8), (4, 4))
    with pytest.raises(InputError, match="sampling: 'mean' is not average or point"):
        replace(frame, sampling="mean")
