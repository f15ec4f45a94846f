"""One rule of trust for masks, frames and training batches."""

import math
from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame
from primaldepth.core.trust import sample_trust, trusted_samples
from primaldepth.measurement.lone_samples import cells_of
from primaldepth.measurement.noise_estimate import noise_of
from primaldepth.measurement.residual import departure

VALID = torch.tensor([[[[True, True, False]]], [[[True, False, True]]]])
CONFIDENCE = torch.tensor([[[[0.5, 0.0, 1.0]]], [[[0.0, 1.0, 0.0]]]])


def frame(**changes):
    values = {"depth": torch.full((1, 1, 8, 8), 2.0), "guide": torch.rand(1, 3, 8, 8)}
    values |= {"valid": torch.ones(1, 1, 8, 8, dtype=torch.bool), **changes}
    return Frame(**values)


def test_confidence_is_the_trust_of_valid_samples():
    assert sample_trust(VALID, CONFIDENCE, CONFIDENCE)[0].flatten().tolist() == [0.5, 0.0, 0.0]
    assert trusted_samples(VALID, CONFIDENCE)[0].flatten().tolist() == [True, False, False]


def test_an_image_that_trusts_nothing_trusts_all_it_has():
    """Each image of a batch for itself."""
    assert sample_trust(VALID, CONFIDENCE, CONFIDENCE)[1].flatten().tolist() == [1.0, 0.0, 1.0]
    assert trusted_samples(VALID, CONFIDENCE)[1].equal(VALID[1])


def test_without_confidence_valid_samples_have_equal_trust():
    assert sample_trust(VALID, None, CONFIDENCE).equal(VALID.float())
    assert trusted_samples(VALID, None) is VALID


def test_a_frame_carries_the_rule():
    confidence = torch.rand(1, 1, 8, 8).round()
    found = frame(confidence=confidence)
    assert found.trust.equal(confidence)
    assert found.trusted.equal(confidence > 0)


def test_residuals_are_those_of_trusted_samples():
    confidence = torch.ones(1, 1, 8, 8)
    confidence[..., 3, 4] = 0.0
    wrong = torch.full((1, 1, 8, 8), 2.0)
    wrong[..., 3, 4] = 9.0
    result = torch.full((1, 1, 8, 8), 2.0)
    assert departure(result, frame(depth=wrong, confidence=confidence)).rms == 0.0
    wrong[..., 5, 5] = 3.0
    found = departure(result, frame(depth=wrong, confidence=confidence)).rms
    assert found == pytest.approx(math.sqrt(1 / 63))


def test_what_is_found_of_a_frame_is_kept_until_it_changes():
    first = frame()
    assert noise_of(first) is noise_of(first)
    assert cells_of(first) is cells_of(first)
    changed = replace(first, depth=torch.rand(1, 1, 8, 8) + 1.0)
    assert not noise_of(changed).equal(noise_of(first))
