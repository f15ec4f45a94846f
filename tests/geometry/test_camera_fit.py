"""Frames tell how a depth camera is turned, and the cameras made of it lay depth over the image."""

import math

import numpy as np
import pytest

from drawn_room import drawn_room, tensors
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.geometry.alignment import View
from primaldepth.geometry.camera_fit import fit_view, with_view
from primaldepth.geometry.cameras import Cameras, Intrinsics

CAMERA = Intrinsics(300.0, 310.0, 150.0, 125.0, 320, 240)


def turned(image: np.ndarray, view: View) -> np.ndarray:
    """Pixels of an image that is zoomed and turned about the middle, then moved."""
    height, width = image.shape[:2]
    y, x = np.mgrid[:height, :width] + 0.5
    x, y = x - width / 2 - view.offset[0], y - height / 2 - view.offset[1]
    c, s = math.cos(view.turn) / view.zoom, math.sin(view.turn) / view.zoom
    rows = np.clip((c * y - s * x + height / 2).astype(int), 0, height - 1)
    columns = np.clip((c * x + s * y + width / 2).astype(int), 0, width - 1)
    return image[rows, columns]


def frame(seed: int, view: View) -> Frame:
    depth, image = drawn_room(seed)
    values, valid, guide = tensors(depth[1::2, 1::2], turned(image, view))
    return Frame(values, valid, guide)


@pytest.mark.parametrize("zoom", [1.0, 1.2])
def test_offset_turn_and_zoom_are_found_in_two_frames(zoom: float) -> None:
    true = View(zoom, (7.0, -6.0), math.radians(2.0))
    found = fit_view([frame(seed, true) for seed in (3, 4)], "z", zoom=zoom != 1.0)
    assert found.certain
    assert found.view.offset == pytest.approx(true.offset, abs=1.5)
    assert math.degrees(found.view.turn) == pytest.approx(2.0, abs=0.4)
    assert found.view.zoom == pytest.approx(zoom, abs=0.02)


def test_an_image_without_the_depths_edges_is_not_certain() -> None:
    values, valid, _ = tensors(*drawn_room(3))
    other = tensors(*drawn_room(8))[2]
    assert not fit_view([Frame(values, valid, other)], "z", zoom=True).certain


def test_images_of_different_sizes_are_refused() -> None:
    small = Frame(*tensors(*drawn_room(1, 120, 160)))
    with pytest.raises(InputError, match="images of one size"):
        fit_view([small, frame(1, View())], "z", zoom=False)


def test_new_cameras_project_a_pixel_to_where_the_view_puts_it() -> None:
    view = View(1.3, (5.0, -4.0), math.radians(1.0))
    cameras = with_view(Cameras(CAMERA), view, (120, 160), (240, 320))
    assert cameras.depth is not None
    points = cameras.depth.rays() @ np.asarray(cameras.rotation).T
    places = cameras.guide.project(points)
    grown = 1.3 * np.array(
        [[math.cos(view.turn), -math.sin(view.turn)], [math.sin(view.turn), math.cos(view.turn)]]
    )
    y, x = np.mgrid[:120, :160] * 2.0 + 1.0
    wanted = np.stack([x - 160, y - 120], axis=-1) @ grown.T + [160 + 5.0, 120 - 4.0]
    middle = (slice(40, 80), slice(60, 100))  # perspective bends what is far from the axis
    assert np.abs(places - wanted)[middle].max() < 0.5


def test_a_camera_that_was_known_is_turned_about_the_images_centre() -> None:
    known = Cameras(CAMERA, Intrinsics.guess(160, 120, 70.0), translation=(0.05, 0.0, 0.0))
    found = with_view(known, View(offset=(3.0, 0.0)), (120, 160), (240, 320))
    assert found.depth == known.depth
    assert np.linalg.norm(found.translation) == pytest.approx(0.05)
    assert with_view(known, View(), (120, 160), (240, 320)) == known
