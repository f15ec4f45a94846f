"""What the methods of both families of others share: their names, and samples without confidence."""

from dataclasses import replace

import pytest
import torch
from step_scene import FAMILIES, noisy_step, with_and_without_outlier

from primaldepth.methods import create

PAPERS = {
    "filter": ["kopf07", "yang07", "he10", "chan08"],
    "optimisation": ["diebel05", "park11", "ferstl13", "barron16"],
}
# A solver ends at a tolerance, and its outlier lies within the range, so that the spread stays.
OUTLIERS = {"filter": (100.0, 0.0), "optimisation": (2.9, 1e-3)}


@pytest.mark.parametrize("family", PAPERS)
def test_the_family_is_complete(family):
    assert FAMILIES[family] == PAPERS[family]


@pytest.mark.parametrize("scale", [1, 4])
@pytest.mark.parametrize(("family", "name"), [(f, name) for f, names in PAPERS.items() for name in names])
def test_a_sample_without_confidence_has_no_influence(family, name, scale):
    value, most = OUTLIERS[family]
    frame, _ = noisy_step(scale, (16, 16))
    with_outlier, without = (create(name)(each).depth for each in with_and_without_outlier(frame, value))
    assert (with_outlier - without).abs().max() <= most


@pytest.mark.parametrize("name", ["diebel05", "barron16", "nlh-l2", "atgv-l2"])
def test_a_map_that_trusts_nothing_is_one_that_trusts_all(name):
    frame, _ = noisy_step(4, (16, 16))
    nothing = replace(frame, confidence=torch.zeros_like(frame.depth))
    assert create(name)(nothing).depth.equal(create(name)(frame).depth)
