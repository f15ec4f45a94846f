"""A textured wall and a card before it, seen by a camera that may move: exact depth for every frame."""

import torch

from primaldepth.core.frame import Frame

H, W, SCALE, SIGMA = 72, 96, 4, 0.02


def view(camera=(0.0, 0.0, 0.0), card=(0.0, 1.8), yaw=0.0):
    """(guide, depth), (1, 1, H, W): the camera's place in metres, x and z of the card, turn of the camera."""
    focal = 0.9 * W
    x = ((torch.arange(W) + 0.5 - W / 2) / focal).expand(H, W)
    y = ((torch.arange(H) + 0.5 - H / 2) / focal)[:, None].expand(H, W)
    turn = torch.tensor(yaw)
    rx, rz = (
        turn.cos() * x + turn.sin(),
        turn.cos() - turn.sin() * x,
    )  # ray in the room, depth 1 of the camera
    depth = (3.0 - camera[2] + 0.3 * camera[0]) / (rz - 0.3 * rx)  # the wall z = 3 + 0.3 x
    guide = _texture(camera[0] + depth * rx, camera[1] + depth * y, 0.0)
    near = (card[1] - camera[2]) / rz
    across, up = camera[0] + near * rx - card[0], camera[1] + near * y
    on_card = (across.abs() < 0.4) & (up.abs() < 0.35)
    guide = torch.where(on_card, _texture(across, up, 2.0), guide)
    return guide[None, None], torch.where(on_card, near, depth)[None, None]


def _texture(a, b, phase):
    """Smooth waves of several lengths."""
    waves = ((5.0, 1.0), (-3.0, 6.0), (9.0, -7.0), (2.0, 12.0), (17.0, 4.0))
    return 0.5 + 0.1 * sum((p * a + q * b + phase + p * q).sin() for p, q in waves)


def frame_of(guide, depth, seed, sigma=SIGMA):
    """The samples of a sensor with even noise."""
    noise = torch.Generator().manual_seed(seed)
    low = torch.nn.functional.avg_pool2d(depth, SCALE)
    low = low + sigma * torch.randn(low.shape, generator=noise)
    image = (guide + 0.005 * torch.randn(guide.shape, generator=noise)).clamp(0, 1)
    return Frame(low, torch.ones_like(low, dtype=torch.bool), image, sigma=torch.full_like(low, sigma))


def sequence(name, count=10):
    """(frame, true depth) of each moment."""
    moves = {
        "still": lambda t: {},
        "sideways": lambda t: {"camera": (0.01 * t, 0.004 * t, 0.0)},
        "forward": lambda t: {"camera": (0.0, 0.0, 0.02 * t)},
        "turn": lambda t: {"yaw": 0.006 * t},
        "card": lambda t: {"card": (0.03 * t - 0.15, 1.8)},
        "approach": lambda t: {"card": (0.0, 1.8 - 0.008 * t)},
    }
    for t in range(count):
        guide, depth = view(**moves[name](t))
        yield frame_of(guide, depth, seed=t), depth


MOVES = ("still", "sideways", "forward", "turn", "card", "approach")
