"""Spikes are found; edges, slopes, thin things and noise are not taken for them."""

import math

import pytest
import torch

from primaldepth.measurement.spikes import spikes
from primaldepth.sensors.noise import noise_map

SIGMA = 0.01


def found(depth, valid=None, sigma=SIGMA):
    depth = torch.as_tensor(depth, dtype=torch.float32)[None, None]
    valid = torch.ones_like(depth, dtype=torch.bool) if valid is None else valid[None, None]
    return spikes(depth, valid, lambda _: torch.full_like(depth, sigma))[0, 0]


def wall(rows=32, columns=40):
    noise = torch.randn(rows, columns, generator=torch.Generator().manual_seed(3))
    return 2.0 + SIGMA * noise


@pytest.mark.parametrize("value", [0.5, 1.5, 3.0, 8.0, 65.535])
@pytest.mark.parametrize("place", [(5, 7), (0, 4), (30, 39), (31, 20)])
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


@pytest.mark.parametrize("angle", [0.0, 0.2, 0.39, 0.6, math.pi / 4])
@pytest.mark.parametrize("steepness", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("curved", [False, True])
def test_slopes_without_noise_have_none(angle, steepness, curved):
    y, x = torch.meshgrid(torch.arange(40.0), torch.arange(40.0), indexing="ij")
    z = 1.0 + steepness * (x * math.cos(angle) + y * math.sin(angle))
    assert not found(1.0 / z if curved else z, sigma=0.0).any()


def test_a_floor_that_ends_in_a_ragged_horizon_has_none():
    y, x = torch.meshgrid(torch.linspace(-0.4, 0.4, 48), torch.linspace(-0.5, 0.5, 64), indexing="ij")
    slope = y * math.cos(0.3) + x * math.sin(0.3)
    assert not found(1.2 / slope.clamp_min(0.015), slope > 0.015, sigma=0.0).any()


def test_corners_and_thin_things_stay():
    depth = wall()
    depth[:6, :8] = 1.0
    depth[8, 2:34] = 1.5
    depth[2:29, 12] = 4.0
    assert not found(depth).any()


@pytest.mark.parametrize("sigma", [0.001, 0.05, 0.5])
def test_noise_is_not_taken_for_spikes(sigma):
    noise = torch.randn(400, 400, generator=torch.Generator().manual_seed(1))
    assert not found(5.0 + sigma * noise, sigma=sigma).any()


def test_a_few_neighbours_prove_nothing():
    depth, valid = wall(), torch.ones(32, 40, dtype=torch.bool)
    depth[5, 7] = depth[0, 0] = 8.0
    valid[4:7, 8] = valid[6, 7] = False
    assert not found(depth, valid).any()
    valid[6, 7] = True
    assert found(depth, valid).nonzero().tolist() == [[5, 7]]


def test_what_lies_at_holes_is_never_read():
    depth, valid = wall(), torch.ones(32, 40, dtype=torch.bool)
    depth[5, 7], depth[5, 8], depth[4, 7] = 8.0, 8.0, torch.nan
    valid[5, 8] = valid[4, 7] = False
    assert found(depth, valid).nonzero().tolist() == [[5, 7]]


def test_the_noise_is_asked_for_only_where_something_stands_out():
    depth = wall()[None, None]
    valid = torch.ones_like(depth, dtype=torch.bool)
    assert not spikes(depth, valid, lambda _: pytest.fail("nothing stands out")).any()


def test_images_of_a_batch_and_units_change_nothing():
    one, other = wall(), wall()
    one[5, 7] = 8.0
    batch = torch.stack([one, other])[:, None]
    everywhere = torch.ones_like(batch, dtype=torch.bool)
    here = spikes(batch, everywhere, lambda _: torch.full_like(batch, SIGMA))
    thousand = spikes(1000 * batch, everywhere, lambda _: torch.full_like(batch, 1000 * SIGMA))
    assert here.nonzero().tolist() == [[0, 0, 5, 7]]
    assert torch.equal(here, thousand)


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (2, 2), (31, 80)])
def test_a_small_map_keeps_all_it_saw(size):
    depth = torch.full(size, 2.0)
    depth[0, 0] = depth[size[0] // 2, size[1] // 2] = 8.0
    assert not found(depth).any()


def test_many_spikes_do_not_hide_in_the_noise_estimated_from_them():
    depth = wall(96, 128)[None, None]
    everywhere = torch.ones_like(depth, dtype=torch.bool)
    hit = torch.rand(depth.shape, generator=torch.Generator().manual_seed(4)) < 0.03
    out = spikes(
        torch.where(hit, 8.0, depth), everywhere, lambda rest: noise_map("auto", depth + 6.0 * hit, rest)
    )
    assert not (out & ~hit).any()
    assert int(out.sum()) > 0.9 * int(hit.sum())
