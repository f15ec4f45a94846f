"""Results are drawn to lone samples by the image; those of a scanner are held less, and steps sharper."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.methods.drawn import POINTS, SCAN, drawn_to_samples
from primaldepth.methods.holes import everywhere
from primaldepth.methods.sparse import with_samples

SIZE, STEP, EDGE = (60, 80), 5, 41


def lattice():
    y, x = torch.meshgrid(*(torch.arange(n) for n in SIZE), indexing="ij")
    return ((y % STEP == STEP // 2) & (x % STEP == STEP // 2))[None, None]


def two_walls(contrast, sigma=1e-3):
    """Walls at 2 and 3 m that meet at a column of the image, and samples of them."""
    left = torch.arange(SIZE[1]) < EDGE
    truth = torch.where(left, 2.0, 3.0).expand(1, 1, *SIZE)
    guide = torch.where(left, 0.5, 0.5 + contrast).expand(1, 3, *SIZE)
    return Frame(truth, lattice(), guide, sigma=torch.full_like(truth, sigma)), truth


def rmse(found, truth):
    return float((found - truth).square().mean().sqrt())


def test_results_are_drawn_to_samples_of_their_surface():
    """A result that is 10 cm off on one side of an edge is corrected there, and left alone beyond."""
    frame, truth = two_walls(contrast=0.4)
    found = drawn_to_samples(truth + torch.where(truth < 2.5, 0.1, 0.0), frame)
    torch.testing.assert_close(found, truth, atol=2e-3, rtol=0.0)


def ramp():
    """A step that a result has blurred over 20 pixels."""
    return (2.0 + (torch.arange(SIZE[1]) - 30) / 20).clamp(2.0, 3.0).expand(1, 1, *SIZE)


def test_edges_that_a_result_has_blurred_come_from_the_image():
    """A ramp of 20 pixels between two walls becomes the step of the image, at the right column."""
    frame, truth = two_walls(contrast=0.4)
    assert rmse(ramp(), truth) > 0.1
    assert rmse(drawn_to_samples(ramp(), frame), truth) < 0.03


def test_noise_of_samples_counts_for_less_than_half():
    truth = torch.full((1, 1, *SIZE), 2.0)
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(1))
    guide, sigma = torch.zeros(1, 3, *SIZE), torch.full_like(truth, 0.02)
    noisy = Frame(truth + 0.02 * noise, lattice(), guide, sigma=sigma)
    assert rmse(drawn_to_samples(truth, noisy), truth) < 0.01


def test_a_second_solution_sharpens_steps_at_faint_edges():
    """An edge of little contrast leaves pixels joined: the step is blurred until its pairs count for less."""
    frame, truth = two_walls(contrast=0.02)
    once = drawn_to_samples(ramp(), frame, replace(SCAN, step=None))
    twice = drawn_to_samples(ramp(), frame, SCAN)
    assert rmse(twice, truth) < 0.9 * rmse(once, truth)


@pytest.mark.parametrize("drawing", [POINTS, SCAN])
def test_a_plane_that_is_right_stays(drawing):
    """Residuals of 0 draw nothing; the rest of the slope is what samples and colour agree on."""
    y, x = torch.meshgrid(*(torch.arange(n) for n in SIZE), indexing="ij")
    wall = (2.0 + 0.002 * x + 0.001 * y)[None, None]
    frame = Frame(wall, lattice(), torch.full((1, 3, *SIZE), 0.5), sigma=torch.full_like(wall, 1e-3))
    inner = (..., slice(STEP, -STEP), slice(STEP, -STEP))
    torch.testing.assert_close(
        drawn_to_samples(wall, frame, drawing)[inner], wall[inner], atol=4e-3, rtol=0.0
    )


def test_a_sample_beside_its_edge_does_less_harm_in_a_scan():
    """One sample of the far wall lies a pixel inside the near one, as noise in range moves it there."""
    frame, truth = two_walls(contrast=0.4, sigma=0.01)
    depth, valid = frame.depth.clone(), frame.valid.clone()
    valid[..., 32, EDGE - 1], depth[..., 32, EDGE - 1] = True, 3.0
    moved = replace(frame, depth=depth, valid=valid)
    near = (..., slice(25, 40), slice(EDGE - 8, EDGE))
    errors = [
        rmse(drawn_to_samples(truth, moved, each)[near], truth[near])
        for each in (replace(SCAN, hold=POINTS.hold), SCAN)
    ]
    assert errors[1] < errors[0]


def test_only_frames_with_a_background_are_drawn_as_scans():
    """A frame with an assumed background, even of nothing, came from a scanner; others stay as they were."""
    frame, truth = two_walls(contrast=0.02)
    scan = replace(frame, background=torch.zeros_like(truth))

    def predict(whole, _samples):
        return everywhere(ramp(), whole)

    plain, scanned = (with_samples(predict, each).depth for each in (frame, scan))
    assert torch.equal(plain, drawn_to_samples(ramp(), frame, POINTS))
    assert not torch.equal(scanned, plain)
    assert rmse(scanned, truth) < rmse(plain, truth)
