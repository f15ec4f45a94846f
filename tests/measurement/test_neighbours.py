"""False samples stand out; edges, corners and clutter do not."""

import torch

from primaldepth.measurement.neighbours import standing_out


def marked(depth: torch.Tensor) -> torch.Tensor:
    return standing_out(depth[None, None], depth[None, None] > 0)[0, 0]


def test_up_to_three_false_samples_stand_out() -> None:
    depth = torch.full((12, 12), 1.3)
    depth[3, 3] = 8.0
    depth[8, 5:8] = 8.0
    assert marked(depth).nonzero().tolist() == [[3, 3], [8, 5], [8, 6], [8, 7]]


def test_edges_and_corners_of_surfaces_do_not() -> None:
    depth = torch.full((12, 12), 3.0)
    depth[4:8, 4:8] = 1.0
    depth[:, 10:] = 0.0
    assert not marked(depth).any()


def test_things_of_many_depths_do_not() -> None:
    depth = 1.0 + 3.0 * torch.rand(40, 40, generator=torch.Generator().manual_seed(0))
    assert marked(depth).float().mean() < 0.01
