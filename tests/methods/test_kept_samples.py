"""Results are kept at samples that their neighbours confirm, without single pixels that stand out."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.residual import least_residual
from primaldepth.methods import create
from primaldepth.methods.kept_samples import confirmed, limits, overruled, samples_kept

SIGMA, K = 0.01, 5.0
SIZES = [(4, "point"), (3, "point"), (2, "point"), (1, "point"), (4, "average"), (2.5, "point"), (4, None)]


def pole_frame(scale: float = 4, sampling=None) -> tuple[Frame, torch.Tensor]:
    """A dark pole in 1 m, three samples wide, before a bright wall in 2 m; and its true depth."""
    low, high = (16, 20), (round(16 * scale), round(20 * scale))
    pole = torch.zeros(1, 1, *high, dtype=torch.bool)
    pole[..., round(8 * scale) : round(11 * scale)] = True
    truth = torch.where(pole, 1.0, 2.0)
    depth = torch.full((1, 1, *low), 2.0)
    depth[..., 8:11] = 1.0
    guide = torch.where(pole, 0.2, 0.8)
    frame = Frame(depth, depth > 0, guide, sigma=torch.full_like(depth, SIGMA), sampling=sampling)
    return frame, truth


def flat(frame: Frame, depth: float = 2.0) -> Prediction:
    """The pole was taken for noise."""
    image = torch.full((1, 1, *frame.high_size), depth)
    return Prediction(
        image, torch.ones_like(image, dtype=torch.bool), torch.ones_like(image, dtype=torch.bool)
    )


@pytest.mark.parametrize(("scale", "sampling"), SIZES)
def test_no_confirmed_sample_is_left(scale, sampling):
    frame, _ = pole_frame(scale, sampling)
    lost = flat(frame)
    found, counts = samples_kept(lost, frame, K)
    assert counts.tolist() == [overruled(lost, frame, K)]
    assert counts[0] >= 3 * 16
    assert overruled(found, frame, K) == 0
    assert (least_residual(found.depth, frame).abs() <= limits(frame, K))[confirmed(frame)].all()


@pytest.mark.parametrize("scale", [4, 3])
def test_the_correction_ends_at_the_edge_of_the_image(scale):
    frame, truth = pole_frame(scale, "point")
    found, _ = samples_kept(flat(frame), frame, K)
    assert (found.depth - truth).abs().max() < 0.06  # K sigma, less a tenth, and what colours leave over


def test_without_an_edge_in_the_image_no_pixel_stands_alone():
    frame, _ = pole_frame(4, "point")
    frame = replace(frame, guide=torch.full_like(frame.guide, 0.5))
    found, _ = samples_kept(flat(frame), frame, K)
    steps = found.depth.diff(dim=3).abs()
    assert steps.max() < 0.35  # 1 m over the four pixels between two samples
    assert found.depth.min() > 0.9  # no overshoot


def test_results_that_meet_their_samples_are_left_alone():
    frame, truth = pole_frame(4, "point")
    made = replace(flat(frame), depth=truth)
    found, counts = samples_kept(made, frame, K)
    assert found is made
    assert counts.tolist() == [0]


def test_a_sample_that_no_neighbour_confirms_is_not_kept():
    frame, _ = pole_frame(4, "point")
    depth = torch.full_like(frame.depth, 2.0)
    depth[0, 0, 5, 5] = 1.0
    alone = replace(frame, depth=depth)
    found, counts = samples_kept(flat(alone), alone, K)
    assert counts.tolist() == [0]
    assert (found.depth == 2.0).all()


def test_samples_of_confidence_0_are_not_kept():
    frame, _ = pole_frame(4, "point")
    doubted = replace(frame, confidence=(frame.depth > 1.5).float())
    assert samples_kept(flat(frame), doubted, K)[1].tolist() == [0]


def test_samples_that_stand_alone_correct_what_lies_between_them():
    """Samples registered into the image's grid, one in every eight rows and columns."""
    depth, valid = torch.zeros(1, 1, 128, 128), torch.zeros(1, 1, 128, 128, dtype=torch.bool)
    valid[..., 4::8, 4::8] = True
    depth[valid] = 1.0
    guide, sigma = torch.full((1, 1, 128, 128), 0.5), torch.full_like(depth, SIGMA)
    frame = Frame(depth, valid, guide, sigma=sigma, sampling="point", registered=True)
    found, counts = samples_kept(flat(frame), frame, K)
    assert counts.tolist() == [256]
    inside = found.depth[..., 12:116, 12:116]
    assert (inside - 1.0).abs().max() < 0.06  # the middle between samples as well


@pytest.mark.parametrize("name", ["park11", "he10", "nlh-l2", "nearest"])
def test_classical_methods_are_kept_too(name):
    frame, _ = pole_frame(4, "point")
    found, _ = samples_kept(create(name)(frame), frame, 1.0)
    assert overruled(found, frame, 1.0) == 0


def test_images_of_a_batch_are_counted_and_corrected_one_by_one():
    frame, truth = pole_frame(4, "point")
    both = Frame(
        *(torch.cat([each, each]) for each in (frame.depth, frame.valid, frame.guide)), sampling="point"
    )
    both = replace(both, sigma=torch.full_like(both.depth, SIGMA))
    made = Prediction.joined([flat(frame), replace(flat(frame), depth=truth)])
    found, counts = samples_kept(made, both, K)
    assert counts[0] > 0
    assert counts[1] == 0
    assert torch.equal(found.depth[1:], truth)
    assert torch.equal(found.depth[:1], samples_kept(flat(frame), frame, K)[0].depth)
