"""The published degradation, by its statistics; filling of unknown disparities, by hand."""

import pytest
import torch

from primaldepth.core.seeds import generator
from primaldepth.operators.sampling import resample
from primaldepth.sensors.degradations import fill_occlusions, middlebury_noisy_v1, reduced_size

NAN = float("nan")


def disparity(size=(320, 320)):
    """A slanted plane between 100 and 200."""
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    return (100 + 50 * y / size[0] + 50 * x / size[1])[None, None]


@pytest.mark.parametrize("scale", [1, 2, 4])
def test_residual_is_noise_of_standard_deviation_651_over_d(scale):
    truth = disparity()
    noisy = middlebury_noisy_v1(truth, scale, generator("test", scale))
    low = resample(truth, (320 // scale, 320 // scale), "bicubic")
    whitened = ((noisy - low) * low).double()
    assert float(whitened.std()) == pytest.approx(651, rel=0.03)
    assert abs(float(whitened.mean())) < 4 * 651 / whitened.numel() ** 0.5
    assert float((whitened.abs() > 2 * 651).double().mean()) == pytest.approx(0.0455, abs=0.01)


def test_noise_is_white():
    noisy = middlebury_noisy_v1(disparity(), 1, generator("test")) - disparity()
    for dim in (-2, -1):
        n = noisy.shape[dim] - 1
        neighbours = (noisy.narrow(dim, 0, n) * noisy.narrow(dim, 1, n)).mean() / noisy.square().mean()
        assert abs(float(neighbours)) < 0.02


def test_samples_are_8_bit():
    noisy = middlebury_noisy_v1(4 * disparity((64, 64)) - 400, 2, generator("test"))
    assert noisy.equal(noisy.round())
    assert noisy.min() == 0
    assert noisy.max() == 255


def test_same_seed_same_samples():
    draws = [middlebury_noisy_v1(disparity((32, 48)), 4, generator("test", seed)) for seed in (1, 1, 2)]
    assert draws[0].shape == (1, 1, 8, 12)
    assert draws[0].equal(draws[1])
    assert not draws[0].equal(draws[2])


def test_sides_must_be_multiples_of_the_scale():
    assert reduced_size((32, 48), 8) == (4, 6)
    with pytest.raises(ValueError, match="32x50 is not a multiple of 4"):
        middlebury_noisy_v1(disparity((32, 50)), 4, generator("test"))


FILLED = {
    "between": ([[5, NAN, NAN, 3]], [[5, 3, 3, 3]]),
    "at-the-left": ([[NAN, NAN, 7, 2]], [[7, 7, 7, 2]]),
    "at-the-right": ([[4, 6, NAN]], [[4, 6, 6]]),
    "two-gaps": ([[9, NAN, 1, NAN, 8]], [[9, 1, 1, 1, 8]]),
    "one-known": ([[NAN, 5, NAN]], [[5, 5, 5]]),
    "row-unknown": ([[1, 2], [NAN, NAN], [3, 4]], [[1, 2], [1, 2], [3, 4]]),
    "top-rows-unknown": ([[NAN, NAN], [NAN, NAN], [3, NAN]], [[3, 3], [3, 3], [3, 3]]),
    "bottom-row-unknown": ([[1, NAN, 3], [NAN, NAN, NAN]], [[1, 1, 3], [1, 1, 3]]),
    "column-unknown": ([[NAN, 1, 2], [NAN, 8, 3]], [[1, 1, 2], [8, 8, 3]]),
    "nothing-unknown": ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
}


@pytest.mark.parametrize(("rows", "expected"), FILLED.values(), ids=FILLED.keys())
def test_unknown_disparities_take_the_farther_neighbour(rows, expected):
    given = torch.tensor(rows, dtype=torch.float32)[None, None]
    assert fill_occlusions(given, ~given.isnan())[0, 0].tolist() == expected


def test_values_at_unknown_pixels_are_never_read():
    given = torch.tensor([[5.0, 0.0, 9.0, 3.0]])[None, None]
    valid = torch.tensor([[True, False, False, True]])[None, None]
    assert fill_occlusions(given, valid).flatten().tolist() == [5, 3, 3, 3]
    assert given.flatten().tolist() == [5, 0, 9, 3]


def test_images_of_a_batch_do_not_mix():
    given = torch.tensor([[[[1.0, NAN]]], [[[NAN, 7.0]]]])
    assert fill_occlusions(given, ~given.isnan()).flatten().tolist() == [1, 1, 7, 7]
