"""What the sequences of the temporal benchmark measure: errors are followed along the true motion."""

import pytest
import torch
from benchmarks.quality.temporal import carried_error, moving_error, unrest

H, W = 24, 32


def view(shift=0.0, depth=2.0, moving=()):
    """A wall two metres before a camera of 90 degrees that stands `shift` metres to the right."""
    x = (torch.arange(W, dtype=torch.float64) + 0.5 - W / 2) / (W / 2)
    y = (torch.arange(H, dtype=torch.float64) + 0.5 - H / 2) / (W / 2)
    directions = torch.stack([x.expand(H, W), y[:, None].expand(H, W), torch.ones(H, W)], dim=-1)
    pose = torch.eye(4, dtype=torch.float64)
    pose[0, 3] = shift
    mask = torch.zeros(1, 1, H, W, dtype=torch.bool)
    mask[(..., *moving)] = bool(moving)
    depth = torch.full((1, 1, H, W), depth)
    return {"depth": depth, "pose": pose, "directions": directions, "moving": mask}


PIXEL = 2.0 / (W / 2)  # metres on the wall


def test_an_error_that_stays_on_its_surface_is_no_unrest():
    random = torch.Generator().manual_seed(0)
    error = torch.randn(1, 1, H, W, generator=random)
    views = [view(), view(3 * PIXEL)]
    moved = torch.roll(error, -3, dims=3)
    assert unrest([error, moved], views) == pytest.approx(0.0, abs=1e-5)
    assert unrest([error, error], views) > 0.5


def test_points_out_of_view_and_other_surfaces_are_not_compared():
    error = torch.zeros(1, 1, H, W)
    _, seen = carried_error(view(), error, view(3 * PIXEL))
    assert seen[..., : W - 3].all()
    assert not seen[..., W - 3 :].any()
    _, seen = carried_error(view(depth=1.5), error, view())
    assert not seen.any()


def test_what_moves_by_itself_is_not_compared():
    card = (slice(8, 16), slice(10, 20))
    _, seen = carried_error(view(moving=card), torch.zeros(1, 1, H, W), view())
    assert not seen[(..., *card)].any()
    assert int((~seen).sum()) == 80


def test_the_error_of_what_moves_is_its_own_or_with_a_border():
    card = (slice(8, 16), slice(10, 20))
    error = torch.zeros(1, 1, H, W)
    error[..., 7, 10:20] = 1.0
    still = view()
    assert moving_error([error], [view(moving=card)], border=0) == 0.0
    assert moving_error([error], [view(moving=card)], border=1) == pytest.approx((10 / 120) ** 0.5)
    assert moving_error([error], [still], border=1) is None
