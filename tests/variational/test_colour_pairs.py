"""Weights of neighbouring pixels: by colour, and by the steps of a solution."""

import torch

from primaldepth.variational.colour_pairs import CONTRAST, LEAST, NEIGHBOURS, across_steps, colour_weights


def test_weights_by_colour_and_distance():
    """Pixels of one colour are joined by one over their distance; an edge leaves almost nothing."""
    guide = torch.zeros(1, 3, 4, 6, dtype=torch.float64)
    guide[..., 3:] = 0.5
    w = colour_weights(guide)
    same = w[0, :, 2, 1] * torch.tensor([1.0, 1.0, 2.0, 2.0]).sqrt()
    torch.testing.assert_close(same, torch.full((4,), 1.0 + LEAST, dtype=torch.float64))
    left = NEIGHBOURS.index((0, -1))
    torch.testing.assert_close(w[0, left, 2, 3], torch.tensor(LEAST).double(), atol=1e-9, rtol=1e-6)
    guide[..., 3:] = CONTRAST
    expected = torch.tensor(-1.0).double().exp() + LEAST
    torch.testing.assert_close(colour_weights(guide)[0, left, 2, 3], expected)


def test_pairs_across_a_step_lose_half_of_their_weight():
    u = torch.zeros(1, 1, 4, 6)
    u[..., 3:] = 0.1
    r = across_steps(u, step=0.1)
    assert r.shape == (1, 4, 4, 6)
    for k, (down, right) in enumerate(NEIGHBOURS):
        pairs = r[0, k, max(0, -down) :, max(0, -right) : 6 - max(0, right)]
        crosses = torch.zeros_like(pairs, dtype=torch.bool)
        x = torch.arange(max(0, -right), 6 - max(0, right))
        crosses |= (x >= 3) != (x + right >= 3)
        torch.testing.assert_close(pairs, torch.where(crosses, 0.5, 1.0))


def test_a_flat_image_keeps_all_its_pairs():
    assert torch.equal(across_steps(torch.full((2, 1, 3, 5), 7.0), step=0.03), torch.ones(2, 4, 3, 5))
