"""Pairwise operators as convolutions: the same operators, whatever the size."""

import pytest
import torch

from primaldepth.export.traceable import MaskedConvolution, difference_taps, end_taps, slope_taps
from primaldepth.operators import PairwiseDifference, PairwiseSlope, half_window
from primaldepth.operators.base import dot_test

SIZES = [(1, 1), (1, 6), (7, 9), (5, 1)]


def operators(size, window):
    """(convolution, definition) of the three pairwise operators."""
    offsets = half_window(window)
    ends = end_taps(offsets).double()
    mask = torch.nn.functional.conv2d(torch.ones(1, 1, *size).double(), ends, padding=window // 2)
    twice = mask.repeat(1, 2, 1, 1)
    return [
        (MaskedConvolution(difference_taps(offsets).double(), mask), PairwiseDifference(size, offsets)),
        (
            MaskedConvolution(difference_taps(offsets, 2).double(), twice),
            PairwiseDifference(size, offsets, channels=2),
        ),
        (MaskedConvolution(slope_taps(offsets).double(), mask), PairwiseSlope(size, offsets)),
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("window", [3, 7])
def test_the_convolution_is_the_definition(size, window):
    random = torch.Generator().manual_seed(0)
    for K, definition in operators(size, window):
        assert (K.in_shape, K.out_shape) == (definition.in_shape, definition.out_shape)
        u = torch.randn((2, *K.in_shape), generator=random, dtype=torch.float64)
        p = torch.randn((2, *K.out_shape), generator=random, dtype=torch.float64)
        torch.testing.assert_close(K(u), definition(u), rtol=0, atol=1e-12)
        torch.testing.assert_close(K.adjoint(p), definition.adjoint(p), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_adjoint_norm_and_magnitude(size):
    for K, definition in operators(size, 5):
        assert dot_test(K) < 1e-12
        assert definition.norm_bound <= K.norm_bound + 1e-9
        u = torch.rand((1, *K.in_shape), dtype=torch.float64)
        torch.testing.assert_close(K.magnitude()(u), definition.magnitude()(u), rtol=0, atol=1e-12)
