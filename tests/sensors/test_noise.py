"""How noisy a frame is: estimated, by sensor, by number or map."""

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.measurement.noise_estimate import _edges
from primaldepth.methods import create
from primaldepth.operators.sampling import resample
from primaldepth.sensors.noise import (
    MIDDLEBURY_NOISE,
    estimate_sigma,
    local_mean,
    middlebury_sigma,
    noise_map,
)

SIZE = (60, 80)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def plane(size=SIZE):
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    return (3.0 + 0.4 * y - 0.7 * x)[None, None]


def everywhere(depth):
    return torch.ones_like(depth, dtype=torch.bool)


@pytest.mark.parametrize("sigma", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_noise_on_a_plane_is_found(sigma, seed):
    depth = plane() + sigma * normal(1, 1, *SIZE, seed=seed)
    assert float(estimate_sigma(depth, everywhere(depth)).mean()) == pytest.approx(sigma, rel=0.1)


def test_noise_is_found_beside_holes_and_an_edge():
    depth = plane() + 0.5 * normal(1, 1, *SIZE)
    depth[..., 35:] += 50.0
    valid = torch.rand(depth.shape, generator=torch.Generator().manual_seed(3)) > 0.15
    depth[~valid] = float("nan")
    assert float(estimate_sigma(depth, valid).mean()) == pytest.approx(0.5, rel=0.1)


def test_a_plane_without_noise_has_none():
    depth = plane()
    assert float(estimate_sigma(depth, everywhere(depth)).max()) < 1e-5


def test_each_image_has_its_own_noise():
    depth = plane().repeat(2, 1, 1, 1) + torch.tensor([0.1, 2.0]).view(2, 1, 1, 1) * normal(2, 1, *SIZE)
    sigma = estimate_sigma(depth, everywhere(depth))
    assert sigma.shape == depth.shape
    assert sigma[:, 0, 0, 0].tolist() == pytest.approx([0.1, 2.0], rel=0.1)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 2)])
def test_too_few_samples_give_zero(size):
    depth = torch.full((1, 1, *size), 5.0)
    assert (estimate_sigma(depth, everywhere(depth)) == 0).all()


def test_local_mean_leaves_invalid_samples_out():
    depth = torch.full((1, 1, 7, 7), 4.0)
    valid = everywhere(depth)
    valid[..., 2:, 3] = False
    depth[~valid] = float("nan")
    assert (local_mean(depth, valid) - 4).abs().max() < 1e-6
    assert (local_mean(depth, torch.zeros_like(valid)) == 0).all()


def test_local_mean_by_hand():
    depth = torch.arange(25.0).view(1, 1, 5, 5)
    assert float(local_mean(depth, everywhere(depth))[0, 0, 2, 2]) == pytest.approx(12.0)
    assert float(local_mean(depth, everywhere(depth), 3)[0, 0, 0, 0]) == pytest.approx((0 + 1 + 5 + 6) / 4)


def test_middlebury_noise_falls_with_disparity():
    depth = torch.full((1, 1, 8, 8), 93.0)
    assert torch.allclose(middlebury_sigma(depth, everywhere(depth)), torch.tensor(7.0))
    assert MIDDLEBURY_NOISE == 651.0


def test_middlebury_noise_of_a_sample_hardly_depends_on_itself():
    depth = torch.full((1, 1, 9, 9), 100.0)
    depth[0, 0, 4, 4] = 50.0
    assert float(middlebury_sigma(depth, everywhere(depth))[0, 0, 4, 4]) == pytest.approx(651 / 98)


def test_auto_is_the_estimate_but_never_less_than_sensors_reach():
    depth = 90 + plane() + 5 * normal(1, 1, *SIZE)
    valid = everywhere(depth)
    assert noise_map("auto", depth, valid).equal(estimate_sigma(depth, valid))
    still = torch.full_like(depth, 90.0)
    assert 0 <= float(noise_map("auto", still, valid).max()) < 0.01 * 90


def test_noise_by_name():
    depth = 90 + plane() + normal(1, 1, *SIZE)
    valid = everywhere(depth)
    assert noise_map("middlebury", depth, valid).equal(middlebury_sigma(depth, valid))


@pytest.mark.parametrize("number", [0.25, 0, "0.25", "0"])
def test_noise_by_number(number):
    depth = plane()
    assert noise_map(number, depth, everywhere(depth)).equal(torch.full_like(depth, float(number)))


def test_noise_by_map():
    depth = plane()
    given = normal(1, 1, *SIZE).abs().double()
    found = noise_map(given, depth, everywhere(depth))
    assert found.dtype == depth.dtype
    assert found.equal(given.float())


@pytest.mark.parametrize("wrong", ["kinect", "", "-1", "nan", "inf", -0.5, float("nan"), float("inf")])
def test_wrong_noise_is_named(wrong):
    depth = plane()
    with pytest.raises(InputError, match=r"^noise: "):
        noise_map(wrong, depth, everywhere(depth))


def test_unknown_sensors_list_the_known():
    depth = plane()
    with pytest.raises(InputError, match="'kinect' is neither a number nor one of auto, middlebury"):
        noise_map("kinect", depth, everywhere(depth))


def test_a_map_of_another_size_is_refused():
    depth = plane()
    with pytest.raises(InputError, match="noise"):
        noise_map(torch.ones(1, 1, 3, 4), depth, everywhere(depth))


def room(height=96, width=128):
    """(1, 1, h, w): a floor and a wall in perspective, a ball, a box, and a fence of posts."""
    y, x = torch.meshgrid(torch.linspace(-0.6, 0.6, height), torch.linspace(-0.8, 0.8, width), indexing="ij")
    z = torch.minimum(torch.full_like(x, 4.0) / (1 + 0.2 * x), 1.2 / y.clamp_min(1e-3))
    ball = (x + 0.3) ** 2 + (y + 0.1) ** 2
    z = torch.where(ball < 0.06, 2.0 - (0.06 - ball).clamp_min(0).sqrt(), z)
    z = torch.where((x > 0.2) & (x < 0.5) & (y > -0.2) & (y < 0.2), 1.5 + x, z)
    posts = (x > 0.55) & (torch.remainder(30 * x, 2) < 1)
    return torch.where(posts, 1.2 + 0 * z, z)[None, None]


LEVELS = (0.001, 0.0025, 0.006, 0.016, 0.04, 0.1)
MODELS = {"constant": 0.0, "square": 2.0, "inverse": -1.0}


@pytest.mark.parametrize("power", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("level", LEVELS)
def test_noise_of_a_scene_is_found_at_every_level_and_for_every_model(level, power):
    """Level is sigma at the median depth, in parts of the depth's range."""
    truth = room()
    shape = truth / truth.median()
    sigma = level * float(truth.max() - truth.min()) * shape**power
    depth = truth + sigma * normal(*truth.shape)
    ratio = noise_map("auto", depth, everywhere(depth)) / sigma
    assert 0.8 < float(ratio.median()) < 1.2
    assert float((ratio - 1).abs().median()) < 0.2


# The method stays the same when its defaults are chosen anew: what is tested is the estimate of the noise.
FIXED = {"lam": 44.1, "growth": 0.0, "contrast": 0.0, "iterations": 60, "coarse_iterations": 40}


@pytest.mark.parametrize("power", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("level", [0.0025, 0.016, 0.04])
def test_a_result_is_as_good_with_estimated_noise_as_with_the_true_one(level, power):
    """Up to 4 % of the range; above, who does not know the true depth cannot weigh the samples as well."""
    truth = room()
    low = resample(truth, (48, 64))
    sigma = level * float(truth.max() - truth.min()) * (low / low.median()) ** power
    depth = (low + sigma * normal(*low.shape)).clamp_min(0.05)
    guide = (0.1 + 0.2 * truth) * (1 + 0.02 * normal(*truth.shape, seed=5))
    method = create("nlh-l2", FIXED)
    error = [
        float(
            (method(Frame(depth, everywhere(depth), guide.clamp(0, 1), None, each)).depth - truth)
            .square()
            .mean()
            .sqrt()
        )
        for each in (sigma, noise_map("auto", depth, everywhere(depth)))
    ]
    assert error[1] < 1.05 * error[0]


def clutter(seed, size=64, side=8):
    """(1, 1, h, w): a wall at 2 m behind and before a hundred squares, 1 to 3 m away."""
    random = torch.Generator().manual_seed(seed)
    depth = torch.full((1, 1, size, size), 2.0)
    for _ in range(100):
        top, left = torch.randint(0, size - side, (2,), generator=random).tolist()
        depth[..., top : top + side, left : left + side] = 1.0 + 2.0 * torch.rand(1, generator=random)
    return depth


def test_edges_that_noise_nearly_hides_do_not_count_as_noise():
    depth = torch.cat([clutter(seed) + 0.2 * normal(1, 1, 64, 64, seed=seed) for seed in range(6)])
    found = estimate_sigma(depth, depth > 0).flatten(1).median(dim=1).values
    assert float(found.mean()) == pytest.approx(0.2, rel=0.07)


def test_the_density_of_edges_sums_to_one_and_falls_as_it_says():
    """Against the sum over u of its definition, f(t - u) e^(-c u / T), f of six degrees of freedom."""
    t, span = torch.linspace(-12.0, 12.0, 2401, dtype=torch.float64), torch.tensor(4.0, dtype=torch.float64)
    u = torch.linspace(0.0, 4.0, 4001, dtype=torch.float64)
    x = t[:, None] - u
    surface = 13.5 * torch.exp(3.0 * (x - x.exp()))
    for fall in (0.0, 2.0):
        weight = torch.exp(-fall * u / span)
        expected = torch.trapezoid(surface * weight, u, dim=1) / torch.trapezoid(weight, u)
        found = _edges(t, span, fall)
        assert float(torch.trapezoid(found, t)) == pytest.approx(1.0, abs=1e-5)
        assert (found - expected).abs().max() < 1e-6


@pytest.mark.parametrize("sigma", [0.0001, 0.0003, 0.001, 0.004])
def test_what_the_stored_steps_hide_counts_as_their_rounding(sigma):
    step = 0.001
    depth = ((room() + sigma * normal(1, 1, 96, 128)) / step).round() * step
    found = float(estimate_sigma(depth, everywhere(depth)).median())
    assert found == pytest.approx((sigma**2 + step**2 / 12) ** 0.5, rel=0.2)


def test_large_maps_are_sampled():
    depth = 2.0 + 0.01 * normal(1, 1, 600, 800)
    assert float(estimate_sigma(depth, everywhere(depth)).median()) == pytest.approx(0.01, rel=0.06)


def test_nothing_but_steps_between_flat_parts_is_no_noise():
    depth = torch.ones(1, 1, 40, 40)
    depth[..., 20:] = 3.0
    assert float(noise_map("auto", depth, everywhere(depth)).max()) < 0.01


class TestSharedNoise:
    """A camera that smooths or enlarges its map gives neighbours the same error."""

    def noise(self, side, seed=0):
        random = torch.Generator().manual_seed(seed)
        return 0.01 * torch.randn((1, 1, side, side), generator=random)

    def plane(self, side):
        y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
        return (2.0 + 0.3 * x - 0.2 * y)[None, None]

    def estimate(self, depth):
        return float(estimate_sigma(depth, depth > 0).median())

    def test_independent_noise_is_what_it_is(self):
        assert self.estimate(self.plane(256) + self.noise(256)) == pytest.approx(0.01, rel=0.1)

    def test_noise_of_a_map_enlarged_four_times_counts_four_times(self):
        """The mean over n independent samples and the enlarged ones below them has one error."""
        low = self.noise(64)
        enlarged = torch.nn.functional.interpolate(low, scale_factor=4, mode="bilinear")
        assert 0.015 < self.estimate(self.plane(256) + enlarged) < 0.06  # 0.0002 by its neighbours alone

    def test_a_small_map_is_taken_as_it_is(self):
        low = torch.nn.functional.interpolate(self.noise(16), scale_factor=4, mode="bilinear")
        assert self.estimate(self.plane(64) + low) < 0.01
