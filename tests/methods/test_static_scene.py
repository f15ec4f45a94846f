"""The temporal filter where nothing moves but the camera: all that fits is averaged, and nothing else."""

import itertools

import pytest
import torch
from moving_scene import frame_of, sequence, view

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods import create
from primaldepth.methods.static_scene import agreement, uncovered
from primaldepth.methods.temporal import Temporal, TemporalSettings, temporal_settings

STATIC = TemporalSettings(static_scene=True)
METHODS = {"bilinear": {}, "nlh-l2": {"iterations": 8, "coarse_iterations": 8}}
CAMERA = ("sideways", "forward", "turn")


def rmse(depth, truth):
    return float((depth - truth).square().mean().sqrt())


def flat(truth):
    """Where no step is near."""
    largest, smallest = (torch.nn.functional.max_pool2d(each, 13, 1, 6) for each in (truth, -truth))
    return largest + smallest < 0.15


def lowered(move, settings=None, method="bilinear", where=torch.isfinite):
    """By what share the filter lowers the RMSE, summed over a sequence."""
    single = create(method, METHODS[method])
    filtered, before, after = Temporal(single, settings), 0.0, 0.0
    for frame, truth in sequence(move):
        area = where(truth)
        before += rmse(single(frame).depth[area], truth[area])
        after += rmse(filtered(frame).depth[area], truth[area])
    return 1.0 - after / before


@pytest.mark.parametrize("method", METHODS)
def test_a_static_scene_gains_clearly_more_than_the_default(method):
    """The error lies at the card's edges, which the default leaves alone."""
    static, default = ([lowered(move, each, method) for move in CAMERA] for each in (STATIC, None))
    assert sum(static) > 3.0 * sum(default) > 0.0
    assert min(static) > -0.001


@pytest.mark.parametrize("move", [*CAMERA, "still"])
def test_surfaces_gain_no_less_than_by_default(move):
    assert lowered(move, STATIC, where=flat) > lowered(move, None, where=flat) > 0.3


@pytest.mark.parametrize("move", CAMERA)
def test_edges_are_averaged(move):
    """The samples at the card's edges change from frame to frame; the default leaves most of them alone."""
    shares = []
    for settings in (STATIC, None):
        single = create("bilinear")
        filtered = Temporal(single, settings)
        for frame, truth in sequence(move):
            changed = filtered(frame).depth != single(frame).depth
            edge = torch.nn.functional.max_pool2d(truth, 5, 1, 2) - truth > 0.3
        shares.append(float(changed[edge].double().mean()))
    assert shares[0] > 1.5 * shares[1]


def test_disparities_gain_too():
    single = create("bilinear")
    filtered = Temporal(single, STATIC)
    errors = []
    for frame, truth in sequence("forward"):
        low = 2.0 / frame.depth
        sigma = frame.sigma * low.square() / 2.0
        disparities = Frame(low, frame.valid, frame.guide, sigma=sigma)
        results = single(disparities), filtered(disparities, "disparity")
        errors.append([rmse(result.depth, 2.0 / truth) for result in results])
    before, after = zip(*errors, strict=True)
    assert sum(after) < 0.99 * sum(before)


def test_a_camera_that_jumps_begins_anew():
    single = create("bilinear")
    filtered = Temporal(single, STATIC)
    for seed in range(3):
        filtered(frame_of(*view(), seed=seed))
    after = frame_of(*view(camera=(2.0, 1.5, 0.9), card=(2.3, 2.5)), seed=7)
    result = filtered(after)
    assert torch.equal(result.depth, single(after).depth)
    assert result.info["carried"] == 0.0


def test_what_was_moved_by_much_leaves_no_ghost():
    """The promise was broken, but depth and guide no longer fit."""
    filtered = Temporal(create("bilinear"), STATIC)
    for seed, place in enumerate((-0.4, -0.4, -0.4, 0.4)):
        guide, truth = view(card=(place, 1.8))
        result = filtered(frame_of(guide, truth, seed)).depth
    left = (..., slice(30, 42), slice(24, 36))  # where the card was
    assert rmse(result[left], truth[left]) < 0.06


def test_what_a_nearer_surface_hid_is_uncovered_on_one_side():
    """A card moves to the left by a pixel: its pixels were to the right, and the wall appears there."""
    flow = torch.zeros(1, 2, 20, 30)
    flow[:, 0, :, 10:20] = 1.0
    found = uncovered(flow)
    assert found[..., 19:21].all()
    assert not found[..., :12].any()
    assert not uncovered(torch.full((1, 2, 20, 30), 3.0)).any()


def test_the_past_counts_within_its_variance():
    trust = agreement(torch.tensor([0.0, 0.2, -0.6]), torch.tensor([0.01, 0.01, 0.01]))
    assert trust.tolist() == pytest.approx([1.0, 1.0, 1.0 / 16.0])


def test_only_the_noise_leaves_sigma():
    """A method that is off by 0.1 m everywhere, with noise of 0.02 m, is off by 0.1 m on average too."""

    class Biased:
        name = "biased"

        def __call__(self, frame):
            depth = create("bilinear")(frame).depth + 0.1
            everywhere = torch.ones_like(depth, dtype=torch.bool)
            return Prediction(depth, everywhere, everywhere, torch.full_like(depth, 0.102))

    filtered = Temporal(Biased(), STATIC)
    sigmas = [filtered(frame).sigma for frame, _ in sequence("still")]
    assert float(sigmas[-1].min()) >= 0.0999
    assert all(float(b.mean()) < float(a.mean()) for a, b in itertools.pairwise(sigmas[:4]))


def test_it_is_a_setting_of_the_filter():
    assert temporal_settings(False, False) is None
    assert temporal_settings(True, False) == TemporalSettings()
    assert temporal_settings(True, True) == STATIC
    with pytest.raises(InputError, match=r"static_scene: .*; give temporal too"):
        temporal_settings(False, True)
