"""Edges of depth lie on its steps, and nowhere else; faint edges of an image count beside strong ones."""

import numpy as np
import torch

from primaldepth.geometry.edge_fields import depth_edges, image_edges


def slanted(step: float, noise: float = 0.0) -> torch.Tensor:
    """Draw a plane whose right half, from column 32, is nearer by a part of its distance."""
    columns = np.arange(64, dtype=np.float32)
    depth = np.tile(1.0 / (0.25 + 0.002 * columns), (48, 1))
    depth[:, 32:] *= 1.0 - step
    depth *= 1.0 + noise * np.random.default_rng(0).standard_normal(depth.shape)
    return torch.tensor(depth, dtype=torch.float32)[None, None]


def clearness(depth: torch.Tensor) -> torch.Tensor:
    return depth_edges(depth, depth > 0, "z").abs()


def test_a_large_step_is_an_edge_of_the_two_samples_beside_it() -> None:
    found = clearness(slanted(0.7))
    assert (found[:, 31:33] > 0.9).all()
    assert (found[:, :31] == 0).all()
    assert (found[:, 33:] == 0).all()


def test_the_normal_of_a_step_lies_across_it() -> None:
    depth = slanted(0.3)
    assert torch.allclose(depth_edges(depth, depth > 0, "z")[:, 31:33].angle(), torch.zeros(48, 2), atol=1e-3)
    across = depth.mT.contiguous()
    assert torch.allclose(
        depth_edges(across, across > 0, "z")[31:33].angle().abs(), torch.full((2, 48), np.pi), atol=1e-3
    )


def test_a_faint_step_counts_unless_noise_is_as_large() -> None:
    assert (clearness(slanted(0.02))[:, 31:33] > 0.2).all()
    assert clearness(slanted(0.0, noise=0.004)).mean() < 0.01
    assert (clearness(slanted(0.3, noise=0.004))[:, 31:33] > 0.9).float().mean() > 0.9


def test_holes_in_the_nearer_side_make_no_edges() -> None:
    depth = slanted(0.0)
    holes = torch.rand(depth.shape, generator=torch.Generator().manual_seed(0)) < 0.2
    valid = ~holes
    assert (depth_edges(torch.where(valid, depth, 0.0), valid, "z").abs() == 0).float().mean() > 0.99


def test_a_faint_edge_counts_beside_a_strong_one() -> None:
    image = torch.zeros(1, 1, 48, 48)
    image[..., 24:] = 0.15
    image[..., 30:] = 1.0
    found = image_edges(image).abs()
    assert (found[:, 29:31] > 0.7).all()
    assert (found[:, 23:25] > 0.3).all()
    assert (found[:, :20] == 0).all()
