"""The benchmark's degradation as a sensor: bit for bit, and like the published files."""

import pytest
import torch

from primaldepth.core.seeds import generator
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.operators.sampling import resample
from primaldepth.sensors import sensor
from primaldepth.sensors.degradations import middlebury_noisy_v1
from primaldepth.sensors.noise import middlebury_sigma

NAME = "middlebury-noisy-v1"


def disparity(size=(96, 128)):
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    return (90 + 40 * y / size[0] + 70 * x / size[1])[None, None]


def test_it_is_the_frozen_formula_bit_for_bit():
    truth = disparity()
    low = resample(truth, (24, 32), "bicubic")
    normal = torch.randn(low.shape, generator=generator("test"))
    expected = (low + normal * 651.0 / low.clamp_min(1.0)).round().clamp(0.0, 255.0)
    assert middlebury_noisy_v1(truth, 4, generator("test")).equal(expected)
    samples = sensor(NAME, scale=4)(truth, generator=generator("test"))
    assert samples.depth.equal(expected)
    assert samples.valid.all()


def test_sigma_is_what_the_samples_tell():
    samples = sensor(NAME, scale=2)(disparity(), generator=generator("test"))
    assert samples.sigma.equal(middlebury_sigma(samples.depth, samples.valid))


def test_other_noise_levels():
    truth = disparity((200, 200))
    samples = sensor(NAME, noise=1302.0)(truth, generator=generator("test"))
    assert float(((samples.depth - truth) * truth).std()) == pytest.approx(1302, rel=0.03)


def test_a_sample_needs_every_pixel_below_it():
    truth = disparity()
    valid = truth > 0
    valid[..., 17, 42] = False
    samples = sensor(NAME, scale=8)(truth, valid, generator=generator("test"))
    assert not samples.valid[0, 0, 2, 5]
    assert int((~samples.valid).sum()) == 1


@pytest.mark.data
@pytest.mark.parametrize("scale", [2, 4, 8, 16])
@pytest.mark.parametrize("scene", ["art", "books", "moebius"])
def test_our_samples_are_like_the_published_ones(benchmark_data, scene, scale):
    case = get_protocol("noisy-middlebury").load(benchmark_data, scene, scale)
    low = resample(case.truth, case.frame.low_size, "bicubic").double()
    ours = sensor(NAME, scale=scale)(case.truth, generator=generator("test", scene, scale)).depth
    published, mine = (each - low for each in (case.frame.depth, ours))
    assert float((mine * low).std()) == pytest.approx(float((published * low).std()), rel=0.03)
    assert abs(float(mine.mean() - published.mean())) < 0.1
