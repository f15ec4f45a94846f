"""The formula of each filter, written out pixel by pixel, and its limits."""

import math
from dataclasses import replace

import pytest
import torch
from step_scene import noisy_step

from primaldepth.core.frame import Frame
from primaldepth.methods import create
from primaldepth.methods.bilateral import FLOOR, Axis, BilateralWindow, WeightedSamples
from primaldepth.methods.he10 import guided_filter, solve_symmetric
from primaldepth.methods.yang07 import between
from primaldepth.operators.sampling import resample

LOW, HIGH = (5, 6), (13, 12)


@pytest.fixture
def frame():
    random = torch.Generator().manual_seed(3)
    depth = 2 + torch.rand((1, 1, *LOW), generator=random, dtype=torch.float64)
    valid = torch.rand(depth.shape, generator=random) > 0.2
    confidence = torch.rand(depth.shape, generator=random, dtype=torch.float64)
    guide = torch.rand((1, 3, *HIGH), generator=random, dtype=torch.float64)
    return Frame(depth, valid, guide, confidence, torch.full_like(depth, 0.3))


def kopf_by_hand(frame, y, x, sigma_d, sigma_v):
    """Sum over all samples within 2 sigma_d of the one that covers the pixel."""
    low_guide = resample(frame.guide, LOW, "area")[0]
    position = [(i + 0.5) * low / high - 0.5 for i, low, high in zip((y, x), LOW, HIGH, strict=True)]
    own = [math.floor(p + 0.5) for p in position]
    total = weight = 0.0
    for row in range(LOW[0]):
        for column in range(LOW[1]):
            if (
                max(abs(row - own[0]), abs(column - own[1])) > 2 * sigma_d
                or not frame.valid[0, 0, row, column]
            ):
                continue
            distance = (row - position[0]) ** 2 + (column - position[1]) ** 2
            looks = float((low_guide[:, row, column] - frame.guide[0, :, y, x]).abs().mean())
            w = math.exp(-distance / (2 * sigma_d**2)) * max(math.exp(-looks / sigma_v), FLOOR)
            w *= float(frame.confidence[0, 0, row, column])
            weight += w
            total += w * float(frame.depth[0, 0, row, column])
    return total / weight


def test_kopf07_is_its_formula(frame):
    found = create("kopf07", {"sigma_d": 1.0, "shrink": 0.0, "sigma_v": 0.1})(frame).depth
    for y in range(HIGH[0]):
        for x in range(HIGH[1]):
            assert float(found[0, 0, y, x]) == pytest.approx(kopf_by_hand(frame, y, x, 1.0, 0.1), abs=1e-9)


def test_chan08_is_kopf07_where_every_step_counts(frame):
    shared = {"sigma_d": 1.2, "shrink": 0.3, "sigma_v": 0.1}
    found = create("chan08", {**shared, "threshold": 0.0, "slope": 1e6})(frame).depth
    assert found.allclose(create("kopf07", shared)(frame).depth, rtol=0, atol=1e-9)


def test_chan08_does_not_look_at_the_guide_where_no_step_counts(frame):
    method = create("chan08", {"threshold": 1e6})
    other = replace(frame, guide=frame.guide.flip(-1))
    assert method(frame).depth.equal(method(other).depth)


def test_chan08_keeps_texture_out_of_flat_depth():
    """Every sample has its own colour, the depth is flat but for noise: the guide would keep the noise."""
    random = torch.Generator().manual_seed(1)
    depth, colours = (
        torch.randn((1, 1, 16, 16), generator=random),
        torch.rand((1, 3, 16, 16), generator=random),
    )
    guide = colours.repeat_interleave(4, 2).repeat_interleave(4, 3)
    frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=torch.ones_like(depth))
    errors = [
        create("chan08", {"threshold": threshold})(frame).depth.square().mean()
        for threshold in (6.0, 1.0, 0.0)
    ]
    assert errors[0] < 0.9 * errors[1] < 0.9 * errors[2]


def test_elimination_solves_every_pixel():
    random = torch.Generator().manual_seed(0)
    root = torch.rand((2, 4, 5, 3, 3), generator=random, dtype=torch.float64)
    matrix = root @ root.mT + 0.1 * torch.eye(3, dtype=torch.float64)
    right = torch.rand((2, 3, 4, 5), generator=random, dtype=torch.float64)
    upper = [[matrix[..., i, j].unsqueeze(1) for j in range(i, 3)] for i in range(3)]
    expected = torch.linalg.solve(matrix, right.permute(0, 2, 3, 1))
    assert solve_symmetric(upper, right).permute(0, 2, 3, 1).allclose(expected)


def test_the_guided_filter_keeps_what_is_linear_in_the_guide():
    random = torch.Generator().manual_seed(0)
    guide = torch.rand((1, 3, 20, 24), generator=random, dtype=torch.float64)
    depth = 100 + (guide * torch.tensor([3.0, -2.0, 0.5]).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)
    weight = (torch.rand(depth.shape, generator=random, dtype=torch.float64) > 0.5).double()
    found, known = guided_filter(guide, torch.where(weight > 0, depth, -5.0), weight, (4, 3), 1e-9)
    assert known.all()
    assert found.allclose(depth, rtol=0, atol=1e-4)


def test_the_guided_filter_is_the_ridge_regression_of_each_window():
    random = torch.Generator().manual_seed(1)
    guide, depth, weight = (torch.rand((1, 1, 1, 9), generator=random, dtype=torch.float64) for _ in range(3))
    models = []
    for centre in range(9):
        part = slice(max(0, centre - 2), centre + 3)
        g, d, w = (each[0, 0, 0, part] for each in (guide, depth, weight))
        mean_g, mean_d = (float((w * each).sum() / w.sum()) for each in (g, d))
        slope = float(
            (w * (g - mean_g) * (d - mean_d)).sum() / ((w * (g - mean_g) ** 2).sum() + 0.1 * w.sum())
        )
        models.append((slope, mean_d - slope * mean_g))
    found, _ = guided_filter(guide, depth, weight, (1, 2), 0.1)
    for x in range(9):
        near = models[max(0, x - 2) : x + 3]
        a, b = (sum(model[k] for model in near) / len(near) for k in range(2))
        assert float(found[0, 0, 0, x]) == pytest.approx(a * float(guide[0, 0, 0, x]) + b, abs=1e-9)


def test_the_guided_filter_knows_nothing_beyond_its_own_window():
    """Windows around it may hold samples; their fits say nothing of a pixel that looks like none of them."""
    guide = torch.linspace(0, 1, 20, dtype=torch.float64).view(1, 1, 1, -1)
    weight = (torch.arange(20) < 8).double().view(1, 1, 1, -1)
    _, known = guided_filter(guide, 5 * guide, weight, (1, 3), 1e-9)
    assert known.flatten().nonzero().flatten().tolist() == list(range(11))


def test_the_minimum_of_a_parabola_is_found_between_hypotheses():
    n = torch.arange(7.0).view(1, -1, 1, 1)
    least = torch.tensor([2.3, 3.0, 4.49, 1.51]).view(1, 1, 2, 2)
    assert between(3 * (n - least) ** 2 + 1).allclose(least, atol=1e-5)
    assert between((n + 5) ** 2).item() == 0
    assert between(torch.ones(1, 7, 1, 1)).item() == 0


def yang_by_hand(frame, settings, y, x):
    """One iteration on a frame of ratio 1: a fine search of the truncated cost at one pixel."""
    window = settings.window(frame, 0)
    depth, guide = frame.depth[0, 0], frame.guide[0]
    d, w = [], []
    for row in range(y - window.rows.margin, y + window.rows.margin + 1, window.rows.step):
        for column in range(x - window.columns.margin, x + window.columns.margin + 1, window.columns.step):
            if 0 <= row < depth.shape[0] and 0 <= column < depth.shape[1]:
                looks = float((guide[:, row, column] - guide[:, y, x]).abs().mean())
                distance = ((row - y) ** 2 + (column - x) ** 2) / (2 * settings.sigma_d**2)
                d.append(float(depth[row, column]))
                w.append(math.exp(-distance - looks / settings.sigma_v))
    d, w = torch.tensor(d), torch.tensor(w)
    hypotheses = torch.linspace(float(d.min()), float(d.max()), 4001)
    limit = settings.truncation * float(frame.sigma[0, 0, y, x])
    cost = (w * (hypotheses[:, None] - d).square().clamp_max(limit**2)).sum(dim=1)
    return float(hypotheses[cost.argmin()])


def test_yang07_finds_the_least_truncated_cost():
    frame, _ = noisy_step(1, (14, 17), sigma=0.1)
    method = create("yang07", {"iterations": 1, "sigma_d": 1.5, "sigma_v": 0.1, "hypotheses": 100, "taps": 3})
    found = method(frame).depth[0, 0]
    for y in range(0, 14, 3):
        for x in range(0, 17, 3):
            assert float(found[y, x]) == pytest.approx(yang_by_hand(frame, method.settings, y, x), abs=0.01)


def test_yang07_is_not_moved_by_an_outlier_as_kopf07_is():
    frame, truth = noisy_step(2, (48, 48), sigma=0.02)
    depth = frame.depth.clone()
    depth[..., 4, 20] = 9.0
    near = (..., slice(10, 14), slice(44, 48))
    wrong = replace(frame, depth=depth)
    errors = [(create(name)(wrong).depth - truth)[near].abs().mean() for name in ("yang07", "kopf07")]
    assert errors[0] < 0.4 * errors[1]


def test_yang07_without_noise_still_truncates_at_steps():
    frame, truth = noisy_step(1, (24, 24), sigma=0.0)
    found = create("yang07", {"iterations": 1})(frame).depth
    assert (found - truth).abs().max() < 0.05


@pytest.mark.parametrize(("n_in", "n_out"), [(4, 16), (5, 13), (7, 7)])
def test_a_window_finds_the_samples_around_each_pixel(n_in, n_out):
    axis = Axis.reaching(n_in, n_out, 1.0)
    column = Axis(1, 1, 1.0, 1)
    depth = torch.arange(1.0, n_in + 1).view(1, 1, n_in, 1)
    samples = WeightedSamples(depth, torch.ones_like(depth), torch.zeros_like(depth))
    ((band, neighbours),) = BilateralWindow(axis, column).over(samples, maps=1)
    assert (band.start, band.stop) == (0, n_out)
    found = [{} for _ in range(n_out)]
    for near in neighbours:
        for pixel in range(n_out):
            if near.weight[0, 0, pixel, 0] > 0:
                found[pixel][int(near.depth[0, 0, pixel, 0]) - 1] = float(near.weight[0, 0, pixel, 0])
    for pixel in range(n_out):
        position = (pixel + 0.5) * n_in / n_out - 0.5
        own = math.floor(position + 0.5)
        expected = {i: math.exp(-((position - i) ** 2) / 2) for i in range(own - 2, own + 3) if 0 <= i < n_in}
        assert found[pixel] == pytest.approx(expected)
