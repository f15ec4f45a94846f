"""The motion between two views of a plane that has a formula."""

import pytest
import torch

from primaldepth.geometry.ego_motion import carried, ego_motion, in_view

H, W = 60, 80
FOCAL = 70.0


def plane(shift=(0.0, 0.0, 0.0), yaw=0.0, gain=1.0):
    """(image, inverse depth, points on the plane z = 2 + 0.5 x) seen by a moved camera."""
    x = ((torch.arange(W, dtype=torch.float64) + 0.5 - W / 2) / FOCAL).expand(H, W)
    y = ((torch.arange(H, dtype=torch.float64) + 0.5 - H / 2) / FOCAL)[:, None].expand(H, W)
    turn = torch.tensor(yaw, dtype=torch.float64)
    rx, rz = turn.cos() * x + turn.sin(), turn.cos() - turn.sin() * x
    depth = (2.0 - shift[2] + 0.5 * shift[0]) / (rz - 0.5 * rx)
    a, b = shift[0] + depth * rx, shift[1] + depth * y
    image = 0.5 + 0.1 * ((7 * a).sin() + (6 * b + a).cos() + (11 * a - 9 * b).sin())
    return (gain * image)[None, None].float(), (1 / depth)[None, None].float(), torch.stack([a, b])


MOVES = {
    "sideways": {"shift": (0.03, -0.02, 0.0)},
    "forward": {"shift": (0.0, 0.0, 0.06)},
    "turn": {"yaw": 0.02},
    "all": {"shift": (0.02, 0.01, 0.03), "yaw": -0.01},
    "darker": {"shift": (0.03, 0.0, 0.0), "gain": 0.8},
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_points_are_followed(move):
    before, _, places = plane()
    now, inverse, points = plane(**move)
    motion = ego_motion(before, now, inverse)
    inner = (..., slice(5, -5), slice(5, -5))
    there = carried(places[None].float(), motion.flow)[0]
    spacing = 2.0 / FOCAL  # metres on the plane per pixel, about
    assert float((there - points)[inner].abs().max()) < 0.2 * spacing
    assert motion.gain == pytest.approx(1 / move.get("gain", 1.0), abs=0.03)


def test_nothing_moves():
    before, inverse, _ = plane()
    noisy = before + 0.01 * torch.randn(before.shape, generator=torch.Generator().manual_seed(0))
    assert ego_motion(before, noisy, inverse).still


def test_a_part_that_moves_by_itself_has_no_say():
    before, inverse, _ = plane()
    now = before.clone()
    now[..., 10:40, 20:50] = before[..., 10:40, 24:54]
    assert ego_motion(before, now, inverse).still


@pytest.mark.parametrize(
    "image", [torch.full((1, 1, 3, 5), 0.5), torch.rand(1, 1, 1, 1), torch.zeros(1, 1, 40, 9)]
)
def test_images_that_tell_nothing(image):
    assert ego_motion(image, image, torch.ones_like(image)).still


def test_what_was_outside_is_out_of_view():
    flow = torch.zeros(1, 2, 4, 6)
    flow[:, 0] = 2.0
    assert in_view(flow)[0, 0, 0].tolist() == [True] * 4 + [False] * 2
