"""A result departs from its samples by what the way they were taken leaves unexplained."""

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.measurement.residual import departure, residual

TRUTH = torch.where(torch.arange(32.0) < 13, 1.0, 3.0).expand(
    1, 1, 32, 32
)  # an edge amid the pixel of a sample
SIGMA = 0.01


def frame(sampling, taken):
    """The truth as samples that were taken one way and are said to be taken another."""
    guide = torch.full((1, 1, 32, 32), 0.5)
    empty = torch.ones(1, 1, 8, 8)
    where = Frame(empty, empty > 0, guide)
    depth = residual(TRUTH, where, taken).float() + empty
    return Frame(depth, depth > 0, guide, sigma=torch.full_like(depth, SIGMA), sampling=sampling)


@pytest.mark.parametrize("taken", ["point", "average"])
@pytest.mark.parametrize("known", [True, False])
def test_the_truth_explains_its_samples(taken, known):
    found = departure(TRUTH, frame(taken if known else None, taken))
    assert found.sigmas < 1e-3
    assert found.rms < 1e-5


@pytest.mark.parametrize(("taken", "said"), [("point", "average"), ("average", "point")])
def test_what_is_said_of_the_samples_counts(taken, said):
    assert departure(TRUTH, frame(said, taken)).sigmas > 10


def test_what_left_its_samples_is_off_either_way():
    moved = TRUTH + 5 * SIGMA
    for sampling in ("point", "average", None):
        assert departure(moved, frame(sampling, sampling or "point")).median == pytest.approx(5, rel=0.01)
