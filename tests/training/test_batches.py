"""Batches: fixed by their place, noise as loud as they say, one unit for inputs and truth."""

import pytest
import torch
from toy_runs import recipe

from primaldepth.core.errors import InputError
from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.training.batches import _choice, draw_batch
from primaldepth.training.run import check_recipe

NO_JITTER = {"jitter": 0.0}


@pytest.fixture(scope="module")
def scenes(shards):
    return Scenes.load(Shards(shards))


def flat(depth=1.0, size=64):
    """A wall that faces the camera: the smallest disparity everywhere."""
    return Scenes(torch.full((1, size, size), depth), torch.full((1, size, size, 3), 90, dtype=torch.uint8))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.tensors().values(), b.tensors().values(), strict=True))


class TestPlace:
    def test_the_same_place_gives_the_same_batch(self, scenes):
        assert same(*(draw_batch(scenes, recipe(), 3, 16, (0, 5, 0)) for _ in range(2)))

    @pytest.mark.parametrize("place", [(1, 5, 0), (0, 6, 0), (0, 5, 1)])
    def test_another_place_gives_another(self, scenes, place):
        assert not same(*(draw_batch(scenes, recipe(), 3, 16, at) for at in ((0, 5, 0), place)))

    def test_another_seed_gives_another(self, scenes):
        assert not same(*(draw_batch(scenes, recipe(seed=seed), 3, 16, (0, 5, 0)) for seed in (0, 1)))

    def test_global_randomness_plays_no_part(self, scenes):
        before = torch.random.get_rng_state()
        draw_batch(scenes, recipe(), 3, 16, (0, 0, 0))
        assert torch.equal(torch.random.get_rng_state(), before)

    def test_shares_make_up_the_batch(self, scenes):
        whole = draw_batch(scenes, recipe(), 4, 16, (0, 0, 0))
        shares = [whole.part(slice(start, start + 2)).tensors() for start in (0, 2)]
        for name, value in whole.tensors().items():
            assert torch.equal(torch.cat([share[name] for share in shares]), value)


class TestNoise:
    @pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
    def test_samples_are_as_noisy_as_sigma_says(self, gain):
        wanted = recipe(
            data={**NO_JITTER, "far": (100.0, 110.0), "near": (200.0, 220.0), "noise": (gain, gain)}, scale=1
        )
        batch = draw_batch(flat(), wanted, 8, 64, (0, 0, 0))
        depth, sigma, trust = batch.maps[:3]
        ratio = (depth - batch.truth) / sigma
        assert float(ratio.std()) == pytest.approx(1.0, rel=0.03)
        assert abs(float(ratio.mean())) < 0.03
        assert (trust == 1).all()
        # in pixels: 651 / d, rounding to whole disparities adds 1 / 12 to the variance
        noise = (depth - batch.truth) * batch.unit
        expected = ((gain * 651.0 / 105.0) ** 2 + 1 / 12) ** 0.5
        assert float(noise.std()) == pytest.approx(expected, rel=0.05)

    def test_levels_are_drawn_between_the_ends(self):
        wanted = recipe(data={**NO_JITTER, "noise": (0.25, 4.0)}, scale=1)
        batch = draw_batch(flat(), wanted, 300, 16, (0, 0, 0))
        disparity = 55.0  # the middle of far
        gains = (batch.maps[1] * batch.unit).mean((1, 2, 3)) * disparity / 651.0
        assert 0.2 < float(gains.min()) < 0.3
        assert 3.0 < float(gains.max()) < 5.0
        assert float(gains.log().mean()) == pytest.approx(0.0, abs=0.15)  # log-uniform

    def test_every_step_has_fresh_noise(self):
        first, second = (draw_batch(flat(), recipe(scale=1), 1, 64, (0, step, 0)).maps[0] for step in (0, 1))
        assert abs(float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1])) < 0.06


class TestUnits:
    def test_truth_times_unit_is_in_pixels_of_disparity(self, scenes):
        batch = draw_batch(scenes, recipe(data=NO_JITTER), 16, 32, (0, 0, 0))
        for truth, valid, unit in zip(batch.truth, batch.valid, batch.unit, strict=True):
            reach = truth[valid] * unit
            assert 40.0 <= float(reach.max() - reach.min()) <= 70.0  # from far, 50 to 60, to near, 100 to 120

    def test_metric_errors_are_in_centimetres(self, scenes):
        wanted = recipe(data={**NO_JITTER, "sensor": "tof-v1"})
        batch = draw_batch(scenes, wanted, 16, 32, (0, 0, 0))
        for truth, valid, unit in zip(batch.truth, batch.valid, batch.unit, strict=True):
            reach = (
                truth[valid] * unit
            )  # the box is 1.25 m away, the wall between 2 and 3.4; times 0.7 to 1.4
            assert 0.7 * 75.0 <= float(reach.max() - reach.min()) <= 1.4 * 215.0

    def test_the_scene_is_normalised_to_centre_0_and_spread_1(self, scenes):
        batch = draw_batch(scenes, recipe(data=NO_JITTER), 16, 32, (0, 0, 0))  # whole scenes
        for truth, valid in zip(batch.truth, batch.valid, strict=True):
            low, middle, high = torch.quantile(truth[valid], torch.tensor([0.05, 0.5, 0.95]))
            assert float(middle) == pytest.approx(0.0, abs=1e-3)
            assert float(high - low) == pytest.approx(2.0, rel=1e-3)

    def test_jitter_changes_the_normalisation_but_not_the_scene(self, scenes):
        still, moved = (draw_batch(scenes, recipe(data={"jitter": j}), 8, 32, (0, 0, 0)) for j in (0.0, 0.2))
        ratio = moved.unit / still.unit
        assert (ratio.log().abs() <= 0.2 + 1e-6).all()
        assert float(ratio.std()) > 0.05
        shift = moved.truth * ratio - still.truth  # one number for each image
        assert (shift.amax((1, 2, 3)) - shift.amin((1, 2, 3)) < 1e-4).all()
        assert (shift.abs().amax((1, 2, 3)) <= 0.2 * 1.23).all()

    def test_what_is_not_known_is_not_trusted(self, scenes):
        batch = draw_batch(scenes, recipe(), 16, 32, (0, 0, 0))
        assert not batch.valid.all()
        assert float(batch.maps[2][~batch.valid].mean()) < 0.5
        assert all(torch.isfinite(image).all() for image in batch.maps.tensors())


class TestMixture:
    MIX = ({"sensor": "middlebury-noisy-v1", "share": 3.0}, {"sensor": "tof-v1", "share": 1.0})

    def test_every_sensor_and_scale_gets_its_share(self):
        wanted = recipe(data={"mix": self.MIX}, scale=(2, 3, 4))
        seen = [_choice(wanted, (0, step, 0)) for step in range(1200)]
        noisy = sum(mix.sensor == "middlebury-noisy-v1" for mix, _ in seen) / len(seen)
        assert noisy == pytest.approx(0.75, abs=0.05)
        for scale in (2, 3, 4):
            assert sum(found == scale for _, found in seen) / len(seen) == pytest.approx(1 / 3, abs=0.05)

    def test_a_sensor_may_have_scales_of_its_own(self):
        first, second = self.MIX
        wanted = recipe(data={"mix": (first, {**second, "scale": (4,)})}, scale=(2, 3, 4))
        seen = [_choice(wanted, (0, step, 0)) for step in range(200)]
        assert {scale for mix, scale in seen if mix.sensor == "tof-v1"} == {4}
        assert {scale for mix, scale in seen if mix.sensor != "tof-v1"} == {2, 3, 4}

    def test_a_step_has_one_scale_and_says_which(self, scenes):
        wanted = recipe(data={"mix": self.MIX}, scale=(2, 3, 4))
        for step in range(6):
            batch, (_, scale) = draw_batch(scenes, wanted, 2, 16, (0, step, 0)), _choice(wanted, (0, step, 0))
            assert batch.truth.shape[-1] == 16 // scale * scale
            assert torch.allclose(torch.exp2(batch.maps[4]), torch.tensor(float(scale)))

    def test_balance_makes_errors_of_large_scales_count_less(self, scenes):
        plain, balanced = (
            draw_batch(scenes, recipe(data={"balance": balance}, scale=4), 2, 16, (0, 0, 0)).unit
            for balance in (0.0, 0.5)
        )
        assert torch.allclose(plain, 2.0 * balanced)

    def test_holes_are_not_trusted(self, scenes):
        whole, holey = (
            draw_batch(scenes, recipe(data={"holes": share}), 4, 32, (0, 0, 0)).maps[2]
            for share in (0.0, 1.0)
        )
        assert float(holey.mean()) < float(whole.mean()) - 0.05

    def test_false_samples_are_those_of_the_sensor_that_has_them(self, scenes):
        mix = {"sensor": "metric-gaussian-v1"}
        true, few, again = (
            draw_batch(scenes, recipe(data={"mix": [each]}), 40, 32, (0, 0, 0))
            for each in (mix, {**mix, "false": 1.0}, {**mix, "false": 0.0})
        )
        assert same(true, again)
        assert torch.equal(true.truth, few.truth)
        assert 0.02 < float((true.maps[0] != few.maps[0]).float().mean()) < 0.9

    def test_a_unet_sees_colours(self, scenes):
        net = {"backbone": "unet", "widths": (8, 8), "blocks": (0, 0), "window": 3, "iterations": 1}
        assert draw_batch(scenes, recipe(net=net), 2, 16, (0, 0, 0)).maps[3].shape == (2, 3, 16, 16)


class TestTimeOfFlight:
    """Of a wall, of which the left half is dark."""

    def sigma(self, **changes):
        wall = flat(1.0)
        wall.image[:, :, :32], wall.image[:, :, 32:] = 60, 220
        data = {**NO_JITTER, "gamma": 0.0, "contrast": 0.0, "grain": 0.0, "turn": False}
        mix = [{"sensor": "tof-v1", **changes}]
        batch = draw_batch(wall, recipe(data={**data, "mix": mix}, scale=1), 40, 64, (0, 0, 0))
        return (batch.maps[1] * batch.unit)[:, 0]

    def test_noise_is_louder_on_dark_surfaces_if_these_are_wanted(self):
        white, lit = (self.sigma(albedo=albedo) for albedo in (False, True))
        assert torch.allclose(white[..., :30].mean((1, 2)), white[..., 34:].mean((1, 2)), rtol=0.05)
        assert (lit[..., :30].mean((1, 2)) > 1.3 * lit[..., 34:].mean((1, 2))).all()
        assert (lit[..., 34:].mean((1, 2)) > white[..., 34:].mean((1, 2))).all()

    def test_a_share_of_the_patches_is_told_one_noise(self):
        varied = self.sigma(albedo=True)
        told = self.sigma(albedo=True, plain=0.5)
        plain = told.flatten(1).std(1) < 1e-4 * told.flatten(1).mean(1)
        assert 0.2 < float(plain.float().mean()) < 0.8
        assert torch.equal(told[~plain], varied[~plain])
        assert torch.allclose(told[plain].mean((1, 2)), varied[plain].square().mean((1, 2)).sqrt(), rtol=1e-3)


STEREO = {"sensor": "stereo-v1", "noise": (0.01, 0.01)}


class TestDrawnSensors:
    def batch(self, step, **changes):
        mix = [{**STEREO, **changes}]
        return draw_batch(flat(), recipe(data={**NO_JITTER, "mix": mix}), 2, 32, (0, step, 0))

    def test_parameters_are_drawn_for_every_batch(self):
        noise = [
            {
                float((batch.maps[1] * batch.unit).amax())
                for batch in (self.batch(step, drawn=drawn) for step in range(4))
            }
            for drawn in (False, True)
        ]
        spread = [max(each) / min(each) for each in noise]
        assert spread[1] > 2 * spread[0]

    def test_the_same_place_draws_the_same_parameters(self):
        assert same(*(self.batch(3, drawn=True) for _ in range(2)))
        assert not same(*(self.batch(3, drawn=drawn) for drawn in (False, True)))

    def test_dark_surfaces_are_holes_if_these_are_wanted(self):
        wall = flat(1.0)
        wall.image[:, :, :24], wall.image[:, :, 24:] = 1, 200
        data = {**NO_JITTER, "gamma": 0.0, "contrast": 0.0, "grain": 0.0, "turn": False}
        white, lit = (
            draw_batch(
                wall, recipe(data={**data, "mix": [{**STEREO, "albedo": albedo}]}), 4, 64, (0, 0, 0)
            ).maps[2]
            for albedo in (False, True)
        )
        assert float(white[..., :16].mean()) > 0.95
        assert float(lit[..., :16].mean()) < 0.3
        assert float(lit[..., 36:].mean()) > 0.95

    def test_confidence_is_not_told_in_a_share_of_the_patches(self, scenes):
        trust = [
            draw_batch(
                scenes, recipe(data={"mix": [{"sensor": "lidar-v2", "silent": share}]}), 40, 32, (0, 0, 0)
            ).maps[2]
            for share in (0.0, 0.5, 1.0)
        ]
        silent = (trust[1] == trust[2]).flatten(1).all(1)
        told = (trust[1] == trust[0]).flatten(1).all(1)
        assert (silent | told).all()
        assert 0.2 < float(silent.float().mean()) < 0.8
        assert float(trust[2].mean()) > float(trust[0].mean()) + 0.02


class TestBlend:
    MIX = ({"sensor": "middlebury-noisy-v1"}, {"sensor": "tof-v1", "weight": 0.25})

    def wanted(self, **changes):
        return recipe(data={"mix": self.MIX, "blend": 4, **changes}, scale=(2, 4, 8))

    def test_every_slice_has_some_of_each_part(self, scenes):
        batch = draw_batch(scenes, self.wanted(), 16, 32, (0, 1, 0))
        ratios = batch.maps[4].flatten().view(4, 4)
        assert (ratios == ratios[0]).all()
        assert len(ratios[0].unique()) > 1

    def test_the_weight_of_a_sensor_multiplies_its_errors(self, scenes):
        one, quarter = (
            draw_batch(
                scenes,
                recipe(data={"mix": [{"sensor": "tof-v1", "weight": weight}]}, scale=4),
                2,
                32,
                (0, 0, 0),
            )
            for weight in (1.0, 0.25)
        )
        assert torch.equal(0.25 * one.unit, quarter.unit)
        assert torch.equal(one.truth, quarter.truth)

    def test_a_patch_that_does_not_fit_every_scale_is_named(self):
        stages = [{"part": "fcn", "steps": 1, "batch": 4, "patch": 20}]
        with pytest.raises(InputError, match="20 is not a multiple of the scale 8"):
            check_recipe(recipe(data={"blend": 4}, scale=(2, 4, 8), stages=stages), 1)

    def test_a_scale_of_a_sensor_that_the_recipe_does_not_have_is_named(self):
        with pytest.raises(InputError, match=r"data.mix: scale 3 is not one of the recipe's"):
            check_recipe(recipe(data={"mix": [{"sensor": "tof-v1", "scale": (2, 3)}]}, scale=(2, 4)), 1)

    def test_a_batch_that_has_no_equal_parts_is_refused(self):
        stages = [{"part": "fcn", "steps": 1, "batch": 6, "patch": 16}]
        with pytest.raises(InputError, match=r"batch 6 cannot be shared out evenly to .* 4 kinds"):
            check_recipe(recipe(data={"blend": 4}, scale=(2, 4, 8), stages=stages), 1)


class TestOverlay:
    def test_another_picture_shines_through_in_some(self, scenes):
        plain, laid = (draw_batch(scenes, recipe(data={"overlay": x}), 16, 16, (0, 0, 0)) for x in (0.0, 0.8))
        assert torch.equal(plain.maps[0], laid.maps[0])
        changed = (plain.maps[3] != laid.maps[3]).flatten(1).any(1)
        assert 2 <= int(changed.sum()) <= 14
