"""Views that differ are found, with the right number; the same view, or too little to see, is left alone."""

import numpy as np
import pytest
import torch

from drawn_room import checkered_box, cut, drawn_room, enlarged, tensors
from primaldepth.geometry.alignment import alignment
from primaldepth.geometry.cameras import Intrinsics

SEEDS = range(4)


def reduced(depth: np.ndarray) -> np.ndarray:
    return depth[2::4, 2::4]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_view_is_left_alone(seed: int) -> None:
    depth, image = drawn_room(seed)
    found = alignment(*tensors(reduced(depth), image), "z")
    assert found is not None
    assert not found.differs
    assert np.hypot(*found.view.offset) < 4.0


@pytest.mark.parametrize("seed", range(8))
def test_a_pattern_that_another_view_fits_is_left_alone(seed: int) -> None:
    depth, image = checkered_box(seed)
    found = alignment(*tensors(reduced(depth), image), "z")
    assert found is not None
    assert not found.differs


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shift", [(12, 0), (-8, 9)])
def test_an_offset_is_measured(seed: int, shift: tuple[int, int]) -> None:
    right, down = shift
    depth, image = drawn_room(seed, 280, 360)
    depth, image = cut(depth, 20, 20, 240, 320), cut(image, 20 + down, 20 + right, 240, 320)
    found = alignment(*tensors(reduced(depth), image), "z")
    assert found is not None
    assert found.differs
    assert not found.zoomed
    assert found.view.offset == pytest.approx((-right, -down), abs=2.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_field_of_view_is_measured_in_degrees(seed: int) -> None:
    zoom = np.tan(np.radians(79 / 2)) / np.tan(np.radians(55 / 2))
    depth, image = drawn_room(seed, 480, 640)
    camera = Intrinsics.guess(640, 480, 55.0)
    found = alignment(*tensors(reduced(depth), enlarged(image, zoom)), "z", camera)
    assert found is not None
    assert found.differs
    assert found.zoomed
    assert found.degrees == pytest.approx(55.0)
    assert found.depth_degrees == pytest.approx(79.0, abs=3.0)


def test_disparities_and_holes_change_nothing() -> None:
    depth, image = drawn_room(1, 280, 360)
    depth, image = cut(depth, 20, 20, 240, 320), cut(image, 20, 32, 240, 320)
    holes = np.random.default_rng(0).random(depth.shape) < 0.2
    found = alignment(*tensors(np.where(holes, 0.0, 100.0 / depth).astype(np.float32), image), "disparity")
    assert found is not None
    assert found.differs
    assert found.view.offset == pytest.approx((-12.0, 0.0), abs=2.0)


def test_nothing_is_said_of_a_flat_wall_or_an_empty_or_unrelated_image() -> None:
    depth, image = drawn_room(0)
    other = drawn_room(9)[1]
    assert alignment(*tensors(np.ones_like(depth), image), "z") is None
    assert alignment(*tensors(depth, np.zeros_like(image)), "z") is None
    assert alignment(*tensors(depth[:16, :16], image), "z") is None
    found = alignment(*tensors(depth, other), "z")
    assert found is None or not found.differs


def test_arguments_stay_as_they_are() -> None:
    given = tensors(*drawn_room(2))
    kept = [each.clone() for each in given]
    alignment(*given, "z")
    assert all(torch.equal(a, b) for a, b in zip(given, kept, strict=True))
