"""Pairwise operators by definition."""

import pytest
import torch

from primaldepth.operators import PairwiseDifference, PairwiseSlope, half_window
from primaldepth.operators.pairwise.reference import ends

SIZE = (6, 8)


def coordinates():
    """(y, x) of every pixel, each (1, 1, H, W)."""
    y, x = torch.meshgrid(torch.arange(SIZE[0]), torch.arange(SIZE[1]), indexing="ij")
    return y.double()[None, None], x.double()[None, None]


def inside(offset):
    """(H, W) True where x + offset lies in the image, pixel by pixel."""
    (height, width), (dy, dx) = SIZE, offset
    rows = [[0 <= y + dy < height and 0 <= x + dx < width for x in range(width)] for y in range(height)]
    return torch.tensor(rows)


@pytest.mark.parametrize(("size", "count"), [(3, 4), (5, 12), (7, 24), (17, 144)])
def test_half_window_holds_each_unordered_pair_once(size, count):
    offsets = half_window(size)
    opposite = {(-dy, -dx) for dy, dx in offsets}
    r = size // 2
    full = {(dy, dx) for dy in range(-r, r + 1) for dx in range(-r, r + 1)} - {(0, 0)}
    assert len(offsets) == len(set(offsets)) == count
    assert not opposite & set(offsets)
    assert opposite | set(offsets) == full


@pytest.mark.parametrize("size", [1, 0, -3, 4])
def test_half_window_refuses_sizes_without_a_centre(size):
    with pytest.raises(ValueError, match="odd and at least 3"):
        half_window(size)


@pytest.mark.parametrize("offset", [(0, 1), (-2, 3), (5, -7), (6, 0), (0, -8), (-40, 2), (3, 90)])
def test_ends_are_exactly_the_pairs_inside(offset):
    index = torch.arange(SIZE[0] * SIZE[1]).view(SIZE)
    x, y = ends(offset, SIZE)
    assert index[x].flatten().tolist() == index[inside(offset)].tolist()
    assert (index[y] - index[x] == offset[0] * SIZE[1] + offset[1]).all()


def test_differences_of_a_ramp():
    y, x = coordinates()
    offsets = half_window(5)
    Ku = PairwiseDifference(SIZE, offsets)(2 * y + 5 * x)[0]
    for (dy, dx), difference in zip(offsets, Ku, strict=True):
        expected = torch.where(inside((dy, dx)), float(-2 * dy - 5 * dx), 0.0)
        assert difference.tolist() == expected.tolist()


def test_two_channels_do_not_mix():
    y, x = coordinates()
    offsets = half_window(3)
    both = PairwiseDifference(SIZE, offsets, channels=2)(torch.cat([y**2, x**3], dim=1))
    one = PairwiseDifference(SIZE, offsets)
    assert both.equal(torch.cat([one(y**2), one(x**3)], dim=1))


def test_adjoint_of_one_pair():
    p = torch.zeros(1, 1, *SIZE, dtype=torch.float64)
    p[0, 0, 3, 4] = 2.0
    u = PairwiseDifference(SIZE, [(-1, 2)]).adjoint(p)
    assert (u[0, 0, 3, 4], u[0, 0, 2, 6], u.abs().sum()) == (2.0, -2.0, 4.0)


def test_adjoint_ignores_what_lies_outside():
    p = torch.ones(1, 1, *SIZE, dtype=torch.float64)
    p[0, 0][inside((-2, 3))] = 0.0
    assert PairwiseDifference(SIZE, [(-2, 3)]).adjoint(p).abs().max() == 0


def test_slope_by_hand():
    u = torch.zeros(1, 3, *SIZE, dtype=torch.float64)
    u[0, :, 2, 2] = torch.tensor([10.0, 1.0, 3.0])
    u[0, :, 1, 4] = torch.tensor([4.0, 5.0, -1.0])
    # u(x) - u(y) - <(v(x) + v(y)) / 2, x - y> with x - y = (1, -2)
    expected = (10 - 4) - (1 * (1 + 5) / 2 + -2 * (3 - 1) / 2)
    assert PairwiseSlope(SIZE, [(-1, 2)])(u)[0, 0, 2, 2] == expected == 5


@pytest.mark.parametrize("window", [3, 7, 17])
def test_slope_is_zero_on_quadratics_with_their_gradient(window):
    y, x = coordinates()
    plane = torch.cat([2 * y - 3 * x + 7, torch.full_like(y, 2), torch.full_like(x, -3)], dim=1)
    bowl = torch.cat([y**2 - 0.5 * x * y + 3 * x**2, 2 * y - 0.5 * x, 6 * x - 0.5 * y], dim=1)
    K = PairwiseSlope(SIZE, half_window(window))
    assert K(plane).abs().max() < 1e-12
    assert K(bowl).abs().max() < 1e-12


def test_slope_is_not_zero_on_cubics():
    _, x = coordinates()
    cubic = torch.cat([x**3, torch.zeros_like(x), 3 * x**2], dim=1)
    assert PairwiseSlope(SIZE, half_window(3))(cubic).abs().max() > 0.1
