"""Zones, tolerance, safety and coverage, each on a map small enough to count by hand."""

import math

import pytest
import torch

from primaldepth.evaluation import metrics
from primaldepth.evaluation.sampling import at_samples, cropped, mean_samples, point_samples
from primaldepth.evaluation.zones import ZONES, jump_pixels, wide_holes, within, zone_masks


def mask(height, width, *places):
    found = torch.zeros(1, 1, height, width, dtype=torch.bool)
    for place in places:
        found[(0, 0, *place)] = True
    return found


def test_within_is_a_disc():
    found = within(mask(9, 9, (4, 4)), 3)
    expected = [[math.hypot(y - 4, x - 4) <= 3 for x in range(9)] for y in range(9)]
    assert found[0, 0].tolist() == expected


def test_within_ends_at_the_border():
    assert within(mask(2, 5, (0, 0)), 2)[0, 0].tolist() == [
        [True, True, True, False, False],
        [True, True, False, False, False],
    ]
    assert not within(mask(4, 4), 12).any()


def test_jumps_are_relative():
    depth = torch.tensor([[1000.0, 1049.0, 1103.0, 0.0, 2000.0]])[None, None]
    known = depth > 0
    assert jump_pixels(depth, known, 0.05)[0, 0, 0].tolist() == [False, True, True, False, False]


def test_narrow_holes_are_not_wide():
    holes = mask(8, 10, (slice(0, 8), 1), (slice(3, 6), slice(4, 7)), (7, 9))
    assert wide_holes(holes).equal(mask(8, 10, (slice(3, 6), slice(4, 7))))


def test_a_hole_at_the_border_may_be_cut_off_by_it():
    assert wide_holes(mask(6, 6, (slice(0, 2), slice(0, 6)))).sum() == 12


def test_zones_of_a_step_and_a_hole():
    truth = torch.full((1, 1, 9, 40), 1000.0)
    truth[..., 10:] = 1200.0
    holes = mask(9, 40, (slice(0, 9), slice(30, 34)))
    found = zone_masks(truth, ~holes, holes, jump=0.05, radius=2)
    columns = {name: found[name][0, 0, 4].nonzero().flatten().tolist() for name in ZONES}
    assert columns == {
        "interior": [*range(7), *range(13, 28), *range(36, 40)],
        "near_jumps": [7, 8, 9, 10, 11, 12],
        "near_holes": [28, 29, 34, 35],
        "in_holes": [30, 31, 32, 33],
    }


def test_a_pixel_may_be_near_a_jump_and_a_hole():
    truth = torch.full((1, 1, 5, 12), 10.0)
    truth[..., 5:] = 20.0
    holes = mask(5, 12, (slice(0, 5), slice(7, 12)))
    found = zone_masks(truth, ~holes, holes, jump=0.05, radius=3)
    assert (found["near_jumps"] & found["near_holes"]).any()
    assert not (found["interior"] & (found["near_jumps"] | found["near_holes"])).any()


def test_a_shifted_edge_is_forgiven_within_the_tolerance():
    truth = torch.full((1, 1, 6, 20), 1.0)
    truth[..., 10:] = 5.0
    moved = truth.roll(3, dims=-1)
    moved[..., :3] = 1.0
    known = torch.ones_like(truth, dtype=torch.bool)
    assert metrics.tolerant_errors(moved, truth, known, 3).max() == 0.0
    assert (metrics.tolerant_errors(moved, truth, known, 2) > 0)[0, 0, 0].nonzero().flatten().tolist() == [12]
    assert metrics.tolerant_errors(moved, truth, known, 1).sum() == 6 * 2 * 4.0


def test_tolerance_takes_the_nearest_value_of_the_window():
    truth = torch.tensor([[1.0, 2.0, 9.0]])[None, None]
    known = torch.tensor([[True, True, False]])[None, None]
    depth = torch.tensor([[4.0, 4.0, 8.0]])[None, None]
    assert metrics.tolerant_errors(depth, truth, known, 1)[0, 0, 0].tolist() == [2.0, 2.0, 6.0]


def test_no_known_pixel_in_the_window_is_infinite():
    depth = torch.ones(1, 1, 1, 5)
    known = mask(1, 5, (0, 0))
    assert metrics.tolerant_errors(depth, depth, known, 1)[0, 0, 0].tolist() == [0.0, 0.0, *[math.inf] * 3]


def test_coverage_counts_errors_up_to_sigma():
    truth, known = torch.zeros(1, 1, 1, 5), mask(1, 5, (0, slice(0, 4)))
    depth = torch.tensor([[1.0, -1.0, 3.0, 0.0, 9.0]])[None, None]
    assert metrics.coverage(depth, torch.ones(1, 1, 1, 5), truth, known) == 0.75


def test_surface_samples_have_equals_and_holes_only():
    values = torch.full((1, 1, 5, 5), 100.0)
    valid = torch.ones_like(values, dtype=torch.bool)
    assert metrics.surface_samples(values, valid, 0.03)[0, 0].sum() == 9  # what lies outside is no hole
    valid[..., 3:] = False
    found = metrics.surface_samples(values, valid, 0.03)
    assert found[0, 0].nonzero().tolist() == [[y, x] for y in (1, 2, 3) for x in (1, 2)]
    assert metrics.equal_samples(values, valid, 0.03)[0, 0].nonzero().tolist() == [
        [1, 1],
        [2, 1],
        [3, 1],
    ]


def test_a_neighbour_on_another_surface_ends_the_surface():
    values = torch.full((1, 1, 3, 3), 100.0)
    valid = torch.ones_like(values, dtype=torch.bool)
    for value, expected in ((103.0, True), (104.0, False), (96.0, False)):
        values[..., 0, 0] = value
        assert bool(metrics.surface_samples(values, valid, 0.03)[0, 0, 1, 1]) is expected
    valid[..., 0, 0] = False
    assert metrics.surface_samples(values, valid, 0.03)[0, 0, 1, 1]


def test_three_equal_neighbours_are_needed():
    values, valid = torch.full((1, 1, 3, 3), 100.0), mask(3, 3, (1, 1), (0, 0), (0, 1))
    assert not metrics.surface_samples(values, valid, 0.03).any()
    valid[..., 2, 2] = True
    assert metrics.surface_samples(values, valid, 0.03).equal(mask(3, 3, (1, 1)))


def test_farther_is_larger_depth_and_smaller_disparity():
    values = torch.full((1, 1, 1, 5), 100.0)
    result = torch.tensor([[89.0, 91.0, 100.0, 109.0, 112.0]])[None, None]
    far, near = metrics.misplaced(result, values, 0.1, disparities=False)
    assert (far.flatten().tolist(), near.flatten().tolist()) == ([False] * 4 + [True], [True] + [False] * 4)
    far, near = metrics.misplaced(result, values, 0.1, disparities=True)
    assert (far.flatten().tolist(), near.flatten().tolist()) == ([True] + [False] * 4, [False] * 4 + [True])


def test_rates_are_of_ten_thousand():
    assert metrics.rate(mask(2, 5, (0, 0), (1, 4)), mask(2, 5, (0, slice(0, 4)))) == 2500.0
    assert metrics.rate(mask(2, 5), mask(2, 5)) is None


def test_samples_are_one_pixel_of_each_block():
    image = torch.arange(64.0).view(1, 1, 8, 8)
    assert at_samples(image, 4)[0, 0].tolist() == [[18.0, 22.0], [50.0, 54.0]]
    depth, valid = point_samples(image, image != 18, 4)
    assert depth[0, 0].tolist() == [[0.0, 22.0], [50.0, 54.0]]
    assert valid[0, 0].tolist() == [[False, True], [True, True]]


def test_means_are_over_measured_pixels():
    depth = torch.tensor([[2.0, 4.0, 6.0, 6.0], [9.0, 9.0, 6.0, 7.0]])[None, None]
    measured = torch.tensor([[True, True, True, False], [False, False, False, False]])[None, None]
    mean, valid = mean_samples(depth, measured, 2)
    assert mean[0, 0].tolist() == [[3.0, 0.0]]
    assert valid[0, 0].tolist() == [[True, False]]


def test_all_maps_are_cropped_alike():
    truth, known, guide = (torch.zeros(1, c, 19, 30) for c in (1, 1, 3))
    assert [tuple(each.shape[2:]) for each in cropped(truth, known, guide)] == [(16, 24)] * 3


@pytest.mark.parametrize("radius", [1, 5])
def test_an_empty_mask_has_no_surroundings(radius):
    assert not within(mask(3, 3), radius).any()
