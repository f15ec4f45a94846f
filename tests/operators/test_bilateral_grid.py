import pytest
import torch

from primaldepth.operators.bilateral_grid import BilateralGrid, cells, luma_chroma


def guide(size=(12, 17), channels=3, seed=0):
    return torch.rand((channels, *size), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def grid(size=(12, 17), luma=0.3, chroma=0.3):
    return BilateralGrid(cells(guide(size), 4.0, luma, chroma))


def randn(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def dense_blur(found):
    return torch.stack([found.blur(unit) for unit in torch.eye(found.vertices, dtype=torch.float64)])


def test_primaries_span_the_chroma():
    primaries = torch.eye(3).view(3, 3, 1)  # pixels red, green, blue
    luma, blueness, redness = luma_chroma(primaries)[..., 0]
    assert torch.allclose(luma, torch.tensor([0.299, 0.587, 0.114]))
    assert blueness.max() == blueness[2] == pytest.approx(0.5)
    assert redness.max() == redness[0] == pytest.approx(0.5)


def test_grey_has_no_chroma():
    grey = guide(channels=1)
    assert luma_chroma(grey)[1:].abs().max() == 0
    assert torch.allclose(luma_chroma(grey.expand(3, -1, -1)), luma_chroma(grey), atol=1e-12)


def test_cells_are_where_position_and_colour_say():
    image = torch.tensor([[[0.0, 0.1, 0.1, 0.9]]])
    assert cells(image, 2.0, 0.25, 1.0)[:, 0].tolist() == [
        [0] * 4,
        [0, 0, 1, 1],
        [0, 0, 0, 3],
        [0] * 4,
        [0] * 4,
    ]
    assert cells(image, 2.0, 0.25, 1.0, shift=0.5)[1, 0].tolist() == [0, 1, 1, 2]


def test_slice_is_the_adjoint_of_splat():
    found = grid()
    image, values = randn((1, 1, 12, 17), 1), randn((found.vertices,), 2)
    assert torch.allclose((found.splat(image) * values).sum(), (image * found.slice(values)).sum())


def test_splat_counts_the_pixels_of_one_cell_together():
    found = grid()
    code = cells(guide(), 4.0, 0.3, 0.3).flatten(1)
    same = (code[:, :, None] == code[:, None, :]).all(dim=0)
    counted = found.slice(found.splat(torch.ones(1, 1, 12, 17, dtype=torch.float64))).flatten()
    assert counted.equal(same.sum(dim=1).double())


def test_blur_joins_cells_that_touch_along_one_axis():
    found, code = grid(), cells(guide(), 4.0, 0.3, 0.3).flatten(1)
    distance = (code[:, :, None] - code[:, None, :]).abs().sum(dim=0)
    expected = 10.0 * (distance == 0) + 1.0 * (distance == 1)
    blur = dense_blur(found)
    assert blur.equal(blur.mT)
    assert blur[found.vertex][:, found.vertex].equal(expected.double())
    assert found.blur_diagonal == 10.0


def test_bistochastic_rows_and_pixels_match():
    found = grid()
    mass = found.splat(torch.ones(1, 1, 12, 17, dtype=torch.float64))
    n, m = found.bistochastic(mass, iterations=60)
    assert (n * found.blur(n) - m).abs().max() < 1e-12
    assert (m / mass - 1).abs().max() < 1e-6


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 1)])
def test_small_images(size):
    found = grid(size)
    assert found.slice(found.splat(torch.ones(1, 1, *size, dtype=torch.float64))).shape == (1, 1, *size)


def test_one_colour_far_apart_has_no_neighbour_in_colour():
    image = torch.cat([torch.zeros(1, 4, 4), torch.ones(1, 4, 4)], dim=2)
    found = BilateralGrid(cells(image, 100.0, 0.1, 0.1))
    assert found.vertices == 2
    assert dense_blur(found).equal(10.0 * torch.eye(2, dtype=torch.float64))
