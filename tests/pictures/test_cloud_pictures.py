"""Pictures of points: the near ones in front, and a film that goes around."""

import numpy as np

from primaldepth.pictures.point_pictures import draw_points, turntable

RED, BLUE = (200, 0, 0), (0, 0, 200)


def test_near_points_hide_far_ones_and_points_outside_are_left_out():
    points = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [9.0, 0.0, 1.0]])
    colors = np.array([RED, BLUE, BLUE], np.uint8)
    pixels = np.array([[2.0, 1.0], [2.0, 1.0], [99.0, 1.0]])
    picture = draw_points(points, colors, pixels, (4, 6), spread=1)
    assert picture[1, 2].tolist() == list(RED)
    assert (picture == BLUE).all(-1).sum() == 0


def test_the_film_sees_both_sides():
    """A red wall before a blue one: each hides the other from its side."""
    x, y = (values.ravel() for values in np.meshgrid(np.linspace(-1, 1, 80), np.linspace(-1, 1, 80)))
    walls = [np.stack([x, y, np.full_like(x, z)], 1) for z in (-0.5, 0.5)]
    colors = np.repeat(np.array([RED, BLUE], np.uint8), len(x), axis=0)
    film = turntable(np.concatenate(walls).astype(np.float32), colors, count=4)
    assert len(film) == 4
    assert film[0][180, 240].tolist() == list(RED)
    assert film[2][180, 240].tolist() == list(BLUE)


def test_no_points_make_an_empty_picture():
    film = turntable(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.uint8), count=1)
    assert len(np.unique(film[0].reshape(-1, 3), axis=0)) == 1
