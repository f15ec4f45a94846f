"""A background that is assumed in the shadows of a scanner fills them, and does not count as measured."""

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.methods.sparse import ASSUMED, with_background

SIZE, NEAR, FAR = (60, 80), 1.0, 2.0


def shadowed(step=5):
    """A card in the right half, a wall beside it, and between the two a shadow without samples."""
    y, x = torch.meshgrid(*(torch.arange(n) for n in SIZE), indexing="ij")
    truth = torch.where(x < 40, FAR, NEAR)[None, None]
    lattice = ((y % step == step // 2) & (x % step == step // 2))[None, None]
    shadow = ((x >= 20) & (x < 40))[None, None]
    sigma = torch.full_like(truth, 0.01)
    background = torch.where(lattice & shadow, FAR, 0.0)
    guide = torch.where(x < 40, 0.3, 0.4).expand(1, 3, *SIZE)
    frame = Frame(
        truth, lattice & ~shadow, guide, None, sigma, "point", registered=True, background=background
    )
    return frame, truth, shadow


def test_it_becomes_samples_of_little_trust():
    frame, _, shadow = shadowed()
    found = with_background(frame, frame.background)
    added = found.valid & ~frame.valid
    assert torch.equal(added, frame.background > 0)
    assert bool((found.confidence[added] == ASSUMED).all() and (found.confidence[frame.valid] == 1.0).all())
    assert torch.equal(found.depth[added], frame.background[added])
    assert found.background is None
    assert not bool((frame.valid & shadow).any())


def test_samples_stay_where_one_was_measured():
    frame, _, _ = shadowed()
    everywhere = torch.full_like(frame.depth, 7.0)
    found = with_background(frame, everywhere)
    assert torch.equal(found.depth[frame.valid], frame.depth[frame.valid])


def test_assumed_samples_have_the_median_noise():
    frame, _, _ = shadowed()
    sigma = torch.where(frame.valid, 0.02, torch.inf)
    noisy = Frame(frame.depth, frame.valid, frame.guide, None, sigma, "point", background=frame.background)
    found = with_background(noisy, frame.background)
    assert bool((found.sigma[found.valid] == 0.02).all())


@pytest.mark.parametrize("name", ["pdn-any", "fcn-pdn-s"])
def test_networks_fill_the_shadow_with_it_and_it_is_not_measured(name):
    frame, truth, shadow = shadowed()
    without = Frame(frame.depth, frame.valid, frame.guide, None, frame.sigma, "point", registered=True)
    plain, found = create(name)(without), create(name)(frame)
    error, before = ((each.depth - truth)[shadow].square().mean().sqrt() for each in (found, plain))
    assert error < 0.1
    assert error <= before
    assert torch.equal(found.measured, plain.measured)


def test_a_background_has_the_shape_of_the_depth():
    frame, _, _ = shadowed()
    with pytest.raises(InputError, match="background"):
        Frame(frame.depth, frame.valid, frame.guide, background=torch.zeros(1, 1, 2, 2))


def test_a_background_goes_with_each_image_of_a_batch():
    frame, _, _ = shadowed()
    two = Frame(
        *(torch.cat([each, each]) for each in (frame.depth, frame.valid, frame.guide)),
        background=torch.cat([frame.background, 2.0 * frame.background]),
    )
    assert torch.equal(two.images()[1].background, 2.0 * frame.background)
