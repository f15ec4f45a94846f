"""Metrics against one-liners in numpy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from primaldepth.evaluation.metrics import geometric_mean, mae, rmse

maps = arrays(np.float32, (1, 1, 3, 4), elements=st.floats(-1000, 1000, width=32))
masks = arrays(np.bool_, (1, 1, 3, 4)).filter(lambda mask: mask.any())


@given(maps, maps, masks)
def test_metrics_are_the_formulas_over_known_pixels(depth, truth, known):
    error = depth.astype(np.float64)[known] - truth.astype(np.float64)[known]
    tensors = (torch.from_numpy(depth), torch.from_numpy(truth), torch.from_numpy(known))
    assert rmse(*tensors) == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12, abs=1e-12)
    assert mae(*tensors) == pytest.approx(np.mean(np.abs(error)), rel=1e-12, abs=1e-12)
    assert mae(*tensors) <= rmse(*tensors) * (1 + 1e-12)


@pytest.mark.parametrize("metric", [rmse, mae])
def test_unknown_pixels_are_never_read(metric):
    depth, truth = torch.tensor([[[[1.0, 5.0]]]]), torch.tensor([[[[2.0, float("nan")]]]])
    assert metric(depth, truth, torch.tensor([[[[True, False]]]])) == 1.0


@pytest.mark.parametrize("metric", [rmse, mae])
def test_nothing_known_is_an_error(metric):
    zeros = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="no pixel with known truth"):
        metric(zeros, zeros, zeros.bool())


def test_sums_are_exact_for_large_maps():
    """A mean over a million float32 values must not lose the small ones."""
    truth = torch.zeros(1, 1, 1000, 1000)
    assert mae(truth + 0.1, truth, truth == 0) == pytest.approx(float(torch.tensor(0.1)), rel=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12))
def test_geometric_mean_is_the_root_of_the_product(values):
    assert geometric_mean(values) == pytest.approx(float(np.prod(values)) ** (1 / len(values)), rel=1e-9)
