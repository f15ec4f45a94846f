"""Patches: disparities in their range, planes stay planes, depth and image stay together, statistics."""

import math

import numpy as np
import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.data.patches import QUANTILES, Scenes, Variation

SIZE = 24
STILL = Variation(far=(40.0, 60.0), near=(150.0, 200.0), gamma=0.0, contrast=0.0, grain=0.0, turn=False)


def scenes(count=4, size=(30, 40), *, holes=True, seed=0):
    """Rough depth between 1 and 3 m; the image is a function of the depth, 0 where nothing was hit."""
    rng = np.random.default_rng(seed)
    depth = rng.uniform(1.0, 3.0, (count, *size)).astype(np.float32)
    if holes:
        depth[rng.random(depth.shape) < 0.1] = 0.0
    image = np.repeat(np.rint(80.0 * depth).astype(np.uint8)[..., None], 3, axis=-1)
    return Scenes(torch.from_numpy(depth), torch.from_numpy(image))


def random(seed=0):
    return torch.Generator().manual_seed(seed)


def spans(values, valid):
    """Smallest and largest valid value of each image."""
    return [(float(d[v].min()), float(d[v].max())) for d, v in zip(values, valid, strict=True)]


class TestDisparity:
    def test_a_whole_scene_spans_the_drawn_range(self):
        patches = scenes(size=(SIZE, SIZE)).draw(50, SIZE, random(), STILL)
        ends = spans(patches.depth, patches.valid)
        assert all(40 - 1e-3 <= low <= 60 + 1e-3 and 150 - 1e-3 <= high <= 200 + 1e-3 for low, high in ends)
        lows, highs = np.array(ends).T
        assert np.ptp(lows) > 15  # drawn anew for every patch, over the whole range
        assert np.ptp(highs) > 35

    def test_a_patch_stays_within_the_range_of_its_scene(self):
        patches = scenes().draw(50, 8, random(), STILL)
        assert all(
            40 - 1e-3 <= low <= high <= 200 + 1e-3 for low, high in spans(patches.depth, patches.valid)
        )

    def test_a_plane_stays_a_plane(self):
        y, x = torch.meshgrid(torch.arange(30.0), torch.arange(40.0), indexing="ij")
        inverse = 0.4 + 0.003 * x - 0.005 * y  # 1 / z of a plane is affine in the pixel
        image = torch.zeros(1, 30, 40, 3, dtype=torch.uint8)
        patch = Scenes((1.0 / inverse)[None], image).draw(5, SIZE, random(), Variation()).depth
        for dim in (-1, -2):
            assert patch.diff(n=2, dim=dim).abs().max() < 1e-3
            assert patch.diff(dim=dim).abs().min() > 0.1

    def test_a_scene_of_one_depth(self):
        flat = Scenes(torch.full((1, SIZE, SIZE), 2.0), torch.zeros(1, SIZE, SIZE, 3, dtype=torch.uint8))
        patches = flat.draw(8, SIZE, random(), STILL)
        assert torch.equal(patches.depth, patches.centre.expand_as(patches.depth))
        assert (patches.spread > 0).all()

    def test_centre_and_spread_are_those_of_the_scene(self):
        source = scenes(1, (SIZE, SIZE))
        patches = source.draw(3, SIZE, random(), STILL)
        for depth, valid, centre, spread in zip(
            patches.depth, patches.valid, patches.centre, patches.spread, strict=True
        ):
            low, middle, high = np.quantile(depth[valid].double().numpy(), QUANTILES)
            assert float(centre) == pytest.approx(middle, rel=1e-4)
            assert float(spread) == pytest.approx((high - low) / 2, rel=1e-4)


class TestMetres:
    def test_a_factor_between_0_7_and_1_4_for_each_patch(self):
        source = scenes(1, (SIZE, SIZE))
        patches = source.draw(40, SIZE, random(), STILL, "z")
        ratio = patches.depth / source.depth
        factors = [float(one[valid].mean()) for one, valid in zip(ratio, patches.valid, strict=True)]
        for one, valid, factor in zip(ratio, patches.valid, factors, strict=True):
            assert torch.allclose(one[valid], torch.tensor(factor), rtol=1e-5)
        assert 0.7 - 1e-4 <= min(factors) < 0.75
        assert 1.3 < max(factors) <= 1.4 + 1e-4

    def test_centre_and_spread_are_those_of_the_scene(self):
        patches = scenes(1, (SIZE, SIZE)).draw(3, SIZE, random(), STILL, "z")
        for depth, valid, centre, spread in zip(
            patches.depth, patches.valid, patches.centre, patches.spread, strict=True
        ):
            low, middle, high = np.quantile(depth[valid].double().numpy(), QUANTILES)
            assert float(centre) == pytest.approx(middle, rel=1e-2)  # quantiles of 1 / z, interpolated there
            assert float(spread) == pytest.approx((high - low) / 2, rel=1e-2)


@pytest.mark.parametrize("kind", ["disparity", "z"])
class TestBothKinds:
    def test_valid_is_where_something_was_hit(self, kind):
        patches = scenes().draw(20, SIZE, random(), STILL, kind)
        assert torch.equal(patches.valid, patches.guide > 0.01)
        assert 0.05 < 1.0 - float(patches.valid.float().mean()) < 0.15
        assert torch.isfinite(patches.depth).all()

    def test_depth_and_image_are_turned_alike(self, kind):
        turned = Variation(far=STILL.far, near=STILL.near, gamma=0.0, contrast=0.0, grain=0.0, turn=True)
        patches = scenes(size=(SIZE, SIZE)).draw(60, SIZE, random(), turned, kind)
        for depth, valid, guide in zip(patches.depth, patches.valid, patches.guide, strict=True):
            assert torch.equal(valid, guide > 0.01)
            z = depth[valid] if kind == "z" else -depth[valid]  # the image is brighter where z is larger
            assert np.corrcoef(z.argsort().argsort(), guide[valid].argsort().argsort())[0, 1] > 0.99

    def test_the_generator_decides_everything(self, kind):
        source = scenes()
        first, again, other = (source.draw(6, SIZE, random(seed), Variation(), kind) for seed in (1, 1, 2))
        for name in first.__slots__:
            assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(first.depth, other.depth)

    def test_a_scene_where_nothing_was_hit(self, kind):
        empty = Scenes(torch.zeros(1, SIZE, SIZE), torch.zeros(1, SIZE, SIZE, 3, dtype=torch.uint8))
        patches = empty.draw(2, SIZE, random(), Variation(), kind)
        assert not patches.valid.any()
        assert torch.isfinite(patches.depth).all()
        assert (patches.spread > 0).all()


class TestTurns:
    def test_all_eight_ways_occur_and_no_other(self):
        source = scenes(1, (SIZE, SIZE), holes=False)
        turned = Variation(far=STILL.far, near=STILL.near, gamma=0.0, contrast=0.0, grain=0.0, turn=True)
        upright = source.image[0, ..., 0].float() / 255.0
        ways = [torch.rot90(image, k) for image in (upright, upright.T) for k in range(4)]
        seen = set()
        for guide in source.draw(100, SIZE, random(), turned).guide[:, 0]:
            found = [index for index, way in enumerate(ways) if torch.allclose(guide, way)]
            assert len(found) == 1
            seen.update(found)
        assert seen == set(range(8))


class TestImage:
    def test_it_is_the_mean_of_the_channels(self):
        image = torch.tensor([0, 51, 204], dtype=torch.uint8).expand(1, SIZE, SIZE, 3)
        patches = Scenes(torch.ones(1, SIZE, SIZE), image).draw(1, SIZE, random(), STILL)
        assert torch.allclose(patches.guide, torch.tensor(1.0 / 3.0))

    def test_some_images_are_moved(self):
        """The image is a function of the depth: where it is not, it was moved."""
        moving = STILL.model_copy(update={"shift": 1, "shifted": 0.25})
        patches = scenes(holes=False).draw(400, 8, random(), moving, "z")
        truth = patches.depth / patches.centre  # metres up to one factor for each patch
        image = patches.guide / patches.guide.amax((1, 2, 3), keepdim=True)
        moved = (truth / truth.amax((1, 2, 3), keepdim=True) - image).abs().amax((1, 2, 3)) > 0.05
        assert 0.25 * 8 / 9 - 0.08 < moved.float().mean() < 0.25 * 8 / 9 + 0.08  # one of nine moves is none

    def test_gamma(self):
        image = torch.full((1, SIZE, SIZE, 3), 51, dtype=torch.uint8)
        bent = Variation(far=STILL.far, near=STILL.near, gamma=0.5, contrast=0.0, grain=0.0, turn=False)
        guide = Scenes(torch.ones(1, SIZE, SIZE), image).draw(200, SIZE, random(), bent).guide[:, 0, 0, 0]
        exponents = torch.log(torch.log(guide) / math.log(0.2))
        assert exponents.abs().max() < 0.5 + 1e-4
        assert exponents.min() < -0.45 and exponents.max() > 0.45  # noqa: PT018

    def test_contrast_and_brightness_stay_in_range(self):
        strong = Variation(far=STILL.far, near=STILL.near, gamma=0.4, contrast=1.0, grain=0.5, turn=True)
        guide = scenes().draw(20, SIZE, random(), strong).guide
        assert guide.min() >= 0.0
        assert guide.max() <= 1.0
        assert guide.unique().numel() > 1000

    def test_grain_is_drawn_up_to_its_level(self):
        image = torch.full((1, SIZE, SIZE, 3), 128, dtype=torch.uint8)
        grainy = Variation(far=STILL.far, near=STILL.near, gamma=0.0, contrast=0.0, grain=0.05, turn=False)
        guide = Scenes(torch.ones(1, SIZE, SIZE), image).draw(1000, SIZE, random(), grainy).guide
        levels = guide.flatten(1).std(dim=1)
        assert levels.max() == pytest.approx(0.05, rel=0.1)
        assert levels.mean() == pytest.approx(0.025, rel=0.05)


class TestStatistics:
    def test_against_direct_quantiles_of_the_inverse(self):
        source = scenes()
        for depth, found in zip(source.depth, source.statistics, strict=True):
            inverse = 1.0 / depth[depth > 0].double().numpy()
            np.testing.assert_allclose(found, np.quantile(inverse, [0.0, *QUANTILES, 1.0]), rtol=1e-5)

    def test_extremes_of_a_large_scene_are_exact(self):
        depth = torch.full((1, 1050, 1050), 2.0)
        depth[0, 0, 1], depth[0, 0, 3] = 1.0, 4.0  # between the samples that the quantiles are taken of
        source = Scenes(depth, torch.zeros(1, 1050, 1050, 3, dtype=torch.uint8))
        assert source.statistics[0].tolist() == [0.25, 0.5, 0.5, 0.5, 1.0]


class TestErrors:
    def test_patches_larger_than_the_scenes(self):
        with pytest.raises(InputError, match=r"patch size 31 is larger than the scenes, \(30, 40\)"):
            scenes().draw(1, 31, random(), STILL)

    def test_arrays_that_do_not_fit(self):
        with pytest.raises(InputError, match="do not fit"):
            Scenes(torch.ones(2, 4, 4), torch.zeros(2, 4, 5, 3, dtype=torch.uint8))
        with pytest.raises(InputError, match="render at least one"):
            Scenes(torch.ones(0, 4, 4), torch.zeros(0, 4, 4, 3, dtype=torch.uint8))
