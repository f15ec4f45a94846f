"""The temporal filter: calm where nothing moves, never worse where something does."""

import itertools

import pytest
import torch
from moving_scene import MOVES, SIGMA, frame_of, sequence, view

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.geometry.ego_motion import Motion
from primaldepth.methods import create, temporal
from primaldepth.methods.temporal import Memory, Temporal, TemporalSettings

METHODS = {"bilinear": {}, "nlh-l2": {"iterations": 8, "coarse_iterations": 8}}


def rmse(depth, truth):
    return float((depth - truth).square().mean().sqrt())


def both(move, method="bilinear"):
    """[(single result, filtered result, truth)] of a sequence."""
    single = create(method, METHODS[method])
    filtered = Temporal(single)
    return [(single(frame).depth, filtered(frame).depth, truth) for frame, truth in sequence(move)]


def flicker(depths):
    return sum(float((b - a).abs().mean()) for a, b in itertools.pairwise(depths))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("move", MOVES)
def test_no_frame_gets_worse(move, method):
    """The error lies mostly at edges, where by chance a single result may be better than the mean."""
    results = both(move, method)
    errors = [(rmse(single, truth), rmse(filtered, truth)) for single, filtered, truth in results]
    assert all(after <= 1.004 * before for before, after in errors), errors
    assert sum(after for _, after in errors) < sum(before for before, _ in errors)


@pytest.mark.parametrize("method", METHODS)
def test_what_stands_still_stops_flickering(method):
    single, filtered, _ = zip(*both("still", method), strict=True)
    assert flicker(filtered) < 0.4 * flicker(single)


@pytest.mark.parametrize("move", ["sideways", "forward", "turn"])
def test_noise_on_surfaces_falls_while_the_camera_moves(move):
    """On the wall, away from the card, the last frame has seen every place several times."""
    single, filtered, truth = both(move)[-1]
    wall = (..., slice(4, 68), slice(4, 14))
    assert rmse(filtered[wall], truth[wall]) < 0.7 * rmse(single[wall], truth[wall])


def test_a_moved_card_leaves_no_ghost():
    filtered = Temporal(create("bilinear"))
    for seed, place in enumerate((-0.4, -0.4, -0.4, 0.4)):
        guide, truth = view(card=(place, 1.8))
        result = filtered(frame_of(guide, truth, seed)).depth
    left = (..., slice(30, 42), slice(24, 36))  # where the card was
    assert rmse(result[left], truth[left]) < 3 * SIGMA


def test_another_scene_begins_anew():
    single = create("bilinear")
    filtered = Temporal(single)
    filtered(frame_of(*view(), seed=0))
    guide, depth = view()
    other = frame_of(1.0 - guide.flip(3), depth.flip(3).square(), seed=1)
    assert filtered(other).info["carried"] < 0.01
    small = frame_of(guide[..., :48], depth[..., :48], seed=2)
    assert torch.equal(filtered(small).depth, single(small).depth)


def test_two_frames_of_a_still_scene_are_averaged():
    """2 + n and 2 - n give 2."""
    guide, _ = view()
    pattern = torch.linspace(-1, 1, 24).expand(1, 1, 18, 24).clone()
    pattern[..., ::2] *= -1
    method, valid = create("nearest"), torch.ones(1, 1, 18, 24, dtype=torch.bool)
    filtered = Temporal(method)
    for sign in (1.0, -1.0):
        frame = Frame(2.0 + 0.01 * sign * pattern, valid, guide, sigma=torch.full((1, 1, 18, 24), 0.01))
        result = filtered(frame)
    assert result.info["carried"] == pytest.approx(0.5, abs=0.02)
    assert float((result.depth - 2.0).abs().mean()) < 0.0003


def test_memory_is_bounded_and_can_be_put_away():
    settings = TemporalSettings(memory=3)
    whole, parts = Temporal(create("bilinear"), settings), Temporal(create("bilinear"), settings)
    for frame, _ in sequence("sideways", 4):
        expected = whole(frame)
        stored = None if parts.memory is None else {k: v.clone() for k, v in parts.memory.tensors().items()}
        parts = Temporal(create("bilinear"), settings)
        parts.memory = None if stored is None else Memory.of(stored, torch.device("cpu"))
        assert torch.equal(parts(frame).depth, expected.depth)
    assert expected.info["carried"] <= 0.75


def test_disparities():
    """The same scene as disparities: a camera that comes nearer changes them by their square."""
    single = create("bilinear")
    filtered = Temporal(single)
    for frame, truth in sequence("forward"):
        low = 2.0 / frame.depth
        sigma = SIGMA * low.square() / 2.0
        disparities = Frame(low, frame.valid, frame.guide, sigma=sigma)
        before, after = single(disparities), filtered(disparities, "disparity")
        assert rmse(after.depth, 2.0 / truth) <= 1.001 * rmse(before.depth, 2.0 / truth)
    assert after.info["carried"] > 0.4


def test_one_frame_at_a_time():
    frame = frame_of(*view(), seed=0)
    two = Frame(*(torch.cat([each, each]) for each in (frame.depth, frame.valid, frame.guide)))
    with pytest.raises(InputError, match="a batch of 2 frames"):
        Temporal(create("bilinear"))(two)


def test_holes_are_bridged_by_what_was_seen_before():
    filtered = Temporal(create("bilinear"))
    guide, truth = view()
    for seed in range(4):
        filtered(frame_of(guide, truth, seed))
    frame = frame_of(guide, truth, 9)
    valid = frame.valid.clone()
    valid[..., 5:9, 0:4] = False
    hole = (..., slice(20, 36), slice(0, 16))
    frame = Frame(frame.depth, valid, frame.guide, sigma=frame.sigma)
    alone, bridged = create("bilinear")(frame), filtered(frame)
    assert not bridged.measured[hole].any()
    assert rmse(bridged.depth[hole], truth[hole]) < 0.7 * rmse(alone.depth[hole], truth[hole])


def test_what_is_averaged_is_surer():
    """Sigma falls as frames of a still scene come in, by no more than the filter's memory allows."""

    class Unsure:
        name = "unsure"

        def __call__(self, frame):
            depth = frame.depth.repeat_interleave(4, 2).repeat_interleave(4, 3)
            everywhere = torch.ones_like(depth, dtype=torch.bool)
            return Prediction(depth, everywhere, everywhere, torch.full_like(depth, 0.02))

    random = torch.Generator().manual_seed(0)
    guide = torch.rand((1, 1, 48, 64), generator=random)
    method, found = Temporal(Unsure()), []
    for _ in range(6):
        depth = 2.0 + 0.02 * torch.randn((1, 1, 12, 16), generator=random)
        sigma = torch.full_like(depth, 0.02)
        found.append(float(method(Frame(depth, depth > 0, guide, sigma=sigma)).sigma.mean()))
    assert found[0] == pytest.approx(0.02)
    assert 0.02 / 4 < found[-1] < 0.7 * found[0]


class _Said:
    """A method whose results are given."""

    name = "said"

    def __init__(self, predictions):
        self._predictions = iter(predictions)

    def __call__(self, frame):
        return next(self._predictions)


def _restless_edges(count=8):
    """(frames, results) of a still view whose method is unsure at the card's edges, and says so."""
    guide, truth = view()
    unsure = torch.nn.functional.max_pool2d((truth < 2.2).float(), 5, 1, 2) - (truth < 2.2).float()
    noise = torch.Generator().manual_seed(5)
    for seed in range(count):
        depth = truth + (0.01 + 0.1 * unsure) * torch.randn(truth.shape, generator=noise)
        everywhere = torch.ones_like(depth, dtype=torch.bool)
        sigma = 0.01 + 0.2 * unsure
        yield frame_of(guide, truth, seed), Prediction(depth, everywhere, everywhere, sigma)


def test_edges_of_which_the_method_is_unsure_get_calm():
    frames, results = zip(*_restless_edges(), strict=True)
    filtered = Temporal(_Said(results))
    calm = [filtered(frame).depth for frame in frames]
    assert flicker(calm) < 0.4 * flicker([result.depth for result in results])


@pytest.mark.parametrize("move", ["sideways", "card"])
def test_where_something_moves_guesses_are_left_alone(move):
    """A hole that is filled otherwise in each frame: the past is no better there than the present."""
    hole = (..., slice(20, 52), slice(4, 28))
    filtered = Temporal(create("bilinear"))
    for frame, _ in sequence(move, 5):
        valid = frame.valid.clone()
        valid[..., 4:14, 0:8] = False
        frame = Frame(frame.depth, valid, frame.guide, sigma=frame.sigma)
        assert torch.equal(filtered(frame).depth[hole], create("bilinear")(frame).depth[hole])


def _with_hole(frame, hole, open_):
    valid = frame.valid.clone()
    valid[hole] = open_
    return Frame(frame.depth, valid, frame.guide, sigma=frame.sigma)


@pytest.mark.parametrize("move", ["sideways", "forward", "turn"])
def test_holes_are_bridged_while_the_camera_moves(move):
    """What was measured before beats what the method fills in now."""
    low, high = (..., slice(5, 13), slice(0, 6)), (..., slice(24, 48), slice(4, 20))
    single, filtered = create("bilinear"), Temporal(create("bilinear"))
    frames = list(sequence(move, 8))
    for t, (frame, _) in enumerate(frames):
        frame = _with_hole(frame, low, open_=t < 5)
        alone, bridged = single(frame), filtered(frame)
    truth = frames[-1][1]
    assert rmse(bridged.depth[high], truth[high]) < 0.7 * rmse(alone.depth[high], truth[high])


def test_a_motion_of_the_view_that_an_object_may_feign_bridges_no_hole(monkeypatch):
    """One of a hundredth of a pixel, as is found when a large object moves before a still camera."""
    flow = torch.full((1, 2, 72, 96), 0.01)
    monkeypatch.setattr(temporal, "ego_motion", lambda *_: Motion(flow))
    single, filtered = create("bilinear"), Temporal(create("bilinear"))
    for t, (frame, _) in enumerate(sequence("still", 6)):
        frame = _with_hole(frame, (..., slice(5, 13), slice(0, 6)), open_=t < 5)
        alone, result = single(frame), filtered(frame)
    assert torch.equal(result.depth[..., 24:48, 4:20], alone.depth[..., 24:48, 4:20])


def test_a_card_that_moves_before_a_moving_camera_is_taken_from_the_new_frame():
    """Also in a hole, where no sample can tell that the past is wrong."""
    single, filtered = create("bilinear"), Temporal(create("bilinear"))
    for t in range(8):
        guide, truth = view(camera=(0.01 * t, 0.004 * t, 0.0), card=(0.03 * t - 0.15, 1.8))
        frame = _with_hole(frame_of(guide, truth, seed=t), (..., slice(5, 13), slice(8, 16)), open_=t < 3)
        alone, result = single(frame), filtered(frame)
    card = truth < 2.2
    assert torch.equal(result.depth[card], alone.depth[card])
    assert result.info["carried"] > 0.1


def test_after_a_cut_nothing_of_the_old_scene_is_left():
    """Some samples agree by chance, and grey areas look alike."""
    single = create("bilinear")
    filtered = Temporal(single)
    for seed in range(3):
        filtered(frame_of(*view(), seed=seed))
    guide, truth = view(camera=(2.0, 1.5, 0.9), card=(2.3, 2.5))
    after = frame_of(guide, truth, seed=7)
    result = filtered(after)
    assert torch.equal(result.depth, single(after).depth)
    assert result.info["carried"] == 0.0
    assert filtered(frame_of(guide, truth, seed=8)).info["carried"] > 0.3
