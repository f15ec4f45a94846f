"""The mean of a network's result and a classical one, where samples have little noise."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods import create
from primaldepth.methods.low_noise import CLASSICAL, classical_share, with_classical
from primaldepth.networks.normalisation import Scaling

LOW, HIGH = (12, 16), (48, 64)


def _frame(noise: float = 1e-3, low: tuple[int, int] = LOW) -> Frame:
    """Two walls, 1 and 3 away, so that half the range of the depth is 1."""
    depth = torch.ones(1, 1, *low)
    depth[..., low[1] // 2 :] = 3.0
    guide = torch.full((1, 3, *HIGH), 0.2)
    guide[..., HIGH[1] // 2 :] = 0.8
    sigma = torch.full_like(depth, noise)
    return Frame(depth, torch.ones_like(depth, dtype=torch.bool), guide, sigma=sigma, sampling="average")


def _share(frame: Frame) -> float:
    return float(classical_share(frame, Scaling.of(frame)))


def _network_result(frame: Frame) -> Prediction:
    depth = torch.full((1, 1, *HIGH), 2.0)
    yes = torch.ones_like(depth, dtype=torch.bool)
    return Prediction(depth, yes, yes, sigma=torch.ones_like(depth), info={"precision": "fp32"})


def test_the_share_is_that_of_the_formula():
    assert _share(_frame(noise=0.0)) == pytest.approx(0.6 / (1 + (4 / 12) ** 2), rel=1e-4)
    assert _share(_frame(noise=0.05)) == pytest.approx(0.3 / (1 + (4 / 12) ** 2), rel=1e-4)
    assert _share(_frame(noise=0.0, low=(6, 8))) == pytest.approx(0.6 / (1 + (8 / 12) ** 2), rel=1e-4)


@pytest.mark.parametrize("change", [{"sampling": "point"}, {"sampling": None}, {"registered": True}])
def test_other_samples_have_no_share(change):
    assert _share(replace(_frame(), **change)) == 0.0


def test_noisy_samples_and_maps_of_the_guides_size_have_no_share():
    assert _share(_frame(noise=0.5)) == 0.0
    assert _share(_frame(low=HIGH)) == 0.0
    frame, found = _frame(noise=0.5), _network_result(_frame())
    assert with_classical(found, frame, Scaling.of(frame)) is found


def test_the_mean_has_both_by_their_shares():
    frame = _frame()
    found = _network_result(frame)
    mean = with_classical(found, frame, Scaling.of(frame))
    other = create(CLASSICAL)(frame).depth
    torch.testing.assert_close(mean.depth, torch.lerp(found.depth, other, _share(frame)))
    assert mean.info == {"precision": "fp32", "classical_share": [round(_share(frame), 3)]}
    assert mean.sigma is found.sigma


def test_maps_with_holes_have_no_share():
    frame = _frame()
    valid = frame.valid.clone()
    valid[..., 4, 2] = False
    assert _share(replace(frame, valid=valid)) == 0.0


def test_each_image_of_a_batch_has_its_own_share():
    quiet, loud = _frame(), _frame(noise=0.5)
    parts = {
        name: torch.cat([getattr(quiet, name), getattr(loud, name)]) for name in ("depth", "valid", "guide")
    }
    both = replace(quiet, sigma=torch.cat([quiet.sigma, loud.sigma]), **parts)
    shares = classical_share(both, Scaling.of(both)).flatten().tolist()
    assert shares == pytest.approx([_share(quiet), 0.0])


def test_the_option_leaves_it_out():
    frame = _frame()
    plain = create("pdn-any-small", {"classical": False, "precision": "fp32"})(frame)
    mean = create("pdn-any-small", {"precision": "fp32"})(frame)
    assert "classical_share" in mean.info
    assert "classical_share" not in plain.info
    other = create(CLASSICAL)(frame).depth
    torch.testing.assert_close(mean.depth, torch.lerp(plain.depth, other, _share(frame)))
