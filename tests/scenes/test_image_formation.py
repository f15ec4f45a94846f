"""Radiance to image: exposure, blur, noise; and the sheet that shows them."""

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.pictures.contact_sheet import contact_sheet
from primaldepth.scenes.description import Exposure
from primaldepth.scenes.image_formation import blurred, develop, linear_table, srgb


def test_the_mean_is_exposed_to_its_level() -> None:
    light = np.random.default_rng(0).uniform(0, 2, (64, 64, 1)).astype(np.float32).repeat(3, -1)
    for scale in (0.01, 1.0, 100.0):
        image = develop(scale * light, Exposure(level=0.2), seed=0)
        assert linear_table()[image].mean() == pytest.approx(0.2, rel=0.01)


def test_the_curve_and_its_table_are_inverse() -> None:
    np.testing.assert_allclose(srgb(linear_table()) * 255, np.arange(256), atol=1e-3)


def test_a_large_bright_part_is_not_burnt_out() -> None:
    light = np.full((64, 64, 3), 0.01, np.float32)
    light[:20, :20] = 1.0
    image = develop(light, Exposure(level=0.3), seed=0)
    assert 240 < image[5, 5].max() < 255
    assert image[40, 40].min() > 0


def test_highlights_do_not_darken_the_picture_and_holes_stay_black() -> None:
    light = np.full((32, 32, 3), 0.5, np.float32)
    plain = develop(light, Exposure(), seed=0)
    light[3, 3], light[4, 4] = 1e6, np.nan
    spotted = develop(light, Exposure(), seed=0)
    assert np.abs(plain[20:].astype(int) - spotted[20:]).max() <= 3
    assert spotted[3, 3].min() == 255
    assert spotted[4, 4].max() == 0


def test_blur_keeps_the_sum_and_has_its_width() -> None:
    spot = np.zeros((41, 41, 1), np.float32)
    spot[20, 20] = 1
    wide = blurred(spot, 1.2)[..., 0]
    assert wide.sum() == pytest.approx(1, abs=1e-5)
    x = np.arange(41) - 20
    assert np.sqrt((wide.sum(0) * x**2).sum()) == pytest.approx(1.2, rel=0.03)
    assert blurred(spot, 0) is spot


def test_noise_depends_on_the_seed_and_grey_has_one_channel() -> None:
    light = np.full((64, 64, 3), 0.3, np.float32)
    noisy = Exposure(noise=0.05, grey=True)
    first, again, other = (develop(light, noisy, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert np.ptp(first.astype(int), axis=-1).max() == 0
    std = linear_table()[first[..., 0]].std()
    assert std == pytest.approx(0.05 * np.sqrt(0.25 + 0.02), rel=0.1)


def test_a_contact_sheet_shows_image_over_depth() -> None:
    scene = {
        "image": np.full((20, 30, 3), 90, np.uint8),
        "depth": np.linspace(1, 2, 600).reshape(20, 30).astype(np.float32),
        "valid": np.ones((20, 30), bool),
    }
    sheet = contact_sheet([scene] * 5, columns=3, side=60)
    assert sheet.shape == (2 * (80 + 4) + 4, 3 * (60 + 4) + 4, 3)
    assert (sheet[10:40, 10:60] == 90).all()
    assert np.ptp(sheet[44:84, 4:64].reshape(-1, 3), axis=0).max() > 100
    with pytest.raises(InputError, match="no scenes"):
        contact_sheet([])
