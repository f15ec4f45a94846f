"""Weights and tensors of the guide, by brute force and by what they mean."""

import math

import pytest
import torch
from problems import uniform

from primaldepth.operators import half_window
from primaldepth.variational import edge_tensor, guide_affinities, guide_distance, proximity


def guide_with_vertical_edge(channels=1):
    guide = torch.zeros(1, channels, 9, 12, dtype=torch.float64)
    guide[..., 6:] = 1.0
    return guide


def eigenvalues(T):
    T_yy, T_yx, T_xx = T.unbind(1)
    return torch.linalg.eigvalsh(
        torch.stack([torch.stack([T_yy, T_yx], -1), torch.stack([T_yx, T_xx], -1)], -1)
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_affinities_by_brute_force(channels):
    guide, offsets, sigma_d, sigma_v = uniform(2, channels, 4, 5), half_window(5), 2.5, 0.3
    w = guide_affinities(guide, offsets, sigma_d, sigma_v)
    assert w.shape == (2, 12, 4, 5)
    for b, (k, (dy, dx)), y, x in (
        (b, pair, y, x) for b in range(2) for pair in enumerate(offsets) for y in range(4) for x in range(5)
    ):
        if 0 <= y + dy < 4 and 0 <= x + dx < 5:
            here, there = guide[b, :, y, x].tolist(), guide[b, :, y + dy, x + dx].tolist()
            expected = math.exp(-math.hypot(dy, dx) / sigma_d - math.dist(here, there) / sigma_v)
            assert float(w[b, k, y, x]) == pytest.approx(expected, rel=1e-12)


def test_affinities_lie_between_zero_and_one():
    w = guide_affinities(uniform(1, 3, 6, 7), half_window(7), 3.0, 0.1)
    assert 0 < float(w.min()) <= float(w.max()) < 1


def test_flat_guides_leave_only_the_distance():
    offsets = half_window(3)
    w = guide_affinities(torch.full((1, 3, 4, 5), 0.4, dtype=torch.float64), offsets, 2.0, 0.1)
    assert torch.allclose(w, torch.exp(-proximity(offsets, w) / 2.0).expand_as(w))
    assert proximity(offsets, w).flatten().tolist() == pytest.approx([2**0.5, 1, 2**0.5, 1])


def test_distances_of_equal_pixels_have_no_gradient():
    guide = torch.full((1, 3, 4, 5), 0.5, dtype=torch.float64, requires_grad=True)
    guide_distance(guide, half_window(3)).sum().backward()
    assert guide.grad.equal(torch.zeros_like(guide))


def test_distance_is_zero_outside():
    assert (guide_distance(uniform(1, 3, 2, 2), [(-5, 0), (0, 9)]) == 0).all()


@pytest.mark.parametrize("shape", [(1, 3, 9, 11), (2, 1, 7, 4), (1, 3, 1, 6), (1, 1, 5, 1), (1, 3, 1, 1)])
def test_eigenvalues_of_the_edge_tensor_lie_between_zero_and_one(shape):
    T = edge_tensor(uniform(*shape), 9.0, 0.85)
    assert T.shape == (shape[0], 3, *shape[2:])
    found = eigenvalues(T)
    assert float(found.min()) >= -1e-14
    assert float(found[..., 1].sub(1).abs().max()) < 1e-12


def test_edge_tensor_is_the_identity_on_flat_guides():
    T = edge_tensor(torch.full((1, 3, 5, 6), 0.3, dtype=torch.float64), 9.0, 0.85)
    assert T.equal(torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64).view(1, 3, 1, 1).expand_as(T))


def test_edge_tensor_spares_only_what_lies_across_the_edge():
    guide = guide_with_vertical_edge()
    T_yy, T_yx, T_xx = edge_tensor(guide, 9.0, 0.85, passes=0)[0]
    assert (T_yy == 1).all()
    assert (T_yx == 0).all()
    assert T_xx[:, 5].tolist() == pytest.approx([math.exp(-9.0)] * 9)
    assert (T_xx[:, :5] == 1).all()


def test_edge_tensor_turns_with_the_guide():
    guide = uniform(1, 1, 6, 6)
    T_yy, T_yx, T_xx = edge_tensor(guide, 4.0, 0.8)[0]
    turned = edge_tensor(guide.mT.contiguous(), 4.0, 0.8)[0]
    assert torch.allclose(turned, torch.stack([T_xx.mT, T_yx.mT, T_yy.mT]), atol=1e-14)


def test_edge_tensor_follows_the_channel_that_changes_most():
    guide = torch.cat(
        [0.2 * guide_with_vertical_edge(), guide_with_vertical_edge(), guide_with_vertical_edge() * 0]
    )
    colour = guide.permute(1, 0, 2, 3)
    assert edge_tensor(colour, 9.0, 0.85).equal(edge_tensor(colour[:, 1:2], 9.0, 0.85))
