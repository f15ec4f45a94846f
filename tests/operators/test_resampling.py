"""Resampling against its definition, written out in loops, and against torch."""

import math

import numpy as np
import pytest
import torch
from operator_cases import GRIDS, KERNELS
from torch.nn.functional import interpolate

from primaldepth.operators.sampling import Resample, resample, resampling_matrix

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
PAIRS = [(9, 3), (3, 9), (7, 4), (4, 7), (10, 10), (1, 5), (5, 1), (1, 1), (100, 6), (6, 100)]


def image(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cubic(t):
    t = abs(t)
    if t <= 1:
        return 1.5 * t**3 - 2.5 * t**2 + 1
    return -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0


def reduced(signal, n_out):
    """Antialiased bicubic reduction, sample by sample, as image toolboxes do it."""
    n_in, out = len(signal), []
    ratio = n_in / n_out
    for i in range(n_out):
        centre, total, weights = (i + 0.5) * ratio - 0.5, 0.0, 0.0
        for j in range(math.floor(centre - 2 * ratio), math.ceil(centre + 2 * ratio) + 1):
            mirrored = -1 - j if j < 0 else 2 * n_in - 1 - j if j >= n_in else j
            weight = cubic((centre - j) / ratio)
            total, weights = total + weight * signal[mirrored], weights + weight
        out.append(total / weights)
    return out


@every_kernel
@pytest.mark.parametrize(("n_in", "n_out"), PAIRS)
def test_rows_sum_to_one(kernel, n_in, n_out):
    assert np.abs(resampling_matrix(kernel, n_in, n_out).sum(axis=1) - 1).max() < 1e-13


@every_kernel
@pytest.mark.parametrize(("low", "high"), GRIDS)
def test_constants_stay(kernel, low, high):
    constant = torch.full((1, 2, *low), 3.7, dtype=torch.float64)
    assert (resample(constant, high, kernel) - 3.7).abs().max() < 1e-13


@every_kernel
def test_equal_size_is_the_identity(kernel):
    u = image(1, 1, 7, 9)
    assert (resample(u, (7, 9), kernel) - u).abs().max() < 1e-14


def test_the_identity_copies_every_value():
    """Products with a matrix of zeros and ones would spread what is not finite over its row and column."""
    A = Resample((4, 5), (4, 5), "point")
    u = torch.rand(1, 1, 5, 4).mT
    u[0, 0, 1, 2] = torch.inf
    for each in (A.forward(u), A.adjoint(u)):
        assert torch.equal(each, u)
        assert each.is_contiguous()
        assert each.data_ptr() != u.data_ptr()


@pytest.mark.parametrize("kernel", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("n_in", "n_out"), [(12, 36), (36, 12), (20, 13), (13, 20)])
def test_ramps_are_reproduced_between_pixel_centres(kernel, n_in, n_out):
    ramp = (np.arange(n_in) + 0.5) / n_in
    out = resampling_matrix(kernel, n_in, n_out) @ ramp
    centres = (np.arange(n_out) + 0.5) / n_out
    border = 2.5 * max(1 / n_in, 1 / n_out)
    interior = (centres > border) & (centres < 1 - border)
    assert interior.sum() > n_out / 3
    error = np.abs(out - centres)[interior].max()
    # a stretched kernel at a ratio that is no integer sees the ramp's lattice a little
    assert error < (1e-13 if n_in % n_out == 0 or n_out > n_in else 2e-3)


def test_area_means_the_footprint():
    assert resampling_matrix("area", 6, 2) @ np.array([1, 2, 6, 4, 4, 1]) == pytest.approx([3, 3])
    assert resampling_matrix("area", 3, 2).tolist() == [
        pytest.approx([2 / 3, 1 / 3, 0]),
        pytest.approx([0, 1 / 3, 2 / 3]),
    ]


def test_nearest_takes_the_cell_that_covers_the_centre():
    assert (resampling_matrix("nearest", 3, 7) @ [10, 20, 30]).tolist() == [10, 10, 20, 20, 20, 30, 30]
    assert (resampling_matrix("nearest", 9, 3) @ np.arange(9)).tolist() == [1, 4, 7]


@pytest.mark.parametrize("size", [(14, 27), (11, 10), (8, 9)])
def test_bilinear_enlargement_is_that_of_torch(size):
    u = image(2, 1, 7, 9)
    expected = interpolate(u, size, mode="bilinear", align_corners=False)
    assert (resample(u, size, "bilinear") - expected).abs().max() < 1e-12


@pytest.mark.parametrize("size", [(7, 9), (5, 3), (2, 4), (1, 1)])
def test_reduction_to_points_is_the_operator_of_that_name(size):
    u = image(2, 1, 7, 9)
    assert (resample(u, size, "point") - Resample((7, 9), size, "point").forward(u)).abs().max() < 1e-14


@pytest.mark.parametrize("size", [(10, 12), (17, 15)])
def test_bicubic_reduction_is_that_of_torch_in_the_interior(size):
    u = image(1, 1, 40, 48)
    expected = interpolate(u, size, mode="bicubic", antialias=True)
    difference = resample(u, size, "bicubic") - expected
    assert difference[..., 3:-3, 3:-3].abs().max() < 1e-12


@pytest.mark.parametrize(("n_in", "n_out"), [(16, 4), (12, 6), (15, 4), (20, 7)])
def test_bicubic_reduction_by_an_independent_loop(n_in, n_out):
    signal = image(n_in).numpy() * 100
    assert resampling_matrix("bicubic", n_in, n_out) @ signal == pytest.approx(
        reduced(signal, n_out), abs=1e-11
    )


def test_bicubic_halving_by_hand():
    """Output 3 sits at 6.5: weights cubic(1/4, 3/4, 5/4, 7/4) / 2 on either side."""
    one_side = [111 / 256, 29 / 256, -9 / 256, -3 / 256]
    row = resampling_matrix("bicubic", 16, 8)[3]
    assert row[7:11] == pytest.approx(one_side, abs=1e-15)
    assert row[6:2:-1] == pytest.approx(one_side, abs=1e-15)
    assert np.count_nonzero(row) == 8


def test_the_table_of_weights_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        resampling_matrix("bilinear", 4, 8)[0, 0] = 5.0


def test_sizes_must_be_positive():
    with pytest.raises(ValueError, match="0 -> 3"):
        resampling_matrix("area", 0, 3)


def test_axes_are_not_confused():
    u = image(1, 1, 4, 6)
    out = Resample((4, 6), (2, 3), "area")(u)
    assert out[0, 0, 1, 2] == pytest.approx(u[0, 0, 2:, 4:].mean().item())
