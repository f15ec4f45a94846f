import math

import pytest
import torch
from step_scene import noisy_step, rmse

from primaldepth.methods.park11 import (
    Park11,
    Park11Settings,
    keep_steps,
    pair_weights,
    partner,
    squared_differences,
    structure_tensor,
)
from primaldepth.operators.pairwise import half_window


def rand(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def test_partners_and_differences_by_hand():
    image = rand(1, 2, 5, 6)
    there, squares = partner(image, (-1, 2)), squared_differences(image, (-1, 2))
    assert there[..., 3, 1].equal(image[..., 2, 3])
    assert there[..., 0, :].equal(image[..., 0, :])
    assert float(squares[0, 0, 3, 1]) == pytest.approx(
        float((image[0, :, 3, 1] - image[0, :, 2, 3]).square().sum())
    )
    assert squares[..., 0, :].abs().max() == 0


def test_the_structure_of_a_ramp_is_its_gradient():
    y, x = torch.meshgrid(torch.arange(20.0), torch.arange(20.0), indexing="ij")
    J = structure_tensor((0.03 * y - 0.02 * x)[None, None])[0, :, 10, 10]
    assert torch.allclose(J, torch.tensor([9e-4, -6e-4, 4e-4]), atol=1e-6)


def test_an_even_guide_gives_every_pair_its_full_weight():
    q, offsets = Park11Settings(), half_window(5)
    w = pair_weights(torch.full((1, 3, 9, 9), 0.4), offsets, q)
    for k, offset in enumerate(offsets):
        near = max(map(abs, offset)) == 1
        assert w[0, k, 4, 4] == pytest.approx(q.reach + near, rel=1e-5)


def test_pairs_along_an_edge_hold_and_pairs_across_it_do_not():
    guide = (torch.arange(16) >= 8).float().expand(1, 1, 16, 16)
    q, offsets = Park11Settings(floor=1e-6), half_window(5)
    w = pair_weights(guide, offsets, q)
    along, across = offsets.index((-2, 0)), offsets.index((0, -2))
    assert w[0, along, 8, 8] > 0.9 * q.reach
    assert w[0, across, 8, 8] < 1e-3 * q.reach


def test_steps_of_the_depth_weaken_pairs():
    depth = torch.tensor([0.0, 0.0, 3.0]).view(1, 1, 1, 3)
    w = keep_steps(torch.full((1, 1, 1, 3), 2.0), [(0, -1)], depth, step=1.5)
    assert w.flatten().tolist() == pytest.approx([2.0, 2.0, 2.0 / (1 + (3.0 / 1.5) ** 2)])


def test_rounds_sharpen_an_edge_that_the_guide_does_not_show():
    frame, truth = noisy_step(2, (48, 48), sigma=0.05)
    blind = type(frame)(frame.depth, frame.valid, torch.zeros_like(frame.guide), sigma=frame.sigma)
    one, three = (Park11(Park11Settings(rounds=n))(blind).depth for n in (1, 3))
    assert rmse(three, truth) < 0.9 * rmse(one, truth)


def test_the_report_says_how_it_ended():
    info = Park11()(noisy_step()[0]).info
    assert math.isfinite(info["residual"])
    assert info["iterations"] >= 1
