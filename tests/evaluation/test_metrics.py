"""Metrics against one-liners in numpy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import maximum_filter

from primaldepth.core.frame import Frame
from primaldepth.evaluation import metrics
from primaldepth.evaluation.metrics import geometric_mean, mae, rmse
from primaldepth.evaluation.scoring import Scoring
from primaldepth.operators.sampling import resample

SHAPE = (1, 1, 5, 6)
maps = arrays(np.float32, SHAPE, elements=st.floats(-1000, 1000, width=32))
positive = arrays(np.float32, SHAPE, elements=st.floats(0.5, 1000, width=32))
coarse = arrays(np.float32, SHAPE, elements=st.integers(1, 4).map(float))
masks = arrays(np.bool_, SHAPE).filter(lambda mask: mask.any())
radii = st.integers(0, 2)


def tensors(*values):
    return tuple(torch.from_numpy(value) for value in values)


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@given(maps, maps, masks, st.floats(0, 500))
def test_errors_are_the_formulas_over_known_pixels(depth, truth, known, limit):
    error = np.abs(depth.astype(np.float64) - truth.astype(np.float64))[known]
    three = tensors(depth, truth, known)
    assert rmse(*three) == close(np.sqrt(np.mean(error**2)))
    assert mae(*three) == close(np.mean(error))
    assert mae(*three) <= rmse(*three) * (1 + 1e-12)
    assert metrics.bad_pixels(*three, limit) == close(np.mean(error > limit))


@given(maps, positive, masks)
def test_ratios_are_the_formulas_over_known_pixels(depth, truth, known):
    d, t = depth.astype(np.float64)[known], truth.astype(np.float64)[known]
    three = tensors(depth, truth, known)
    assert metrics.abs_rel(*three) == close(np.mean(np.abs(d - t) / t))
    with np.errstate(divide="ignore"):
        inside = (d > 0) & (np.maximum(d / t, t / d) < 1.25)
    assume(not np.isclose(np.maximum(d, 1e-9) / t, [[1.25], [0.8]]).any())  # where rounding decides
    assert metrics.delta1(*three) == close(np.mean(inside))


def edges_in_numpy(depth, known, step):
    """Pixels next to a jump, both of them known."""
    found = np.zeros(known.shape, bool)
    for axis in (2, 3):
        jump = np.abs(np.diff(depth, axis=axis)) > step
        jump &= np.logical_and(*(np.delete(known, at, axis) for at in (0, -1)))
        before, after = ([(0, 0)] * 4 for _ in range(2))
        before[axis], after[axis] = (1, 0), (0, 1)
        found |= np.pad(jump, before) | np.pad(jump, after)
    return found


def dilated(pixels, radius):
    return maximum_filter(pixels, (1, 1, 2 * radius + 1, 2 * radius + 1), mode="constant")


@given(coarse, masks)
def test_edges_are_jumps_between_known_neighbours(depth, known):
    found = metrics.edge_pixels(*tensors(depth, known), 1.5)
    assert (found.numpy() == edges_in_numpy(depth, known, 1.5)).all()


@given(maps, coarse, masks, radii)
def test_edge_rmse_is_the_rmse_of_the_band(depth, truth, known, radius):
    band = dilated(edges_in_numpy(truth, known, 1.5), radius) & known
    found = metrics.edge_rmse(*tensors(depth, truth, known), 1.5, radius)
    if not band.any():
        assert found is None
    else:
        assert found == close(np.sqrt(np.mean((depth.astype(float) - truth.astype(float))[band] ** 2)))


@given(coarse, coarse, masks, radii)
def test_boundary_f1_is_the_harmonic_mean_of_precision_and_recall(depth, truth, known, tolerance):
    ours, theirs = (edges_in_numpy(image, known, 1.5) for image in (depth, truth))
    found = metrics.boundary_f1(*tensors(depth, truth, known), 1.5, tolerance)
    assume(ours.any() and theirs.any())
    precision, recall = dilated(theirs, tolerance)[ours].mean(), dilated(ours, tolerance)[theirs].mean()
    assert found == close(2 / (1 / precision + 1 / recall) if precision * recall else 0.0)


def step_at(column, high=3.0):
    image = torch.ones(1, 1, 8, 16)
    image[..., column:] = high
    return image


def test_boundary_f1_of_moved_and_missing_edges():
    known = torch.ones(1, 1, 8, 16, dtype=torch.bool)
    f1 = {at: metrics.boundary_f1(step_at(at), step_at(8), known, 1.0, 1) for at in (8, 9, 10, 12)}
    assert f1 == {8: 1.0, 9: 1.0, 10: 0.5, 12: 0.0}
    flat = torch.ones(1, 1, 8, 16)
    assert metrics.boundary_f1(flat, step_at(8), known, 1.0, 1) == 0.0
    assert metrics.boundary_f1(flat, flat, known, 1.0, 1) == 1.0


def noisy_frame(low, high, sigma=2.0):
    random = torch.Generator().manual_seed(0)
    truth = 50 + 20 * torch.rand((1, 1, *high), generator=random)
    clean = resample(truth, low, "bicubic")
    noise = sigma * torch.randn(clean.shape, generator=random)
    valid = torch.rand(clean.shape, generator=random) > 0.2
    depth = torch.where(valid, clean + noise, torch.nan)
    frame = Frame(depth, valid, torch.zeros(1, 1, *high), sigma=torch.full_like(clean, sigma))
    return truth, frame, (noise / sigma)[valid]


@pytest.mark.parametrize(("low", "high"), [((32, 40), (128, 160)), ((64, 80), (64, 80))])
def test_the_truth_leaves_the_noise_as_residual(low, high):
    truth, frame, noise = noisy_frame(low, high)
    found = metrics.sensor_residual(truth, frame)
    assert found == pytest.approx(float(noise.square().mean().sqrt()), rel=1e-5)
    assert found == pytest.approx(1.0, abs=0.05)
    assert metrics.sensor_residual(truth + 6.0, frame) == pytest.approx(math.hypot(1.0, 3.0), abs=0.1)


def test_a_residual_needs_the_noise():
    truth, frame, _ = noisy_frame((8, 8), (16, 16))
    blind = Frame(frame.depth, frame.valid, frame.guide)
    with pytest.raises(ValueError, match="standard deviation > 0"):
        metrics.sensor_residual(truth, blind)


THREE = [rmse, mae, metrics.abs_rel, metrics.delta1, lambda *three: metrics.bad_pixels(*three, 0.5)]


@pytest.mark.parametrize("metric", THREE)
def test_unknown_pixels_are_never_read(metric):
    depth, truth = torch.tensor([[[[1.0, 5.0]]]]), torch.tensor([[[[2.0, float("nan")]]]])
    known = torch.tensor([[[[True, False]]]])
    assert metric(depth, truth, known) == metric(depth[..., :1], truth[..., :1], known[..., :1])
    assert math.isfinite(metric(depth, truth, known))


@pytest.mark.parametrize("metric", THREE)
def test_nothing_known_is_an_error(metric):
    zeros = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="no pixel with known truth"):
        metric(zeros, zeros, zeros.bool())


@pytest.mark.parametrize("metric", [metrics.abs_rel, metrics.delta1])
def test_ratios_need_positive_truth(metric):
    zeros = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="truth is not positive"):
        metric(zeros, zeros, zeros == 0)


def test_sums_are_exact_for_large_maps():
    """A mean over a million float32 values must not lose the small ones."""
    truth = torch.zeros(1, 1, 1000, 1000)
    assert mae(truth + 0.1, truth, truth == 0) == pytest.approx(float(torch.tensor(0.1)), rel=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12))
def test_geometric_mean_is_the_root_of_the_product(values):
    assert geometric_mean(values) == pytest.approx(float(np.prod(values)) ** (1 / len(values)), rel=1e-9)


def test_a_scoring_names_every_number_and_its_unit():
    scoring = Scoring(unit="mm", bad=(10, 30.5), edge_step=3.0)
    truth, frame, _ = noisy_frame((16, 16), (32, 32))
    known = torch.ones_like(truth, dtype=torch.bool)
    found = scoring.scores(truth + 20, frame, truth, known)
    assert list(found) == list(scoring.units())
    assert (found["rmse"], found["bad_10"], found["bad_30.5"]) == (pytest.approx(20, rel=1e-6), 1.0, 0.0)
    assert found["edge_rmse"] == pytest.approx(20, rel=1e-6)
    assert scoring.units()["edge_rmse"] == "mm"
    assert scoring.units()["residual"] == "sigma"
    flat = torch.full_like(truth, 50.0)
    assert scoring.scores(truth, frame, flat, known)["edge_rmse"] is None
