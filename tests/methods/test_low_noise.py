"""Complete maps with little noise: the mean with a classical result, and the samples met."""

from dataclasses import replace

import pytest
import torch

from primaldepth.core.frame import Frame, Prediction
from primaldepth.methods import create
from primaldepth.methods.low_noise import (
    CLASSICAL,
    classical_share,
    refined,
    with_classical,
    with_samples_met,
)
from primaldepth.methods.network_inputs import sampling_operator
from primaldepth.networks.normalisation import Scaling
from primaldepth.operators.sampling import resample

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
    torch.testing.assert_close(mean.depth, refined(plain, frame, Scaling.of(frame)).depth)


def _spread_of(prediction: Prediction, frame: Frame) -> float:
    """Root mean square of what the samples of the frame are off the prediction."""
    A = sampling_operator(frame.high_size, frame.low_size, "average")
    return float((A.forward(prediction.depth) - frame.depth).square().mean().sqrt())


def _uneven(frame: Frame) -> Prediction:
    """A prediction near the samples whose uncertainty differs from pixel to pixel."""
    draws = torch.rand((2, 1, 1, *frame.high_size), generator=torch.Generator().manual_seed(3))
    depth = resample(frame.depth, frame.high_size, "bilinear") + 0.1 * draws[0]
    yes = torch.ones_like(depth, dtype=torch.bool)
    return Prediction(depth, yes, yes, sigma=0.05 + 0.2 * draws[1])


@pytest.mark.parametrize("low", [(48, 64), (24, 32), (18, 24), (12, 16), (6, 20), (3, 4)])
def test_exact_samples_are_met(low):
    frame = _frame(noise=0.0, low=low)
    before = _uneven(frame)
    after = with_samples_met(before, frame, Scaling.of(frame))
    assert _spread_of(after, frame) < 0.02 * _spread_of(before, frame)
    assert after.sigma is before.sigma


def test_the_most_likely_depth_solves_its_normal_equations():
    """(u - v) / S^2 + A' (A u - d) / sigma^2 = 0 in every pixel."""
    frame = _frame(noise=0.04)
    before, scaling = _uneven(frame), Scaling.of(frame)
    u = with_samples_met(before, frame, scaling).depth.double()
    A = sampling_operator(frame.high_size, frame.low_size, "average")
    pull = A.adjoint(A.forward(u) - frame.depth.double()) / 0.04**2
    rest = (u - before.depth.double()) / before.sigma.double().square() + pull
    assert float(rest.norm()) < 1e-3 * float(pull.norm())


def test_noisy_maps_points_and_maps_with_holes_stay_as_they_are():
    frame = _frame()
    valid = frame.valid.clone()
    valid[..., 4, 2] = False
    others = [_frame(noise=0.5), replace(frame, sampling="point"), replace(frame, valid=valid)]
    for other in others:
        found = _uneven(other)
        assert with_samples_met(found, other, Scaling.of(other)) is found


def test_a_map_of_the_guides_size_is_weighed_pixel_by_pixel():
    frame = _frame(noise=0.04, low=HIGH)
    before = _uneven(frame)
    weight = before.sigma.square() / (before.sigma.square() + 0.04**2)
    after = with_samples_met(before, frame, Scaling.of(frame))
    torch.testing.assert_close(after.depth, torch.lerp(before.depth, frame.depth, weight))


def test_only_the_images_of_a_batch_with_little_noise_are_changed():
    quiet, loud = _frame(), _frame(noise=0.5)
    found = _uneven(quiet)
    both = replace(
        quiet, **{name: torch.cat([getattr(quiet, name), getattr(loud, name)]) for name in quiet._tensors()}
    )
    twice = found.each(lambda tensor: torch.cat([tensor, tensor]))
    after = with_samples_met(twice, both, Scaling.of(both)).depth
    torch.testing.assert_close(after[:1], with_samples_met(found, quiet, Scaling.of(quiet)).depth)
    assert torch.equal(after[1:], found.depth)
