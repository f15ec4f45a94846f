"""Samples that stand alone are gathered; a dense map, with or without large holes, is left alone."""

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.measurement.noise_estimate import estimate_sigma
from primaldepth.methods import create
from primaldepth.methods.holes import measured_mask
from primaldepth.methods.sparse import gathered


def sparse_frame(step=5, size=(60, 80)):
    """One sample in every step x step cell of a slanted wall, garbage elsewhere."""
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    depth = (2.0 + 0.01 * x + 0.005 * y)[None, None]
    valid = ((y % step == step // 2) & (x % step == step // 2))[None, None]
    sigma = torch.full_like(depth, 0.02)
    return Frame(torch.where(valid, depth, torch.nan), valid, torch.rand(1, 3, *size), sigma=sigma), depth


def test_one_sample_a_cell():
    """Planes through the samples of a slanted wall give its depth at the centres of cells."""
    frame, depth = sparse_frame()
    found = gathered(frame)
    assert found.low_size == (12, 16)
    assert found.valid.all()
    inner = (..., slice(1, -1), slice(1, -1))
    torch.testing.assert_close(found.depth[inner], depth[..., 2::5, 2::5][inner], atol=2e-3, rtol=0.0)


def test_cells_without_a_sample_are_on_the_plane_of_the_others():
    """Scattered at random, a third of the cells has no sample; means over cells would be off by 2 cm."""
    _, depth = sparse_frame()
    random = torch.Generator().manual_seed(0)
    valid = torch.rand(depth.shape, generator=random) < 1 / 25
    found = gathered(Frame(depth, valid, torch.zeros(1, 3, 60, 80), sigma=torch.full_like(depth, 0.01)))
    h, w = found.low_size
    y, x = torch.meshgrid((torch.arange(h) + 0.5) * 60 / h, (torch.arange(w) + 0.5) * 80 / w, indexing="ij")
    wall = 2.0 + 0.01 * (x - 0.5) + 0.005 * (y - 0.5)
    assert found.valid.float().mean() > 0.95
    assert float((found.depth[0, 0] - wall)[found.valid[0, 0]].abs().mean()) < 0.006


def test_spread_around_a_plane_counts_as_noise():
    """Cells at a step are less sure than those on either side."""
    frame, _ = sparse_frame()
    depth = torch.where(torch.arange(80) < 40, 2.0, 3.0).expand(1, 1, 60, 80)
    found = gathered(Frame(depth, frame.valid, frame.guide, sigma=frame.sigma))
    assert float(found.sigma[..., 7:9].min()) > 0.1
    assert float(found.sigma[..., :4].max()) < 0.02


@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_dense_maps_stay(share):
    frame, depth = sparse_frame()
    valid = torch.ones_like(frame.valid)
    valid[..., : int(share * 80)] = False
    frame = Frame(depth, valid, frame.guide)
    assert gathered(frame) is frame


def test_random_holes_of_half_the_samples_are_no_reason():
    frame, depth = sparse_frame()
    valid = torch.rand(depth.shape, generator=torch.Generator().manual_seed(0)) > 0.5
    assert gathered(Frame(depth, valid, frame.guide)).low_size == (60, 80)


@pytest.mark.parametrize("name", ["fcn-pdn-s", "pdn-any"])
def test_networks_follow_them(name):
    frame, depth = sparse_frame()
    found = create(name)(frame)
    assert found.measured.all()
    assert float((found.depth - depth).abs().mean()) < 0.05


@pytest.mark.parametrize("name", ["bilinear", "fcn-pdn-s", "pdn-any"])
def test_an_image_of_a_batch_is_as_alone(name):
    """One with lone samples beside a dense one, and one whose samples stand farther apart."""
    frames = [sparse_frame(step)[0] for step in (5, 8)]
    dense, depth = sparse_frame()
    frames.append(Frame(depth, torch.ones_like(dense.valid), dense.guide, sigma=dense.sigma))
    names = ("depth", "valid", "guide")
    maps = {each: torch.cat([getattr(frame, each) for frame in frames]) for each in names}
    maps["sigma"] = estimate_sigma(maps["depth"], maps["valid"])
    found = create(name)(batch := Frame(**maps))
    for index, image in enumerate(batch.images()):
        torch.testing.assert_close(image.sigma, estimate_sigma(image.depth, image.valid))
        alone = create(name)(image)
        torch.testing.assert_close(found.depth[index : index + 1], alone.depth)
        assert torch.equal(found.measured[index : index + 1], alone.measured)


@pytest.mark.parametrize("seen", [slice(0, 1), slice(0, 2), slice(5, 6)])
@pytest.mark.parametrize("size", [(8, 8), (24, 32)])
def test_a_few_samples_of_a_small_map_do_not_measure_all_of_it(seen, size):
    valid = torch.zeros(1, 1, *size, dtype=torch.bool)
    valid[0, 0, seen, seen] = True
    frame = Frame(torch.ones(1, 1, *size), valid, torch.zeros(1, 1, 4 * size[0], 4 * size[1]))
    share = float(measured_mask(frame).float().mean())
    assert 1 / valid.numel() <= share <= 4 / 64


def test_a_gap_of_several_distances_is_not_measured_and_a_single_missing_sample_is():
    frame, _ = sparse_frame()
    missing = frame.valid.clone()
    ys, xs = torch.nonzero(missing[0, 0], as_tuple=True)
    missing[0, 0, ys[0], xs[0]] = False
    assert measured_mask(Frame(frame.depth, missing, frame.guide)).all()
    gap = frame.valid.clone()
    gap[..., 20:40, 30:60] = False
    found = measured_mask(Frame(frame.depth, gap, frame.guide))
    assert not found[..., 26:34, 36:54].any()
    assert found[..., :14, :].all()
    assert found[..., :24].all()
