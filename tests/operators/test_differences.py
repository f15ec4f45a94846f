"""Differences by hand."""

import torch

from primaldepth.operators import ForwardDifference, GradientMinusField, SymmetrizedGradient


def image(rows):
    return torch.tensor(rows, dtype=torch.float64)[None, None]


def coordinates(height, width):
    """(y, x) of every pixel, each (1, 1, H, W)."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return y.double()[None, None], x.double()[None, None]


def test_gradient_of_three_by_three():
    u = image([[1, 2, 4], [7, 11, 16], [22, 29, 37]])
    d_y, d_x = ForwardDifference((3, 3))(u)[0]
    assert d_y.tolist() == [[6, 9, 12], [15, 18, 21], [0, 0, 0]]
    assert d_x.tolist() == [[1, 2, 0], [4, 5, 0], [7, 8, 0]]


def test_adjoint_is_minus_the_divergence_by_hand():
    p = torch.cat([image([[1, 2], [50, 60]]), image([[3, 70], [4, 80]])], dim=1)
    # values in the last row of p_y and the last column of p_x have no difference behind them
    assert ForwardDifference((2, 2)).adjoint(p)[0, 0].tolist() == [[-1 - 3, -2 + 3], [1 - 4, 2 + 4]]


def test_symmetrized_gradient_by_hand():
    v = torch.cat([image([[0, 1], [5, 0]]), image([[0, 3], [2, 0]])], dim=1)
    E = SymmetrizedGradient((2, 2))(v)[0, :, 0, 0]
    assert torch.allclose(E, torch.tensor([5.0, 3.0, (1 + 2) / 2**0.5], dtype=torch.float64))


def test_symmetrized_gradient_of_a_rigid_rotation_is_zero():
    y, x = coordinates(5, 6)
    E = SymmetrizedGradient((5, 6))(torch.cat([0.3 * x + 2, -0.3 * y - 1], dim=1))
    assert E[:, :, :-1, :-1].abs().max() < 1e-14


def test_coupling_is_zero_on_a_plane_with_its_slope():
    y, x = coordinates(5, 6)
    plane = torch.cat([3 * y - 2 * x + 1, torch.full_like(y, 3), torch.full_like(x, -2)], dim=1)
    departure = GradientMinusField((5, 6))(plane)[0]
    assert departure[0, :-1].abs().max() < 1e-14
    assert departure[1, :, :-1].abs().max() < 1e-14
