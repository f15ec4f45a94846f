"""Noise by the name of a metric sensor: sigma of samples that some device has measured."""

import pytest
import torch

from primaldepth.sensors import sensor
from primaldepth.sensors.device_noise import DEVICES
from primaldepth.sensors.noise import METRIC_SENSORS, SENSORS, TOF_WAVE_NUMBER, noise_map

MODELS = {"tof": "tof-v1", "structured-light": "structured-light-v1", "lidar": "lidar-v1"}


def test_names_are_unique():
    assert not set(SENSORS) & set(METRIC_SENSORS)
    assert set(METRIC_SENSORS) == set(MODELS) | set(DEVICES)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("z", [0.8, 1.5, 3.0])
def test_sigma_is_the_noise_of_the_sensor_model(name, z):
    truth = torch.linspace(z, 1.01 * z, 240).expand(1, 1, 240, 240)
    light = {"amplitude": 0.5 / truth**2} if name == "tof" else {}
    options = {"spread": 0.0} if name == "tof" else {"spacing": 1, "blur": 0.0} if name == "lidar" else {}
    random = torch.Generator().manual_seed(0)
    samples = sensor(MODELS[name], **options)(truth, generator=random, **light)
    sigma = noise_map(name, samples.depth, samples.valid)
    whitened = ((samples.depth - truth) / sigma)[samples.valid]
    assert float(whitened.std()) == pytest.approx(1.0, rel=0.08)


@pytest.mark.parametrize("name", METRIC_SENSORS)
def test_sigma_is_positive_also_where_nothing_is_valid(name):
    depth = torch.full((1, 1, 6, 6), float("nan"))
    sigma = noise_map(name, depth, torch.zeros_like(depth, dtype=torch.bool))
    assert torch.isfinite(sigma).all()
    assert (sigma > 0).all()


def test_the_wave_number_is_that_of_the_model():
    assert sensor("tof-v1").wave_number == pytest.approx(TOF_WAVE_NUMBER, rel=1e-3)


PUBLISHED = [
    ("kinect-v1", 0.4, 1.2),
    ("kinect-v1", 3.0, 14.0),
    ("kinect-v2", 1.0, 1.3),
    ("kinect-v2", 4.0, 4.3),
]
PUBLISHED += [("azure-kinect", 3.0, 1.85), ("realsense-d415", 1.0, 1.45), ("realsense-d435", 2.0, 14.3)]
PUBLISHED += [("realsense-d455", 2.0, 7.5), ("realsense-l515", 1.0, 2.5), ("realsense-l515", 9.0, 15.5)]
PUBLISHED += [("ipad-lidar", 2.0, 20.0), ("pmd-pico", 0.5, 5.0)]


@pytest.mark.parametrize(
    ("name", "z", "millimetres"),
    PUBLISHED,
)
def test_devices_have_the_published_noise(name, z, millimetres):
    depth = torch.full((1, 1, 7, 7), z)
    sigma = noise_map(name, depth, depth > 0)
    assert 1000 * float(sigma[0, 0, 3, 3]) == pytest.approx(millimetres, rel=0.02)


def test_every_device_says_where_its_noise_comes_from():
    assert all(device.formula and device.source for device in DEVICES.values())
