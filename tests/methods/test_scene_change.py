"""Whether two guides show motion, or noise alone."""

import pytest
import torch

from primaldepth.methods.scene_change import mean_over, something_moved


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
