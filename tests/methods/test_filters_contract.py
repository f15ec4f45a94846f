"""What kopf07, yang07, he10 and chan08 add to the contract: the guide, trust, holes."""

import math
from dataclasses import replace

import pytest
import torch
from step_scene import FAMILIES, assert_counts_less, last_sample_only, noisy_step, rmse, with_hole

from primaldepth.core.frame import Frame
from primaldepth.methods import create

every_filter = pytest.mark.parametrize("name", FAMILIES["filter"])


@every_filter
def test_doubted_samples_count_less(name):
    flat, grey = torch.full((1, 1, 8, 8), 3.0), torch.full((1, 3, 32, 32), 0.5)
    frame = Frame(flat, flat > 0, grey, sigma=torch.full_like(flat, 0.1))
    depth = frame.depth.clone()
    depth[..., 3, 6] += 0.1
    confidence = torch.ones_like(depth)
    confidence[..., 3, 6] = 0.1
    frames = [replace(frame, depth=depth), replace(frame, depth=depth, confidence=confidence), frame]
    assert_counts_less(name, frames, slice(13, 15), slice(25, 27))


@every_filter
def test_no_confidence_at_all_is_no_reason_to_fail(name):
    frame, _ = noisy_step()
    found = create(name)(replace(frame, confidence=torch.zeros_like(frame.depth))).depth
    assert found.equal(create(name)(frame).depth)


def reach(name, frame):
    """Samples from a hole within which the method may differ, per axis."""
    ratios = [high / low for high, low in zip(frame.high_size, frame.low_size, strict=True)]
    settings = create(name).settings
    if name == "yang07":
        windows = [settings.window(frame, iteration) for iteration in range(settings.iterations)]
        pixels = [sum(w.rows.margin for w in windows), sum(w.columns.margin for w in windows)]
        return [math.ceil(side / ratio) + 1 for side, ratio in zip(pixels, ratios, strict=True)]
    if name == "he10":
        return [
            math.ceil(2 * side / ratio) + 1 for side, ratio in zip(settings.reach(frame), ratios, strict=True)
        ]
    window = settings.window(frame)
    smoothed = 4 if name == "chan08" else 0  # by 2 samples, compared over 3, interpolated
    return [max(axis.margin, smoothed) + 1 for axis in (window.rows, window.columns)]


def felt(name, frame, holed):
    """Rows and columns, in samples, where the result differs."""
    found, whole = create(name)(holed).depth, create(name)(frame).depth
    assert torch.isfinite(found).all()
    changed = (found != whole)[0, 0].nonzero()
    ratios = torch.tensor([high / low for high, low in zip(frame.high_size, frame.low_size, strict=True)])
    low, high = changed.amin(0) / ratios, (changed.amax(0) + 1) / ratios
    return low.tolist(), high.tolist()


@every_filter
@pytest.mark.parametrize("side", [1, 10])
@pytest.mark.parametrize("high", [(48, 56), (77, 131), (192, 112)])
def test_a_hole_is_felt_no_farther_than_the_window_reaches(name, side, high):
    random = torch.Generator().manual_seed(0)
    depth = 2 + torch.rand((1, 1, 48, 56), generator=random)
    guide = torch.rand((1, 3, *high), generator=random)
    frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=torch.full_like(depth, 0.1))
    low, high = felt(name, frame, with_hole(frame, side, (20, 24)))
    for axis, (start, margin) in enumerate(zip((20, 24), reach(name, frame), strict=True)):
        assert low[axis] >= start - margin
        assert high[axis] <= start + side + margin
        assert low[axis] < start + side
        assert high[axis] > start


@every_filter
def test_a_large_hole_is_filled_from_its_rim(name):
    frame, truth = noisy_step(2, (96, 96), sigma=0.02)
    holed = create(name)(with_hole(frame, 14, (30, 2))).depth
    assert torch.isfinite(holed).all()
    assert (holed - truth)[..., 60:88, 4:32].abs().max() < 0.1


@every_filter
def test_samples_in_one_corner_reach_everywhere(name):
    frame, _ = noisy_step()
    found = create(name)(last_sample_only(frame)).depth
    assert (found - frame.depth[..., -1, -1]).abs().max() < 1e-4


@every_filter
def test_depth_without_noise_is_no_reason_to_fail(name):
    frame, truth = noisy_step(4, (64, 64), sigma=0.0)
    assert not frame.sigma.any()
    found = create(name)(frame).depth
    assert torch.isfinite(found).all()
    assert rmse(found, truth) < 0.12


@every_filter
def test_bands_of_rows_do_not_show(name, monkeypatch):
    frame, _ = noisy_step(4, (48, 64))
    whole = create(name)(frame).depth
    monkeypatch.setattr("primaldepth.methods.bilateral.CPU_BAND", 1)
    assert create(name)(frame).depth.allclose(whole, rtol=0, atol=1e-5)


@every_filter
def test_no_gradients_are_kept(name):
    frame, _ = noisy_step(scale=1, size=(6, 6))
    assert not create(name)(replace(frame, depth=frame.depth.clone().requires_grad_())).depth.requires_grad
