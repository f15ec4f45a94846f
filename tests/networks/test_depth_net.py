"""The joint network: sizes, reach, what it reads, and the scaling around it."""

import pytest
import torch
from small_nets import images, small_net, uniform

from primaldepth.core.frame import Frame
from primaldepth.networks import FCN, DepthNet, NetworkSettings
from primaldepth.networks.fcn import START_AFFINITY
from primaldepth.networks.normalisation import Scaling, relative_sigma
from primaldepth.variational import MODELS


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 5), (12, 31)])
@pytest.mark.parametrize("model", MODELS)
def test_the_result_has_the_size_of_the_input(model, size):
    estimate = small_net(model=model)(*images(*size, batch=2))
    for part in (estimate.depth, estimate.first):
        assert part.shape == (2, 1, *size)
        assert torch.isfinite(part).all()
    assert estimate.affinities.shape == (2, 4, *size)


@pytest.mark.parametrize("model", ["nlh-l2", "nltgv-l1"])
def test_nothing_beyond_the_radius_matters(model):
    net = small_net(model=model, window=5)
    given = images(1, 41)
    changed = [image.clone() for image in given]
    middle = 20
    for image in changed:
        image[..., middle + net.radius + 1 :] = 0.77
        image[..., : middle - net.radius] = 0.33
    with torch.no_grad():
        before, after = net(*given).depth, net(*changed).depth
    assert before[..., middle].equal(after[..., middle])
    assert not before.equal(after)


def test_the_radius_adds_up():
    assert small_net(layers=4, window=7, iterations=3).radius == 4 + 3 * 3
    assert small_net(layers=4, iterations=0).radius == 4
    assert small_net(layers=4, iterations=3, model="atv-l2").radius == 4 + 3


def test_without_iterations_the_first_estimate_is_the_result():
    net = small_net(iterations=0)
    estimate = net(*images(6, 7))
    assert net.pdn is None
    assert estimate.depth is estimate.first


def test_depth_alone_does_not_read_the_guide():
    net = small_net(input="d")
    depth, sigma, trust, guide = images(8, 9)
    with torch.no_grad():
        assert net(depth, sigma, trust, guide).depth.equal(net(depth, sigma, trust, 1 - guide).depth)


def test_untrained_the_first_estimate_is_the_input():
    net = DepthNet(NetworkSettings(layers=3, maps=4))
    given = images(9, 9)
    estimate = net(*given)
    assert estimate.first.equal(given[0])
    assert (estimate.affinities == START_AFFINITY).all()


def test_too_few_layers_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        FCN(2, 4, layers=1)


def frame(factor=1.0, offset=0.0):
    depth = factor * uniform(2, 1, 6, 7) + offset
    valid = uniform(2, 1, 6, 7, seed=1) > 0.2
    return Frame(depth, valid, uniform(2, 1, 12, 14, seed=2))


def test_scaling_goes_and_comes_back():
    scaling = Scaling.of(frame(300.0, 1000.0))
    depth = 300 * uniform(2, 1, 6, 7, seed=5) + 1000
    torch.testing.assert_close(scaling.restore(scaling.apply(depth)), depth)


def test_units_do_not_matter_after_scaling():
    metres, millimetres = frame(2.0, 1.0), frame(2000.0, 1000.0)
    torch.testing.assert_close(
        Scaling.of(metres).apply(metres.depth),
        Scaling.of(millimetres).apply(millimetres.depth),
        rtol=1e-4,
        atol=1e-4,
    )


def test_a_constant_has_a_spread_that_can_be_divided_by():
    constant = frame(0.0, 5.0)
    scaling = Scaling.of(constant)
    assert (scaling.spread > 0).all()
    assert scaling.apply(constant.depth).abs().max() == 0


def test_invalid_samples_take_no_part_in_the_scaling():
    good = frame()
    spoiled = Frame(torch.where(good.valid, good.depth, 1e9), good.valid, good.guide)
    for name in ("centre", "spread"):
        assert getattr(Scaling.of(good), name).equal(getattr(Scaling.of(spoiled), name))


def test_noise_is_in_units_of_the_spread():
    plain = frame(10.0, 0.0)
    known = Frame(plain.depth, plain.valid, plain.guide, sigma=torch.full_like(plain.depth, 2.0))
    scaling = Scaling.of(known)
    relative = relative_sigma(known, scaling)
    expected = (2.0 / scaling.spread).expand_as(relative)
    torch.testing.assert_close(relative[known.valid], expected[known.valid])
    assert relative[~known.valid].abs().max() == 0
