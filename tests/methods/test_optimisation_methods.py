"""What diebel05, park11, ferstl13 and barron16 add to the contract: the guide, trust, noise, holes."""

from dataclasses import replace

import pytest
import torch
from step_scene import FAMILIES, assert_counts_less, last_sample_only, noisy_step, rmse, with_hole

from primaldepth.methods import create

every_method = pytest.mark.parametrize("name", FAMILIES["optimisation"])


@every_method
def test_no_confidence_at_all_is_no_reason_to_fail(name):
    frame, _ = noisy_step()
    found = create(name)(replace(frame, confidence=torch.zeros_like(frame.depth))).depth
    assert torch.isfinite(found).all()
    assert found.min() > 1.5
    assert found.max() < 3.5


@every_method
def test_noisy_samples_count_less(name):
    frame, _ = noisy_step()
    depth, loud = frame.depth.clone(), frame.sigma.clone()
    depth[..., 3, 6] += 1.0
    loud[..., 3, 6] *= 20
    frames = [replace(frame, depth=depth), replace(frame, depth=depth, sigma=loud), frame]
    assert_counts_less(name, frames, slice(12, 16), slice(24, 28))


@every_method
def test_a_large_hole_is_filled_and_not_felt_far_away(name):
    frame, truth = noisy_step(2, (96, 96), sigma=0.02)
    whole, holed = create(name)(frame).depth, create(name)(with_hole(frame)).depth
    assert torch.isfinite(holed).all()
    assert holed.min() > 1.5
    assert holed.max() < 3.5
    assert (holed - whole)[..., 48:, 48:].abs().max() < 0.01
    assert rmse(holed[..., 48:, 48:], truth[..., 48:, 48:]) < 0.1


@every_method
def test_samples_in_one_corner_reach_everywhere(name):
    frame, _ = noisy_step()
    found = create(name)(last_sample_only(frame)).depth
    assert torch.isfinite(found).all()
    assert (found - frame.depth[..., -1, -1]).abs().max() < 1e-3


@every_method
def test_no_gradients_are_kept(name):
    frame, _ = noisy_step(scale=1, size=(6, 6))
    assert not create(name)(replace(frame, depth=frame.depth.clone().requires_grad_())).depth.requires_grad
