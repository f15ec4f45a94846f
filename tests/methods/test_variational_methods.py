"""What the variational methods add to the contract: the guide, trust, noise, levels."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.variational import MODELS

every_model = pytest.mark.parametrize("name", MODELS)
SHORT = {"iterations": 20, "coarse_iterations": 20, "window": 5}


def noisy_step(scale=4, size=(32, 32), sigma=0.1, seed=0):
    """Truth: 2 left of a slanted edge, 3 right of it; the guide has the same edge."""
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    right = (x > 10 + 0.3 * y).float()[None, None]
    truth, guide = 2.0 + right, (0.2 + 0.6 * right).expand(1, 3, *size).contiguous()
    low = truth.unfold(2, scale, scale).unfold(3, scale, scale).mean(dim=(-2, -1))
    noise = torch.randn(low.shape, generator=torch.Generator().manual_seed(seed))
    depth = low + sigma * noise
    frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=torch.full_like(depth, sigma))
    return frame, truth


def rmse(depth, truth):
    return float((depth - truth).square().mean().sqrt())


@every_model
def test_an_edge_of_the_guide_beats_bicubic(name):
    frame, truth = noisy_step()
    found = create(name, {"iterations": 100, "coarse_iterations": 60, "window": 5})(frame).depth
    assert rmse(found, truth) < 0.9 * rmse(create("bicubic")(frame).depth, truth)


@every_model
def test_without_confidence_an_outlier_is_ignored(name):
    frame, _ = noisy_step()
    confidence = torch.ones_like(frame.depth)
    confidence[..., 3, 6] = 0.0
    outlier = frame.depth.clone()
    outlier[..., 3, 6] += 100.0
    with_outlier, without = (
        create(name, SHORT)(replace(frame, depth=depth, confidence=confidence)).depth
        for depth in (outlier, frame.depth)
    )
    cell = torch.zeros_like(without, dtype=torch.bool)
    cell[..., 8:20, 20:32] = True
    assert (with_outlier - without)[~cell].abs().max() < 0.3


@every_model
def test_zero_confidence_is_as_good_as_invalid_for_the_data_term(name):
    """At one sample per pixel the first estimate is all that can still tell them apart."""
    frame, _ = noisy_step(scale=1, size=(12, 12))
    options = {**SHORT, "iterations": 400}
    confidence = torch.ones_like(frame.depth)
    confidence[..., 5, 7] = 0.0
    valid = confidence > 0
    trusted = create(name, options)(replace(frame, confidence=confidence)).depth
    masked = create(name, options)(replace(frame, valid=valid)).depth
    assert (trusted - masked).abs().max() < 0.03


@pytest.mark.parametrize("name", ["nlh-l2", "nlh-l1"])
def test_noisy_samples_count_less(name):
    frame, _ = noisy_step()
    depth = frame.depth.clone()
    depth[..., 3, 6] += 1.0
    loud = frame.sigma.clone()
    loud[..., 3, 6] *= 20
    moved = [float(create(name, SHORT)(replace(frame, depth=depth, sigma=s)).depth[..., 14, 26]) for s in (frame.sigma, loud)]
    assert moved[1] < moved[0] - 0.05


def levels_solved(low, high):
    """The watcher is called once per level when the iterations are few."""
    seen = []
    depth = torch.rand((1, 1, *low), generator=torch.Generator().manual_seed(1)) + 1
    frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), torch.zeros(1, 1, *high))
    create("nlh-l2", {"iterations": 2, "coarse_iterations": 1, "window": 3}, progress=seen.append)(frame)
    assert [progress.iteration for progress in seen] == [1] * (len(seen) - 1) + [2]
    return len(seen)


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [
        ((16, 16), (16, 16), 1),
        ((8, 8), (16, 16), 2),
        ((7, 7), (16, 16), 2),
        ((2, 2), (16, 16), 4),
        ((1, 1), (64, 64), 4),
        ((4, 16), (16, 16), 1),
        ((16, 4), (16, 16), 1),
        ((4, 8), (16, 16), 2),
    ],
)
def test_levels_stay_at_or_above_the_samples_on_both_axes(low, high, levels):
    assert levels_solved(low, high) == levels


def test_the_report_says_how_it_ended():
    frame, _ = noisy_step(scale=1, size=(12, 12))
    info = create("nlh-l2", {"iterations": 30, "window": 3})(frame).info
    assert info["iterations"] == 30
    assert info["stopped"] == "iterations"
    assert 0 <= info["gap"] < info["energy"]


def test_a_loose_tolerance_ends_early():
    frame, _ = noisy_step()
    info = create("nlh-l2", {"iterations": 500, "change_tolerance": 1e-2, "window": 3})(frame).info
    assert info["stopped"] == "change"
    assert info["iterations"] < 500


@every_model
def test_no_gradients_are_kept(name):
    frame, _ = noisy_step(scale=1, size=(6, 6))
    depth = frame.depth.clone().requires_grad_()
    assert not create(name, SHORT)(replace(frame, depth=depth)).depth.requires_grad
