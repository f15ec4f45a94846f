import pytest
import torch

from primaldepth.variational.conjugate_gradients import conjugate_gradients


def systems(n=12, batch=3, seed=0):
    """Symmetric positive matrices whose diagonals span four orders of magnitude."""
    random = torch.Generator().manual_seed(seed)
    root = torch.randn((batch, n, n), generator=random, dtype=torch.float64)
    scale = torch.logspace(-2, 2, n, dtype=torch.float64)
    matrix = scale.view(-1, 1) * (root @ root.mT + n * torch.eye(n, dtype=torch.float64)) * scale
    return matrix, torch.randn((batch, n), generator=random, dtype=torch.float64)


def product(matrix):
    return lambda u: (matrix @ u[..., None])[..., 0]


def test_the_dense_solution_and_no_residual():
    matrix, b = systems()
    found = conjugate_gradients(
        product(matrix), b, torch.zeros_like(b), diagonal=matrix.diagonal(dim1=1, dim2=2), tolerance=1e-12
    )
    expected = torch.linalg.solve(matrix, b)
    assert (found.u - expected).norm() < 1e-8 * expected.norm()
    assert (product(matrix)(found.u) - b).norm() < 1e-8 * b.norm()
    assert found.residual < 1e-12


def test_as_many_steps_as_unknowns_are_enough():
    matrix, b = systems(n=5)
    diagonal = matrix.diagonal(dim1=1, dim2=2)
    found = conjugate_gradients(product(matrix), b, torch.ones_like(b), diagonal=diagonal, iterations=5)
    assert found.iterations == 5
    assert found.residual < 1e-8


def test_the_diagonal_saves_steps():
    matrix, b = systems()
    plain = conjugate_gradients(product(matrix), b, torch.zeros_like(b), iterations=10, tolerance=0.0)
    preconditioned = conjugate_gradients(
        product(matrix),
        b,
        torch.zeros_like(b),
        diagonal=matrix.diagonal(dim1=1, dim2=2),
        iterations=10,
        tolerance=0.0,
    )
    expected = torch.linalg.solve(matrix, b)
    assert (preconditioned.u - expected).norm() < 1e-2 * (plain.u - expected).norm()


def test_a_solution_is_left_alone():
    matrix, b = systems()
    exact = torch.linalg.solve(matrix, b)
    found = conjugate_gradients(product(matrix), b, exact)
    assert found.iterations == 0
    assert found.u.equal(exact)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-4, 1e-8])
def test_the_tolerance_is_met_by_every_image_and_none_disturbs_another(tolerance):
    matrix, b = systems()
    b = b * torch.tensor([1e-3, 1.0, 1e3], dtype=b.dtype).view(-1, 1)
    together = conjugate_gradients(
        product(matrix), b, torch.zeros_like(b), tolerance=tolerance, iterations=500
    )
    left = (product(matrix)(together.u) - b).norm(dim=1) / b.norm(dim=1)
    assert left.max() <= tolerance * 1.001
    for i in range(3):
        alone = conjugate_gradients(
            product(matrix[i : i + 1]),
            b[i : i + 1],
            torch.zeros_like(b[i : i + 1]),
            tolerance=tolerance,
            iterations=500,
        )
        assert (alone.u[0] - together.u[i]).norm() < 1e-6 * alone.u.norm()


def test_singular_systems_with_a_solution():
    """The mean is free; it stays that of the start."""
    matrix = torch.tensor([[[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]], dtype=torch.float64)
    b = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)
    found = conjugate_gradients(product(matrix), b, torch.full_like(b, 5.0), tolerance=1e-12).u
    assert torch.allclose(found, torch.tensor([[6.0, 5.0, 4.0]], dtype=torch.float64))


def test_nothing_asked_nothing_done():
    matrix, b = systems()
    found = conjugate_gradients(product(matrix), torch.zeros_like(b), torch.zeros_like(b))
    assert found.u.equal(torch.zeros_like(b))
    assert found.residual == 0.0


def test_arguments_are_untouched():
    matrix, b = systems()
    start = torch.ones_like(b)
    conjugate_gradients(product(matrix), b, start)
    assert start.equal(torch.ones_like(b))
    assert b.equal(systems()[1])
