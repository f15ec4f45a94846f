import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.picture_files import write_preview
from primaldepth.pictures.preview import (
    DEPTH_COLORS,
    ERROR_COLORS,
    Bar,
    colorize,
    enlarge,
    error_map,
    mark_filled,
    overview,
    panel,
    robust_error,
    robust_limits,
    spread,
    ticks,
)


def luminance(rgb):
    """Relative luminance of sRGB."""
    c = rgb / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_larger_depth_is_always_brighter():
    ramp = np.linspace(0, 1, 200)[None]
    colors = colorize(ramp, np.ones(ramp.shape, bool), (0, 1))
    assert (np.diff(luminance(colors[0])) > 0).all()
    assert tuple(colors[0, 0]) == DEPTH_COLORS[0]
    assert tuple(colors[0, -1]) == DEPTH_COLORS[-1]


def test_invalid_pixels_are_grey_whatever_they_hold():
    depth = np.array([[1.0, np.nan, np.inf, 2.0]])
    valid = np.array([[True, False, False, True]])
    colors = colorize(depth, valid)
    assert colors.dtype == np.uint8
    assert (colors[0, 1:3] == 128).all()
    assert tuple(colors[0, 3]) == DEPTH_COLORS[-1]
    assert (colorize(depth, np.zeros_like(valid)) == 128).all()


def test_values_beyond_the_limits_take_the_end_colours():
    colors = colorize(np.array([[-5.0, 5.0]]), np.ones((1, 2), bool), (0.0, 1.0))
    assert [tuple(color) for color in colors[0]] == [DEPTH_COLORS[0], DEPTH_COLORS[-1]]


@pytest.mark.parametrize("limits", [(1.0, 1.0), (2.0, 1.0), (0.0, np.nan), (-np.inf, 1.0)])
def test_impossible_limits_are_refused(limits):
    with pytest.raises(InputError, match="colour limits"):
        colorize(np.ones((2, 2)), np.ones((2, 2), bool), limits)


def test_shapes_must_agree():
    with pytest.raises(InputError, match="expected"):
        colorize(np.ones((2, 2)), np.ones((2, 3), bool))
    with pytest.raises(InputError, match="differ"):
        error_map(np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 2), bool), 1.0)
    with pytest.raises(InputError, match="measured"):
        mark_filled(np.zeros((2, 2, 3), np.uint8), np.ones((2, 3), bool))


def test_robust_limits_ignore_outliers_and_invalid_values():
    depth = np.linspace(1, 2, 1000).reshape(10, 100)
    depth[0, 0], depth[0, 1] = 1e6, np.nan
    valid = np.isfinite(depth)
    low, high = robust_limits(depth, valid)
    assert 1.0 < low < 1.02
    assert 1.98 < high < 2.0


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0, 1e6])
def test_a_constant_map_can_be_shown(value):
    depth, valid = np.full((3, 3), value), np.ones((3, 3), bool)
    low, high = robust_limits(depth, valid)
    assert low < value < high
    assert len({tuple(color) for color in colorize(depth, valid).reshape(-1, 3)}) == 1


def test_error_map_diverges_from_white():
    truth = np.full((1, 5), 10.0)
    pred = np.array([[7.0, 8.0, 10.0, 12.0, np.nan]])
    colors = error_map(pred, truth, np.array([[True] * 4 + [False]]), limit=2.0)
    expected = [ERROR_COLORS[0], ERROR_COLORS[0], ERROR_COLORS[2], ERROR_COLORS[-1], (128, 128, 128)]
    assert [tuple(color) for color in colors[0]] == expected


def test_robust_error():
    truth, valid = np.zeros((1, 101)), np.ones((1, 101), bool)
    assert robust_error(np.arange(101.0)[None], truth, valid) == pytest.approx(95)
    assert robust_error(truth, truth, valid) == 1.0
    assert robust_error(truth, truth, ~valid) == 1.0


@pytest.mark.parametrize(("height", "width"), [(6, 8), (7, 9), (3, 4)])
def test_enlargement_shows_the_nearest_pixel(height, width):
    rgb = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    large = enlarge(rgb, height, width)
    for i in range(height):
        for j in range(width):
            row, column = int((i + 0.5) * 3 / height), int((j + 0.5) * 4 / width)
            np.testing.assert_array_equal(large[i, j], rgb[row, column])


def test_lone_samples_become_squares_that_share_their_border():
    depth, valid = np.zeros((5, 7)), np.zeros((5, 7), bool)
    for row, column, value in ((0, 0, 1.0), (2, 2, 2.0), (2, 5, 3.0)):
        depth[row, column], valid[row, column] = value, True
    values, mask = spread(depth, valid, 2)
    drawn = np.where(mask, values, 0.0).astype(int).tolist()
    assert drawn[0][:2] + drawn[0][3:] == [1, 1, 2, 3, 3, 3]  # (0, 2) is as near to 1 as to 2
    assert drawn[2][1:] == [2, 2, 2, 3, 3, 3]
    assert drawn[4][:2] == [2, 2]
    assert not spread(depth, valid, 1)[1][4].any()
    same, where = spread(depth, valid, 0)
    assert (np.array_equal(same, depth), np.array_equal(where, valid)) == (True, True)


def test_filled_pixels_are_marked_and_measured_ones_untouched():
    rgb = np.full((40, 40, 3), (230, 200, 60), np.uint8)
    measured = np.zeros((40, 40), bool)
    measured[:, :20] = True
    marked = mark_filled(rgb, measured)
    np.testing.assert_array_equal(marked[:, :20], rgb[:, :20])
    assert (marked[:, 20:] != rgb[:, 20:]).any(axis=-1).all()
    assert len({tuple(color) for color in marked[:, 20:].reshape(-1, 3)}) == 2  # paler, and hatched


def test_panel_puts_pictures_of_any_size_side_by_side():
    first, second = np.full((300, 400, 3), 10, np.uint8), np.full((30, 20, 3), 200, np.uint8)
    result = panel([("one", first), ("two", second)])
    assert result.dtype == np.uint8
    assert np.count_nonzero((result == 10).all(axis=-1)) == pytest.approx(300 * 400, rel=0.001)
    assert np.count_nonzero((result == 200).all(axis=-1)) == pytest.approx(300 * 200, rel=0.001)


@pytest.mark.parametrize(
    ("shape", "count"), [((1920, 1440), 5), ((480, 640), 5), ((100, 4000), 2), ((4, 4), 3)]
)
def test_panel_stays_within_its_width(shape, count):
    rgb = np.zeros((*shape, 3), np.uint8)
    result = panel([("A long title for a small picture", rgb)] * count, [Bar("Depth [m]", (0.0, 1.0))])
    assert result.shape[1] <= 2400
    assert result.shape[0] <= 1200


def test_bars_show_their_colours_and_captions_leave_ink():
    rgb = np.full((300, 400, 3), 128, np.uint8)
    bare, titled = panel([("", rgb)]), panel([("Title", rgb)], [Bar("Error [m]", (-1.0, 1.0), ERROR_COLORS)])
    assert (bare[:24] == 255).all()
    assert (titled[:24] < 100).any()
    colors = {tuple(color) for color in titled[-80:].reshape(-1, 3)}
    assert {ERROR_COLORS[0], ERROR_COLORS[-1]} <= colors


def test_panel_refuses_what_is_no_picture():
    with pytest.raises(InputError, match="no picture"):
        panel([])
    with pytest.raises(InputError, match="'depth'"):
        panel([("depth", np.zeros((4, 4), np.uint8))])
    with pytest.raises(InputError, match="float64"):
        panel([("depth", np.zeros((4, 4, 3)))])


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (1236.0, 3635.0, ["1500", "2000", "2500", "3000", "3500"]),
        (-0.1, 0.1, ["-0.10", "-0.05", "0.00", "0.05", "0.10"]),
        (0.0, 1e9, ["0", "2e+08", "4e+08", "6e+08", "8e+08", "1e+09"]),
    ],
)
def test_ticks_are_round_numbers(low, high, labels):
    assert [label for _, label in ticks(low, high, 5)] == labels


@pytest.mark.parametrize(("low", "high"), [(1e-9, 2e-9), (3.0, 3.0001), (-7e5, 12.0), (0.0, 0.3)])
def test_ticks_lie_within_the_limits(low, high):
    values = [value for value, _ in ticks(low, high, 6)]
    assert 2 <= len(values) <= 8
    slack = 1e-6 * (high - low)
    assert low - slack <= min(values) < max(values) <= high + slack


def test_overview_with_and_without_truth():
    rng = np.random.default_rng(0)
    low, depth = rng.uniform(1, 2, (6, 8)), rng.uniform(1, 2, (240, 320))
    low_valid, valid, measured = low < 1.9, np.ones(depth.shape, bool), depth < 1.9
    guide = np.zeros((240, 320, 3), np.uint8)
    arguments = (guide, low, low_valid, depth, valid)
    short = overview(*arguments, unit="m")
    long = overview(*arguments, unit="m", measured=measured, truth=depth + 0.1)
    assert short.shape[1] < long.shape[1] <= 2400
    assert short.shape[0] == long.shape[0]


def test_preview_is_written_as_png(tmp_path):
    rgb = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    write_preview(tmp_path / "preview.png", rgb)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "preview.png")), rgb)
    with pytest.raises(FileFormatError, match=r"\.png"):
        write_preview(tmp_path / "preview.gif", rgb)
