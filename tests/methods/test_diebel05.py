import math

import pytest
import torch
from step_scene import noisy_step

from primaldepth.core.frame import Frame
from primaldepth.methods.diebel05 import Diebel05, Diebel05Settings, neighbour_weights


def test_weights_fall_with_the_guide_and_stop_at_the_floor():
    guide = torch.tensor([0.5, 0.6, 0.6, 1.0]).view(1, 1, 1, 4)
    w = neighbour_weights(guide, contrast=0.1, floor=0.01)
    assert w[0, 1, 0, 1:].tolist() == pytest.approx([math.exp(-0.5), 1.0, 0.01])


def test_two_pixels_by_hand():
    """1/2 (a - 0)^2 + 1/2 (b - 10)^2 + mu/2 (a - b)^2: the difference shrinks to 10 / (1 + 2 mu)."""
    depth = torch.tensor([0.0, 10.0]).view(1, 1, 1, 2)
    frame = Frame(
        depth, torch.ones_like(depth, dtype=torch.bool), torch.zeros(1, 1, 1, 2), sigma=torch.ones_like(depth)
    )
    for mu in (0.1, 1.0, 7.0):
        found = Diebel05(Diebel05Settings(smoothness=mu, tolerance=1e-6))(frame).depth.flatten()
        assert float(found[1] - found[0]) == pytest.approx(10 / (1 + 2 * mu), rel=1e-4)
        assert float(found.mean()) == pytest.approx(5.0, rel=1e-4)


def test_smoothness_follows_the_scale():
    for scale in (2, 4):
        frame, _ = noisy_step(scale)
        scaled = Diebel05(Diebel05Settings(smoothness=3.0, decay=1.0))(frame).depth
        plain = Diebel05(Diebel05Settings(smoothness=3.0 / scale, decay=0.0))(frame).depth
        assert torch.allclose(scaled, plain, atol=1e-5)


def test_the_report_says_how_it_ended():
    frame, _ = noisy_step()
    info = Diebel05()(frame).info
    assert 0 < info["iterations"] <= 300
    assert info["residual"] <= 1e-3
