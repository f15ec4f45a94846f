"""Samples of depth cameras: the mean of the results of two networks."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods import create
from primaldepth.methods.identity import method_identity
from primaldepth.methods.paired import is_for_two, mean_of_two

LOW, HIGH = (12, 16), (48, 64)


def _frame(low: tuple[int, int] = LOW) -> Frame:
    """A slope with a step, and a few holes."""
    columns = torch.linspace(1.0, 1.5, low[1])
    depth = (columns + (torch.arange(low[1]) >= low[1] // 2)).expand(1, 1, *low).clone()
    valid = torch.ones_like(depth, dtype=torch.bool)
    valid[..., 3:5, 5:7] = False
    guide = torch.rand((1, 3, *HIGH), generator=torch.Generator().manual_seed(1))
    return Frame(depth, valid, guide, sigma=torch.full_like(depth, 0.02), sampling="point")


def _prediction(depth: float, sigma: float | None) -> Prediction:
    maps = torch.full((1, 1, 2, 2), depth)
    yes = torch.ones_like(maps, dtype=torch.bool)
    return Prediction(maps, yes, yes, None if sigma is None else torch.full_like(maps, sigma), {"of": depth})


def test_the_mean_is_surer_where_both_agree():
    found = mean_of_two(_prediction(1.0, 0.2), _prediction(1.6, 0.6))
    torch.testing.assert_close(found.depth, torch.full((1, 1, 2, 2), 1.3))
    torch.testing.assert_close(found.sigma, torch.full((1, 1, 2, 2), 0.5))
    assert found.info == {"of": 1.0}
    deep = mean_of_two(_prediction(1.0, 0.2), _prediction(1.6, 0.6), torch.ones(1, 1, 1, 1))
    torch.testing.assert_close(deep.depth, torch.full((1, 1, 2, 2), 1.6))
    torch.testing.assert_close(deep.sigma, torch.full((1, 1, 2, 2), 0.6))
    agreed = mean_of_two(_prediction(1.0, 0.2), _prediction(1.0, 0.6))
    torch.testing.assert_close(agreed.sigma, torch.full((1, 1, 2, 2), 0.4))
    assert mean_of_two(_prediction(1.0, 0.2), _prediction(1.6, None)).sigma is None


@pytest.mark.parametrize("sampling", ["point", None])
def test_samples_that_are_no_averages_get_the_mean_of_both(sampling):
    frame, fp32 = replace(_frame(), sampling=sampling), {"precision": "fp32"}
    alone = create("pdn-any", {"paired": False, **fp32})(frame)
    other = create("pdn-any-small", fp32)(frame)
    found = create("pdn-any", fp32)(frame)
    torch.testing.assert_close(found.depth, 0.5 * (alone.depth + other.depth))
    assert not torch.equal(found.depth, alone.depth)


def test_the_second_network_alone_fills_what_lies_deep_in_holes():
    frame, fp32 = _frame((24, 32)), {"precision": "fp32"}
    valid = torch.zeros_like(frame.valid)
    valid[..., :3] = True  # what lies more than eight samples from them is deep
    frame = replace(frame, valid=valid)
    found, other = create("pdn-any", fp32)(frame), create("pdn-any-small", fp32)(frame)
    torch.testing.assert_close(found.depth[..., 32:], other.depth[..., 32:])
    assert not torch.allclose(found.depth[..., :6], other.depth[..., :6], atol=1e-6)


def test_averages_registered_maps_and_maps_of_the_guides_size_are_for_one_network():
    frame = _frame()
    assert is_for_two(frame)
    for other in (replace(frame, sampling="average"), replace(frame, registered=True), _frame(low=HIGH)):
        assert not is_for_two(other)


def test_a_memory_limit_leaves_one_network():
    frame, limit = _frame(), {"precision": "fp32", "memory_gib": 8.0}
    alone = create("pdn-any", {"paired": False, **limit})(frame)
    torch.testing.assert_close(create("pdn-any", limit)(frame).depth, alone.depth)


def test_kept_results_depend_on_the_weights_of_both():
    names = {name for name in method_identity(create("pdn-any"))["weights"] if name.endswith("safetensors")}
    assert names == {"pdn-any.safetensors", "pdn-any-small.safetensors"}
