"""Holes lie beside what casts them, on grazing surfaces and on dark ones, and nowhere else."""

import torch

from primaldepth.sensors.blind_spots import BlindSpots
from primaldepth.sensors.shadow import shadow

SIZE = (1, 1, 40, 80)


def scene():
    """A board at disparity 100, columns 30 to 49 and all rows but the last 10, before a wall at 20."""
    disparity = torch.full(SIZE, 20.0)
    disparity[..., :30, 30:50] = 100.0
    return disparity, torch.ones(SIZE, dtype=torch.bool), torch.ones(SIZE), torch.ones(SIZE)


def columns(holes, row):
    return holes[0, 0, row].nonzero().flatten().tolist()


def test_the_shadow_lies_beside_the_board_and_is_as_wide_as_said():
    holes = BlindSpots(widest=8.0)(*scene())
    assert columns(holes, 10) == list(range(22, 30))
    assert columns(holes, 35) == []


def test_shadows_may_lie_to_the_right():
    assert columns(BlindSpots(widest=8.0, to_right=True)(*scene()), 10) == list(range(50, 58))


def test_a_nearer_background_has_a_narrower_shadow():
    disparity, *rest = scene()
    disparity[..., :30, :30] = 60.0
    assert columns(BlindSpots(widest=8.0)(disparity, *rest), 10) == list(range(26, 30))


def test_grazing_and_dark_surfaces_are_lost():
    disparity, seen, cosine, light = scene()
    disparity[:] = 50.0
    cosine[..., 5:10, :] = 0.1
    light[..., 20:30, :40] = 0.01
    holes = BlindSpots(window=1)(disparity, seen, cosine, light)
    expected = torch.zeros_like(holes)
    expected[..., 5:10, :] = True
    expected[..., 20:30, :40] = True
    assert holes.equal(expected)


def test_light_is_averaged_over_the_window():
    disparity, seen, cosine, light = scene()
    disparity[:] = 50.0
    light[..., 20, 20] = 0.0
    assert not BlindSpots(window=5)(disparity, seen, cosine, light).any()
    assert BlindSpots(window=1)(disparity, seen, cosine, light).sum() == 1


def test_what_is_not_seen_is_a_hole_and_casts_no_shadow():
    disparity, seen, cosine, light = scene()
    seen[..., :30, 30:50] = False
    assert BlindSpots(widest=8.0)(disparity, seen, cosine, light).equal(~seen)


def test_equal_disparities_have_no_shadow():
    disparity = torch.full(SIZE, 7.0)
    assert not shadow(disparity, torch.ones(SIZE, dtype=torch.bool), reach=8).any()
