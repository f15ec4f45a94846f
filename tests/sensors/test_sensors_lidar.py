"""The LiDAR model: a smooth map from few points, soft edges, lost details, confidence."""

import pytest
import torch
from seeds import seeded

from primaldepth.sensors import sensor
from primaldepth.sensors.noise import local_mean

QUIET = {"noise": 0.0, "loss": 0.0}


def wall(z=2.0, size=(192, 256)):
    return torch.full((1, 1, *size), z)


def two_walls(near=1.0, far=2.0, at=128):
    truth = wall(far)
    truth[..., :at] = near
    return truth


def test_the_points_of_a_wall_have_one_percent_of_noise():
    samples = sensor("lidar-v1", loss=0.0, blur=0.0)(wall(), generator=seeded())
    points = samples.depth[..., 4::8, 4::8]
    assert points.shape == (1, 1, 24, 32)
    assert float(points.std()) == pytest.approx(0.02, rel=0.1)
    assert float(points.mean()) == pytest.approx(2.0, abs=0.003)
    assert torch.allclose(samples.sigma, 0.01 * local_mean(samples.depth, samples.valid))


def test_the_map_is_smooth_between_the_points():
    samples = sensor("lidar-v1", loss=0.0)(wall(), generator=seeded())
    step = samples.depth.diff(dim=-1).std()
    assert float(step) < 0.25 * float(samples.depth.std())  # white noise: 1.41


def test_a_slanted_wall_keeps_its_slope():
    y, x = torch.meshgrid(torch.arange(192.0), torch.arange(256.0), indexing="ij")
    truth = (1.0 / (0.4 + 0.001 * x - 0.0005 * y))[None, None]
    samples = sensor("lidar-v1", **QUIET)(truth, generator=seeded())
    inner = (..., slice(8, -8), slice(8, -8))
    assert ((samples.depth - truth) / truth)[inner].abs().max() < 2e-3


def test_edges_are_a_few_pixels_wide():
    row = sensor("lidar-v1", **QUIET)(two_walls(), generator=seeded()).depth[0, 0, 100]
    assert (row.diff() > -1e-3).all()
    between = ((row > 1.05) & (row < 1.9)).sum()
    assert 2 <= int(between) <= 8
    assert row[:118].tolist() == pytest.approx([1.0] * 118, rel=0.01)
    assert row[138:].tolist() == pytest.approx([2.0] * 118, rel=0.01)


def test_what_no_point_hits_is_lost():
    truth = wall()
    truth[..., 104:106, :] = 1.0  # points lie at rows 4, 12, ..., 100, 108
    truth[..., 140:160, :] = 1.0
    depth = sensor("lidar-v1", **QUIET)(truth, generator=seeded()).depth[0, 0]
    assert float(depth[104:106].min()) > 1.5
    assert (depth[146:154] - 1.0).abs().max() < 0.01


def test_confidence_is_high_on_surfaces_and_lower_at_edges():
    samples = sensor("lidar-v1", loss=0.0)(two_walls(), generator=seeded())
    assert samples.confidence.unique().tolist() == [0.0, 0.5, 1.0]
    by_column = samples.confidence[0, 0].mean(dim=0)
    assert float(by_column[20:100].mean()) > 0.98
    assert float(by_column[126:130].mean()) < 0.5


def test_nothing_is_measured_beyond_its_range():
    samples = sensor("lidar-v1")(two_walls(near=3.0, far=8.0), generator=seeded())
    assert samples.valid[..., :120].float().mean() > 0.99
    assert not samples.valid[..., 140:].any()
    assert (samples.depth <= 5.0).all()
    assert (samples.confidence[~samples.valid] == 0).all()


def test_points_that_do_not_return_leave_low_confidence_but_no_hole():
    samples = sensor("lidar-v1", noise=0.0, loss=0.05)(wall(), generator=seeded(1))
    assert samples.valid[..., 16:-16, 16:-16].all()
    assert (samples.depth[samples.valid] - 2.0).abs().max() < 1e-4
    at_points = samples.confidence[..., 20:-16:8, 20:-16:8]
    assert float((at_points == 0).float().mean()) == pytest.approx(0.05, abs=0.03)
    assert float(samples.confidence.mean()) > 0.8


def test_every_size_has_a_point():
    for size in [(1, 1), (3, 17), (5, 2)]:
        samples = sensor("lidar-v1", **QUIET)(wall(1.5, size), generator=seeded())
        assert samples.depth.flatten().tolist() == pytest.approx([1.5] * samples.depth.numel(), rel=1e-5)


def test_the_second_version_smooths_more_and_draws_its_confidence():
    edges = []
    for name in ("lidar-v1", "lidar-v2"):
        row = sensor(name, **{k: v for k, v in QUIET.items() if k != "blur"})(two_walls(), generator=seeded())
        steps = row.depth[0, 0, 100].diff().abs()
        edges.append(int((steps > 0.02 * steps.sum()).sum()))
    assert edges[1] > edges[0]
    strict, mild = (
        sensor("lidar-v2", medium=low, high=high)(two_walls(), generator=seeded()).confidence
        for low, high in ((0.5, 0.95), (0.1, 0.5))
    )
    assert float(strict.mean()) < float(mild.mean())
