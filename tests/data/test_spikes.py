"""Samples far off all around them are found; edges, slopes, thin things and noise are not taken for them."""

import pytest
import torch

from primaldepth.data.spikes import spikes

SIGMA = 0.01


def found(depth, valid=None, sigma=SIGMA):
    depth = torch.as_tensor(depth, dtype=torch.float32)[None, None]
    valid = torch.ones_like(depth, dtype=torch.bool) if valid is None else valid[None, None]
    return spikes(depth, valid, lambda: torch.full_like(depth, sigma))[0, 0]


def wall(rows=12, columns=16):
    noise = torch.randn(rows, columns, generator=torch.Generator().manual_seed(3))
    return 2.0 + SIGMA * noise


@pytest.mark.parametrize("value", [0.5, 1.5, 3.0, 8.0, 65.535])
@pytest.mark.parametrize("place", [(5, 7), (0, 4), (0, 0), (11, 15)])
def test_a_spike_is_found_wherever_it_stands(value, place):
    depth = wall()
    depth[place] = value
    assert found(depth).nonzero().tolist() == [list(place)]


@pytest.mark.parametrize("other", [(5, 8), (6, 7), (6, 8), (4, 8)])
def test_two_together_are_found_and_three_may_be_a_thing(other):
    depth = wall()
    depth[5, 7], depth[other] = 8.0, 8.1
    assert int(found(depth).sum()) == 2
    depth[4, 7] = 8.0
    assert not found(depth).any()


def test_of_two_different_spikes_side_by_side_the_farther_is_found():
    depth = wall()
    depth[5, 7], depth[5, 8] = 8.0, 1.0
    assert found(depth).nonzero().tolist() == [[5, 7]]


def test_a_spike_beside_a_step_is_found():
    depth = wall()
    depth[:, 8:] += 1.0
    depth[5, 7] = 8.0
    assert found(depth).nonzero().tolist() == [[5, 7]]


@pytest.mark.parametrize("angle", [0.0, 0.2, 0.39, 0.6, 0.785])
@pytest.mark.parametrize("steepness", [0.01, 0.1, 0.5])
def test_slopes_without_noise_have_none(angle, steepness):
    y, x = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
    direction = torch.tensor(angle)
    assert not found(1.0 + steepness * (x * direction.cos() + y * direction.sin()), sigma=0.0).any()


def test_corners_and_thin_things_stay():
    depth = wall()
    depth[:6, :8] = 1.0
    depth[8, 2:14] = 1.5
    depth[2:11, 12] = 4.0
    assert not found(depth).any()


@pytest.mark.parametrize("sigma", [0.001, 0.05, 0.5])
def test_noise_is_not_taken_for_spikes(sigma):
    noise = torch.randn(400, 400, generator=torch.Generator().manual_seed(1))
    assert not found(5.0 + sigma * noise, sigma=sigma).any()


def test_a_few_neighbours_prove_nothing():
    depth, valid = wall(), torch.ones(12, 16, dtype=torch.bool)
    depth[5, 7] = 8.0
    valid[4:7, 6:9] = False
    valid[5, 7] = valid[5, 6] = valid[4, 6] = True
    assert not found(depth, valid).any()
    valid[4, 7] = True
    assert found(depth, valid).nonzero().tolist() == [[5, 7]]


def test_what_lies_at_holes_is_never_read():
    depth, valid = wall(), torch.ones(12, 16, dtype=torch.bool)
    depth[5, 7], depth[5, 8], depth[4, 7] = 8.0, 8.0, torch.nan
    valid[5, 8] = valid[4, 7] = False
    assert found(depth, valid).nonzero().tolist() == [[5, 7]]


def test_the_noise_is_asked_for_only_where_something_stands_out():
    depth = wall()[None, None]
    valid = torch.ones_like(depth, dtype=torch.bool)
    assert not spikes(depth, valid, lambda: pytest.fail("nothing stands out")).any()


def test_images_of_a_batch_and_units_change_nothing():
    one, other = wall(), wall()
    one[5, 7] = 8.0
    batch = torch.stack([one, other])[:, None]
    everywhere = torch.ones_like(batch, dtype=torch.bool)
    here = spikes(batch, everywhere, lambda: torch.full_like(batch, SIGMA))
    thousand = spikes(1000 * batch, everywhere, lambda: torch.full_like(batch, 1000 * SIGMA))
    assert here.nonzero().tolist() == [[0, 0, 5, 7]]
    assert torch.equal(here, thousand)


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 2)])
def test_maps_too_small_to_tell(size):
    depth = torch.full(size, 2.0)
    depth[0, 0] = 8.0
    assert int(found(depth).sum()) == (size == (2, 2))
