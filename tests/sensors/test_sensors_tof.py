"""The time-of-flight model: noise by amplitude, mixed pixels by hand, dropouts."""

import cmath
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded

from primaldepth.core.errors import InputError
from primaldepth.sensors import sensor

K = 4 * math.pi * 20e6 / 299_792_458
QUIET = {"read": 0.0, "shot": 0.0, "spread": 0.0}


def everywhere(value, size=(100, 100)):
    return torch.full((1, 1, *size), value)


@pytest.mark.parametrize("amplitude", [1.0, 0.3, 0.1])
@pytest.mark.parametrize("distance", [1.0, 3.0])
def test_noise_is_that_of_a_phasor_of_the_given_amplitude(distance, amplitude):
    camera = sensor("tof-v1", spread=0.0)
    samples = camera(everywhere(distance), generator=seeded(), amplitude=everywhere(amplitude))
    expected = math.sqrt(0.002**2 + 0.004**2 * amplitude) / (K * amplitude)
    assert samples.valid.all()
    assert float((samples.depth - distance).std()) == pytest.approx(expected, rel=0.04)
    assert abs(float((samples.depth - distance).mean())) < 4 * expected / 100
    assert float(samples.sigma.mean()) == pytest.approx(expected, rel=0.02)
    assert float(samples.amplitude.mean()) == pytest.approx(amplitude, rel=0.01)


def test_noise_grows_with_distance_and_sigma_says_so():
    distance = torch.linspace(0.5, 5.0, 200).expand(1, 1, 200, 200)
    samples = sensor("tof-v1", spread=0.0)(distance, generator=seeded())
    whitened = ((samples.depth - distance) / samples.sigma)[samples.valid]
    assert float(whitened.std()) == pytest.approx(1.0, rel=0.03)
    columns = (samples.depth - distance)[0, 0].std(dim=0)
    assert 0.001 < float(columns[:20].mean()) < 0.005
    assert float(columns[-20:].mean()) > 10 * float(columns[:20].mean())


def test_noise_is_a_percent_of_the_distance_within_a_room():
    for distance in (1.0, 2.0, 4.0):
        amplitude = everywhere(0.5 / distance**2)
        samples = sensor("tof-v1")(everywhere(distance), generator=seeded(), amplitude=amplitude)
        assert 0.003 < float((samples.depth - distance)[samples.valid].std()) / distance < 0.03


@given(
    near=st.floats(0.5, 3.0),
    gap=st.floats(0.0, 3.0),
    ratio=st.floats(0.1, 10.0),
    covered=st.integers(0, 4),
)
def test_mixed_pixels_are_the_angle_of_the_mean_phasor(near, gap, ratio, covered):
    distance = torch.full((1, 1, 4, 4), near + gap)
    amplitude = torch.full((1, 1, 4, 4), 0.5)
    distance[..., :covered], amplitude[..., :covered] = near, 0.5 * ratio
    camera = sensor("tof-v1", scale=4, min_amplitude=0.0, **QUIET)
    samples = camera(distance, generator=seeded(), amplitude=amplitude)
    share = covered / 4
    phasor = share * 0.5 * ratio * cmath.exp(1j * K * near)
    phasor += (1 - share) * 0.5 * cmath.exp(1j * K * (near + gap))
    if abs(phasor) > 1e-3:
        assert float(samples.depth) == pytest.approx(cmath.phase(phasor) % (2 * math.pi) / K, abs=1e-4)
        assert float(samples.amplitude) == pytest.approx(abs(phasor), rel=1e-3)


def test_an_edge_through_a_pixel_gives_a_distance_between():
    distance = everywhere(2.0, (4, 24))
    distance[..., :10] = 1.0
    samples = sensor("tof-v1", scale=4, **QUIET)(distance, generator=seeded())
    row = samples.depth.flatten()
    assert row[:2].tolist() == pytest.approx([1.0, 1.0], abs=1e-5)
    assert row[3:].tolist() == pytest.approx([2.0] * 3, abs=1e-5)
    assert 1.05 < float(row[2]) < 1.5  # the nearer half returns four times the light


def test_light_spreads_to_the_four_neighbours():
    distance = everywhere(2.0, (5, 5))
    distance[..., 2, 2] = 1.0
    camera = sensor("tof-v1", read=0.0, shot=0.0, spread=0.05)
    samples = camera(distance, generator=seeded(), amplitude=everywhere(1.0, (5, 5)))
    moved = (samples.depth - distance).abs()[0, 0] > 1e-4
    expected = torch.zeros(5, 5, dtype=torch.bool)
    expected[2, 1:4] = expected[1:4, 2] = True
    assert moved.equal(expected)
    assert torch.allclose(samples.depth[0, 0, 2, 1], torch.tensor(1.95), atol=0.01)


def test_dark_surfaces_drop_out():
    amplitude = torch.linspace(0.0, 0.1, 200).expand(1, 1, 200, 200)
    samples = sensor("tof-v1")(everywhere(2.0, (200, 200)), generator=seeded(), amplitude=amplitude)
    share = samples.valid[0, 0].float().mean(dim=0)
    assert float(share[:25].max()) < 0.1
    assert float(share[60:].min()) == 1.0
    assert (samples.amplitude[samples.valid] >= 0.02).all()


def test_nothing_is_measured_where_the_phase_starts_anew():
    distance = torch.tensor([7.0, 7.4, 7.6, 20.0]).view(1, 1, 1, 4)
    samples = sensor("tof-v1", **QUIET)(distance, generator=seeded(), amplitude=torch.ones_like(distance))
    assert samples.valid.flatten().tolist() == [True, True, False, False]
    assert samples.depth.flatten()[:2].tolist() == pytest.approx([7.0, 7.4], abs=1e-4)
    assert sensor("tof-v1").unambiguous_range == pytest.approx(7.49, abs=0.01)


def test_half_of_a_footprint_must_be_known():
    distance = everywhere(2.0, (4, 8))
    distance[..., :2, :4] = 0.0
    distance[..., :3, 4:] = 0.0
    samples = sensor("tof-v1", scale=4, **QUIET)(distance, generator=seeded())
    assert samples.valid.flatten().tolist() == [True, False]
    assert float(samples.depth.flatten()[0]) == pytest.approx(2.0, abs=1e-5)


def test_an_amplitude_of_another_size_is_refused():
    with pytest.raises(InputError, match="amplitude"):
        sensor("tof-v1")(everywhere(1.0), generator=seeded(), amplitude=everywhere(1.0, (3, 3)))
