"""A frame that exists is a frame every method can use; whatever is wrong is named."""

import dataclasses

import pytest
import torch

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Frame, Method, Prediction

NAN = float("nan")


def good() -> dict[str, torch.Tensor]:
    return {
        "depth": torch.full((2, 1, 4, 5), 2.0),
        "valid": torch.ones(2, 1, 4, 5, dtype=torch.bool),
        "guide": torch.full((2, 3, 8, 10), 0.5),
        "confidence": torch.full((2, 1, 4, 5), 0.5),
        "sigma": torch.full((2, 1, 4, 5), 0.1),
    }


def with_value(name, value):
    changed = good()[name]
    changed[0, 0, 1, 1] = value
    return changed


BAD = {
    "depth-rank": ("depth", torch.ones(4, 5), r"depth: shape \(4, 5\), expected \(B, 1, h, w\)"),
    "depth-channels": ("depth", torch.ones(2, 2, 4, 5), r"depth: shape \(2, 2, 4, 5\)"),
    "depth-dtype": ("depth", torch.ones(2, 1, 4, 5, dtype=torch.int32), "depth: dtype torch.int32"),
    "depth-nan": ("depth", with_value("depth", NAN), "depth: NaN or infinite at valid"),
    "depth-inf": ("depth", with_value("depth", float("inf")), "depth: NaN or infinite at valid"),
    "valid-shape": ("valid", torch.ones(2, 1, 5, 5, dtype=torch.bool), r"valid: shape \(2, 1, 5, 5\)"),
    "valid-dtype": ("valid", torch.ones(2, 1, 4, 5), "valid: dtype torch.float32, expected torch.bool"),
    "valid-nothing": ("valid", torch.zeros(2, 1, 4, 5, dtype=torch.bool), "no valid pixel"),
    "guide-rank": ("guide", torch.ones(3, 8, 10), r"guide: shape \(3, 8, 10\)"),
    "guide-channels": ("guide", torch.ones(2, 4, 8, 10), r"guide: .* expected \(2, 1 or 3, H, W\)"),
    "guide-batch": ("guide", torch.ones(1, 3, 8, 10), r"guide: shape \(1, 3, 8, 10\)"),
    "guide-dtype": ("guide", torch.ones(2, 3, 8, 10, dtype=torch.float64), "guide: dtype torch.float64"),
    "guide-lower": ("guide", torch.ones(2, 3, 3, 10), "guide: 10x3 is smaller than the depth's 5x4"),
    "guide-narrower": ("guide", torch.ones(2, 3, 8, 4), "guide: 4x8 is smaller"),
    "guide-nan": ("guide", with_value("guide", NAN), "guide: contains NaN"),
    "confidence-shape": ("confidence", torch.ones(2, 1, 8, 10), "confidence: shape"),
    "confidence-dtype": ("confidence", torch.ones(2, 1, 4, 5, dtype=torch.float64), "confidence: dtype"),
    "confidence-low": ("confidence", with_value("confidence", -0.1), r"confidence: outside \[0, 1\]"),
    "confidence-high": ("confidence", with_value("confidence", 1.1), r"confidence: outside \[0, 1\]"),
    "confidence-nan": ("confidence", with_value("confidence", NAN), r"confidence: outside \[0, 1\]"),
    "sigma-shape": ("sigma", torch.ones(2, 1, 1, 1), "sigma: shape"),
    "sigma-negative": ("sigma", with_value("sigma", -0.1), "sigma: negative or not finite"),
    "sigma-nan": ("sigma", with_value("sigma", NAN), "sigma: negative or not finite"),
    "sigma-inf": ("sigma", with_value("sigma", float("inf")), "sigma: negative or not finite"),
}


@pytest.mark.parametrize(("name", "value", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_named(name, value, message):
    with pytest.raises(InputError, match=message) as caught:
        Frame(**{**good(), name: value})
    assert isinstance(caught.value, PrimalDepthError)
    assert "\n" not in str(caught.value)


def test_one_image_of_a_batch_without_a_valid_pixel_is_enough():
    valid = good()["valid"]
    valid[1] = False
    with pytest.raises(InputError, match="no valid pixel"):
        Frame(**{**good(), "valid": valid})


@pytest.mark.parametrize("name", ["depth", "confidence", "sigma"])
@pytest.mark.parametrize("value", [NAN, -1e30, float("inf")])
def test_values_at_invalid_samples_are_not_looked_at(name, value):
    valid = good()["valid"]
    valid[0, 0, 1, 1] = False
    frame = Frame(**{**good(), "valid": valid, name: with_value(name, value)})
    assert frame.clean_depth()[0, 0, 1, 1] == 0
    assert torch.isfinite(frame.clean_depth()).all()


def test_confidence_and_sigma_are_optional():
    parts = good()
    frame = Frame(parts["depth"], parts["valid"], parts["guide"])
    assert frame.confidence is None
    assert frame.sigma is None


def test_sizes_are_height_then_width():
    frame = Frame(**good())
    assert frame.low_size == (4, 5)
    assert frame.high_size == (8, 10)


def test_a_guide_of_equal_size_and_one_channel_will_do():
    assert Frame(**{**good(), "guide": torch.ones(2, 1, 4, 5)}).high_size == (4, 5)


def test_frames_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Frame(**good()).depth = torch.ones(1)


def test_clean_depth_leaves_the_frame_alone():
    parts = good()
    parts["valid"][0, 0, 0, 0] = False
    frame = Frame(**parts)
    frame.clean_depth()
    assert (frame.depth == 2).all()


def test_moving_keeps_what_is_there_and_what_is_not():
    frame = Frame(**{**good(), "sigma": None}).to("cpu")
    assert frame.sigma is None
    assert frame.confidence.equal(good()["confidence"])
    assert frame.valid.equal(good()["valid"])


def test_a_method_is_whatever_has_a_name_and_predicts():
    class Mine:
        name = "mine"

        def __call__(self, frame):
            return Prediction(frame.depth, frame.valid, frame.valid)

    assert isinstance(Mine(), Method)
    assert not isinstance(object(), Method)
