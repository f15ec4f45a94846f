"""Deep holes: how deep, where coarser samples take over, and what a network then makes of them."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods import create
from primaldepth.methods.deep_holes import COARSER, LARGEST_RATIO, REACH, blended, coarser, deep_share
from primaldepth.methods.holes import measured_mask
from primaldepth.methods.network import Network


def wall(size=(48, 64), ratio=2, *, hole=None, slope=0.0):
    """A slanted wall two metres away with some noise, and a guide of one colour."""
    random = torch.Generator().manual_seed(0)
    x = torch.linspace(-1.0, 1.0, size[1]).expand(1, 1, *size)
    depth = 2.0 + slope * x + 0.005 * torch.randn((1, 1, *size), generator=random)
    valid = torch.ones_like(depth, dtype=torch.bool)
    if hole is not None:
        valid[..., hole[0], hole[1]] = False
    guide = torch.full((1, 3, size[0] * ratio, size[1] * ratio), 0.5)
    return Frame(torch.where(valid, depth, 0.0), valid, guide, None, torch.full_like(depth, 0.005))


def test_only_what_is_far_from_every_sample_is_deep():
    valid = torch.ones(1, 1, 24, 24, dtype=torch.bool)
    assert deep_share(valid) is None
    valid[..., 4 : 4 + 2 * REACH, 4 : 4 + 2 * REACH] = False
    assert deep_share(valid) is None  # no pixel of it is farther than REACH from a sample
    valid[..., 3:20, 3:20] = False
    expected = torch.zeros(24, 24)
    for ring in range(REACH + 1, 10):
        expected[2 + ring : 21 - ring, 2 + ring : 21 - ring] = min(1.0, ring / REACH - 1.0)
    assert deep_share(valid)[0, 0].equal(expected)


def test_coarser_samples_are_means_and_their_noise_falls():
    frame = wall(ratio=1, hole=(slice(0, COARSER), slice(0, 2)))
    found = coarser(frame)
    assert found.low_size == (12, 16)
    assert found.guide is frame.guide
    assert found.depth[0, 0, 0, 1] == pytest.approx(float(frame.depth[0, 0, :4, 4:8].mean()), rel=1e-6)
    assert found.depth[0, 0, 0, 0] == pytest.approx(float(frame.depth[0, 0, :4, 2:4].mean()), rel=1e-6)
    assert float(found.sigma[0, 0, 0, 1]) == pytest.approx(0.005 / 4)
    assert float(found.sigma[0, 0, 0, 0]) == pytest.approx(0.005 / 8**0.5)


@pytest.mark.parametrize(("ratio", "high"), [(1, (16, 24)), (2, (16, 24)), (4, (32, 48)), (8, (32, 48))])
def test_the_guide_shrinks_to_a_small_ratio(ratio, high):
    found = coarser(wall((16, 24), ratio))
    assert found.low_size == (4, 6)
    assert found.high_size == high
    assert found.high_size[1] <= LARGEST_RATIO * found.low_size[1]


def test_the_guide_is_never_smaller_than_the_samples():
    frame = wall((16, 24), 1)
    narrow = replace(frame, guide=frame.guide[..., :16, :].repeat(1, 1, 1, 10))
    found = coarser(narrow)
    assert all(high >= low for high, low in zip(found.high_size, found.low_size, strict=True))


def test_a_share_of_none_leaves_every_bit():
    fine, coarse = torch.rand(1, 1, 8, 8), torch.rand(1, 1, 2, 2)
    share = torch.zeros(1, 1, 4, 4)
    assert blended(fine, coarse, share).equal(fine)
    assert blended(fine, torch.full_like(coarse, 3.0), torch.ones_like(share)).allclose(torch.tensor(3.0))


@pytest.mark.parametrize("name", ["pdn-any", "pdn-any-small"])
@pytest.mark.parametrize("ratio", [1, 4])
def test_a_large_hole_in_a_wall_is_filled_with_wall(name, ratio):
    """No phantom before or behind it, and the fill is doubted more than what was measured."""
    hole = (slice(8, 40), slice(12, 52))
    frame = wall(ratio=ratio, hole=hole, slope=0.2)
    found = create(name)(frame)
    x = (torch.arange(64 * ratio) + 0.5) / ratio - 0.5
    truth = (2.0 + 0.2 * (2.0 * x / 63.0 - 1.0)).expand_as(found.depth)
    inside = ~found.measured
    assert inside.float().mean() == pytest.approx(32 * 40 / (48 * 64))
    assert (found.depth - truth)[inside].abs().max() < 0.1
    assert found.sigma[inside].median() > found.sigma[~inside].median()


def test_what_coarser_samples_say_is_taken_in_the_middle_of_the_hole_only(monkeypatch):
    """As if the network saw as many metres as there are rows of samples: 96, 24, 6."""

    def rows(network, frame, inputs):
        metres = torch.full((1, 1, *frame.high_size), float(inputs.depth.shape[2]))
        return Prediction(metres, metres > 0, measured_mask(frame), 0.1 * metres)

    monkeypatch.setattr(Network, "_whole", rows)
    found = create("pdn-any-small")(wall((96, 128), ratio=1, hole=(slice(8, 88), slice(24, 104))))
    assert (found.depth[found.measured] == 96.0).all()
    assert (found.depth[0, 0, 8:12, 24:104] == 96.0).all()  # near samples
    assert (found.depth[0, 0, 16:20, 36:92] == 24.0).all()  # still shallow for the coarser ones
    assert (found.depth[0, 0, 46:50, 62:66] == 6.0).all()  # coarser still
    assert found.sigma.allclose(0.1 * found.depth)


def test_an_image_without_deep_holes_is_not_changed_by_one_beside_it():
    plain, holed = wall(), wall(hole=(slice(8, 40), slice(12, 52)))
    names = ("depth", "valid", "guide", "sigma")
    both = Frame(**{name: torch.cat([getattr(plain, name), getattr(holed, name)]) for name in names})
    method = create("pdn-any-small")
    together, alone = method(both).depth[:1], method(plain).depth
    assert (together - alone).abs().max() < 1e-5
