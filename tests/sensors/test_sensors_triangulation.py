"""Cameras that match two views: fat edges, shadows of the right width, and holes where matching fails."""

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.sensors import sensor

NAMES = ("structured-light-v2", "stereo-v1")
BF = 40.0
QUIET = {"noise": 0.0, "relative": 0.0, "step": 1e-4, "loss": 0.0, "edge_loss": 0.0, "fat": 0.0}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def bar(near=1.0, far=2.0, size=(48, 120), columns=(64, 96)):
    """A nearer bar of some columns before a wall."""
    truth = torch.full((1, 1, *size), far)
    truth[..., columns[0] : columns[1]] = near
    return truth


def camera(name, **options):
    return sensor(name, baseline_focal=BF, **{**QUIET, **options})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1, 2, 4, 8])
def test_shadows_have_their_width_in_the_image_at_every_scale(name, scale):
    samples = camera(name, scale=scale)(bar(), generator=seeded())
    dark = (~samples.valid)[0, 0, 0].nonzero().flatten()
    shift = BF / 1.0 - BF / 2.0
    assert float(dark.min() * scale) == pytest.approx(64 - shift, abs=scale + 1)
    assert float(dark.max() * scale) == pytest.approx(64, abs=scale + 1)
    assert len(dark) * scale == pytest.approx(shift, abs=scale + 1)


def test_a_device_on_the_left_casts_shadows_to_the_right():
    right = camera("stereo-v1")(bar(), generator=seeded()).valid
    left = camera("stereo-v1", to_left=1.0)(bar().flip(3), generator=seeded()).valid
    assert left.equal(right.flip(3))


def test_the_share_of_devices_on_the_left_is_as_asked():
    truth = bar().repeat(400, 1, 1, 1)
    valid = camera("stereo-v1", to_left=0.25)(truth, generator=seeded()).valid
    shadow_right = ~valid[:, 0, 0, 100]
    assert float(shadow_right.float().mean()) == pytest.approx(0.25, abs=0.06)


def test_the_matching_window_widens_what_is_near():
    truth = bar(near=1.9, far=2.3, size=(200, 120))
    thin = camera("stereo-v1")(truth, generator=seeded())
    wide = camera("stereo-v1", fat=4.0)(truth, generator=seeded())
    near = [(each.valid & (each.depth < 2.0))[0, 0].sum(dim=1) for each in (thin, wide)]
    assert (near[0] == 32).all()
    growth = (near[1] - near[0]).float()
    assert float(growth.min()) >= 0
    assert float(growth.max()) <= 8
    assert 3.0 < float(growth.mean()) < 7.0
    assert len(growth.unique()) >= 4  # ragged


def test_a_slanted_plane_is_not_widened():
    x = torch.linspace(0.0, 1.0, 160).expand(1, 1, 40, 160)
    truth = 1.0 / (0.3 + 0.7 * x)  # 0.18 px of disparity per pixel
    samples = camera("stereo-v1", fat=4.0)(truth, generator=seeded())
    assert samples.valid.all()
    assert float((samples.depth - truth).abs().max()) < 1e-3


def test_fat_edges_lose_samples_and_surfaces_do_not():
    truth = bar(near=1.9, far=2.3, size=(200, 120))
    valid = camera("stereo-v1", fat=4.0, edge_loss=0.5)(truth, generator=seeded()).valid[0, 0]
    kept = camera("stereo-v1", fat=4.0)(truth, generator=seeded()).valid[0, 0]
    lost = (kept & ~valid).float().mean(dim=0)
    assert float(lost[94:102].mean()) > 0.05
    assert float(lost[:50].sum() + lost[70:88].sum() + lost[108:].sum()) == 0


def test_grazing_surfaces_are_not_measured():
    x = torch.arange(100.0).expand(1, 1, 20, 100)
    slope = torch.where(x < 50, 0.3, 0.9)
    disparity = 20.0 + slope.cumsum(3)
    valid = camera("stereo-v1", grazing=0.7)(BF / disparity, generator=seeded()).valid[0, 0]
    assert valid[:, 1:49].all()
    assert not valid[:, 52:99].any()


def test_dark_and_shiny_surfaces_are_not_measured():
    truth = torch.full((1, 1, 30, 90), 2.0)
    light = torch.full_like(truth, 0.5)
    light[..., :20], light[..., 70:] = 0.02, 4.0
    valid = camera("stereo-v1", dark=0.1, shiny=4.0)(truth, generator=seeded(), amplitude=light).valid[0, 0]
    assert not valid[:, :17].any()
    assert not valid[:, 73:].any()
    assert valid[:, 24:66].all()


def test_what_is_near_is_not_shiny_for_that():
    truth = bar(near=0.5, far=2.0)
    light = 0.5 / truth.square()
    valid = camera("stereo-v1", shiny=2.0, dark=0.01)(truth, generator=seeded(), amplitude=light).valid
    assert valid[..., 68:92].all()


def test_light_of_another_shape_is_refused():
    with pytest.raises(InputError, match="amplitude"):
        camera("stereo-v1")(bar(), generator=seeded(), amplitude=torch.ones(1, 1, 4, 4))


def test_beyond_the_border_of_the_second_view_nothing_is_measured():
    truth = torch.full((1, 1, 20, 100), 2.0)
    valid = camera("stereo-v1", at_border=1.0)(truth, generator=seeded()).valid[0, 0]
    assert not valid[:, : int(BF / 2.0)].any()
    assert valid[:, int(BF / 2.0) + 1 :].all()


@pytest.mark.parametrize(
    ("name", "near", "far"), [("structured-light-v2", 0.4, 8.0), ("stereo-v1", 0.15, 20.0)]
)
def test_only_its_range_is_measured(name, near, far):
    levels = torch.tensor([near * 0.9, near * 1.1, 2.0, far * 0.9, far * 1.1]).view(-1, 1, 1, 1)
    samples = camera(name)(levels.expand(-1, 1, 8, 8), generator=seeded())
    assert samples.valid.flatten(1).all(dim=1).tolist() == [False, True, True, True, False]
    assert samples.valid.flatten(1).any(dim=1).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("z", [0.8, 3.0])
def test_noise_divided_by_its_sigma_has_deviation_one(name, z):
    truth = z * (1 + 0.02 * torch.linspace(0, 1, 200).expand(1, 1, 200, 200))
    samples = sensor(name)(truth, generator=seeded())
    whitened = ((samples.depth - truth) / samples.sigma)[samples.valid]
    assert float(whitened.std()) == pytest.approx(1.0, rel=0.05)
    assert abs(float(whitened.mean())) < 0.05


def test_disparities_come_in_steps():
    truth = torch.linspace(0.6, 6.0, 100).expand(1, 1, 80, 100)
    samples = camera("structured-light-v2", step=0.125, noise=0.05)(truth, generator=seeded())
    steps = 8 * BF / samples.depth[samples.valid].double()
    assert float((steps - steps.round()).abs().max()) < 1e-3


def test_a_map_that_is_off_the_image_is_shifted_as_a_whole():
    x = torch.arange(64.0)
    truth = (2.0 + 0.01 * x + 0.02 * torch.arange(48.0)[:, None]).expand(40, 1, 48, 64)
    moved = camera("stereo-v1", offset=2.0)(truth, generator=seeded()).depth - truth
    middle = moved[..., 4:-4, 4:-4].flatten(1)
    assert float((middle - middle[:, :1]).abs().max()) < 1e-3
    pixels = {round(float(each) / 0.01) for each in middle[:, 0]}
    assert max(abs(each) for each in pixels) <= 2 + 4
    assert len(pixels) > 6


def test_samples_are_pixels_and_no_means():
    truth = bar(near=1.0, far=3.0, columns=(50, 120))
    depth = camera("stereo-v1", scale=8)(truth, generator=seeded()).depth
    values = depth[depth > 0]
    assert (((values - 1.0).abs() < 1e-3) | ((values - 3.0).abs() < 1e-3)).all()


def test_points_of_a_disparity_map_have_holes_beside_what_is_near():
    truth = torch.full((1, 1, 16, 120), 40.0)
    truth[..., 64:] = 140.0
    exact = sensor("point-gaussian-v1", scale=4, sigma=0.0)(truth, generator=seeded())
    assert exact.depth.equal(truth[..., 2::4, 2::4])
    valid = sensor("point-gaussian-v1", sigma=0.0, parallax=0.2)(truth, generator=seeded()).valid[0, 0, 0]
    dark = (~valid).nonzero().flatten().tolist()
    assert dark[-1] == 63
    assert len(dark) == pytest.approx(20, abs=1)
