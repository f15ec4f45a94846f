"""Whether two guides show motion, or noise alone."""

import pytest
import torch

from primaldepth.methods.scene_change import mean_over, moves_by_itself, something_moved


def noise_on_gloss(seed):
    """(1, 1, 120, 160) difference of two guides; a fifth of it is seen in something glossy.

    There noise is strong, and neighbours share some of it.
    """
    torch.manual_seed(seed)
    difference = 0.004 * torch.randn(1, 1, 120, 160)
    strong = torch.randn(1, 1, 48, 80)
    difference[..., :48, :80] = 0.06 * (strong + mean_over(strong, 3))
    return difference


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_motion_even_where_it_is_strong(seed):
    assert not something_moved(noise_on_gloss(seed))


@pytest.mark.parametrize("place", [(slice(60, 110), slice(100, 103)), (slice(4, 44), slice(40, 43))])
def test_an_edge_that_moves_is_seen(place):
    """By three pixels; beside the gloss, and within."""
    difference = noise_on_gloss(0)
    difference[(..., *place)] += 0.4
    assert something_moved(difference)


def textured(shift=0.0):
    """(1, 1, 60, 80) waves, shifted to the right by pixels."""
    x = torch.arange(80.0).expand(60, 80) - shift
    y = torch.arange(60.0)[:, None].expand(60, 80)
    return (0.5 + 0.2 * (0.5 * x + 0.2 * y).sin() + 0.1 * (0.9 * y - 0.3 * x).sin())[None, None]


def noisy(image, seed):
    return image + 0.005 * torch.randn(image.shape, generator=torch.Generator().manual_seed(seed))


def test_a_card_that_moves_before_a_carried_view_is_found_whole():
    now, before = textured(), textured()
    card = (..., slice(20, 40), slice(30, 55))
    before[card] = textured(1.5)[card]
    found = moves_by_itself(noisy(before, 0) - noisy(now, 1), now, misplaced=0.3)
    assert found[card].all()
    assert float(found.float().mean()) < 0.35  # the card is 0.1 of the view, and a border belongs to it


def test_a_view_carried_with_a_small_error_does_not_move_by_itself():
    now = textured()
    difference = noisy(textured(0.1), 0) - noisy(now, 1)
    assert not moves_by_itself(difference, now, misplaced=0.3).any()
