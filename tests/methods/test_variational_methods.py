"""What the variational methods add to the contract: the guide, trust, noise, levels."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.methods.variational import _enlarge, sample_distances
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
@pytest.mark.parametrize("scale", [1, 4])
def test_a_sample_without_confidence_has_no_influence(name, scale):
    frame, _ = noisy_step(scale, (12, 12))
    confidence = torch.ones_like(frame.depth)
    confidence[..., 1, 2] = 0.0
    outlier = torch.where(confidence > 0, frame.depth, 100.0)
    with_outlier, without = (
        create(name, SHORT)(replace(frame, depth=depth, confidence=confidence)).depth
        for depth in (outlier, frame.depth)
    )
    assert (with_outlier - without).abs().max() < 1e-4


def test_noisy_samples_count_less():
    frame, _ = noisy_step()
    depth, loud = frame.depth.clone(), frame.sigma.clone()
    depth[..., 3, 6] += 1.0
    loud[..., 3, 6] *= 20
    frames = [replace(frame, depth=depth), replace(frame, depth=depth, sigma=loud), frame]
    trusted, doubted, clean = (
        create("nlh-l2", SHORT)(each).depth[..., 12:16, 24:28].mean() for each in frames
    )
    assert abs(doubted - clean) < 0.5 * (trusted - clean)


@every_model
def test_twice_the_noise_is_a_quarter_or_half_of_the_trust(name):
    """The weight of a sample is c / sigma^2 with squared, c / sigma with absolute errors."""
    frame, _ = noisy_step()
    sigma, confidence = frame.sigma.clone(), torch.ones_like(frame.depth)
    sigma[..., 3, 6] *= 2
    confidence[..., 3, 6] = 0.25 if MODELS[name].norm == "l2" else 0.5
    loud, doubted = replace(frame, sigma=sigma), replace(frame, confidence=confidence)
    difference = create(name, SHORT)(loud).depth - create(name, SHORT)(doubted).depth
    assert difference.abs().max() < 1e-5
    assert (create(name, SHORT)(loud).depth - create(name, SHORT)(frame).depth).abs().max() > 1e-3


@every_model
@pytest.mark.parametrize("scale", [2, 4])
def test_the_weight_of_a_sample_grows_with_the_distance_of_samples(name, scale):
    frame, _ = noisy_step(scale, (16, 16))
    grown = create(name, {"lam": 3.0, "growth": 1.5, **SHORT})(frame).depth
    assert grown.equal(create(name, {"lam": 3.0 * scale**1.5, "growth": 0.0, **SHORT})(frame).depth)


def test_little_noise_means_long_primal_steps():
    """The balance of the steps falls with the contrast, of trusted samples only."""
    frame, _ = noisy_step(sigma=0.01)
    contrast = float(frame.depth.std(correction=0)) / 0.01
    followed = create("nlh-l2", {"ratio": 2.0, "contrast": contrast / 5, **SHORT})(frame).depth
    fixed = create("nlh-l2", {"ratio": 0.4, "contrast": 0.0, **SHORT})(frame).depth
    assert (followed - fixed).abs().max() < 1e-4
    assert (
        create("nlh-l2", {"ratio": 2.0, "contrast": 0.0, **SHORT})(frame).depth - fixed
    ).abs().max() > 1e-3


@every_model
def test_images_of_a_batch_take_their_own_steps(name):
    few, many = (noisy_step(size=(16, 16), sigma=sigma)[0] for sigma in (0.1, 0.001))
    depth, valid, guide, sigma = (torch.cat(pair) for pair in zip(_parts(few), _parts(many), strict=True))
    both = Frame(depth, valid, guide, sigma=sigma)
    found = create(name, SHORT)(both).depth
    assert found[:1].equal(create(name, SHORT)(few).depth)
    assert found[1:].equal(create(name, SHORT)(many).depth)


def _parts(frame):
    return frame.depth, frame.valid, frame.guide, frame.sigma


@pytest.mark.parametrize("sigma", [0.0, None])
@every_model
def test_noise_that_is_zero_or_unknown_will_do(name, sigma):
    frame, truth = noisy_step(sigma=0.0)
    frame = replace(frame, sigma=None if sigma is None else torch.full_like(frame.depth, sigma))
    found = create(name, {"window": 5})(frame).depth
    assert rmse(found, truth) < rmse(create("bicubic")(frame).depth, truth)


def test_scattered_samples_are_as_far_apart_as_they_lie():
    """One sample in 5 x 5 pixels on the guide's own grid: not x1. A dense map with a large hole: x1."""
    depth = torch.ones(2, 1, 40, 40)
    valid = torch.zeros_like(depth, dtype=torch.bool)
    valid[0, :, 2::5, 2::5] = True
    valid[1, :, :16] = True
    assert sample_distances(Frame(depth, valid, torch.zeros(2, 1, 40, 40))) == [5.0, 1.0]


def test_slopes_shrink_with_the_pixels():
    """Depth and slopes of a plane stay those of the same plane on a finer grid."""
    u = torch.cat(
        [torch.arange(4.0).expand(1, 1, 3, 4), torch.full((1, 1, 3, 4), 6.0), torch.ones(1, 1, 3, 4)], dim=1
    )
    finer = _enlarge(u, (6, 16))
    assert torch.allclose(finer[0, :, 2, 8], torch.tensor([1.625, 3.0, 0.25]))


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
