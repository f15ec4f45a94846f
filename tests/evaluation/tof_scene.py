"""A tilted wall and a board before it, by formula, as the renderer would give them for two cameras."""

import numpy as np

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.rig import Rig

GUIDE, TOF = Intrinsics.guess(810, 610, 50.0), Intrinsics.guess(160, 120, 52.0)
ANGLE = np.radians(1.5)
POSE = np.array(
    [
        [np.cos(ANGLE), 0.0, np.sin(ANGLE), 0.06],
        [0.0, 1.0, 0.0, -0.01],
        [-np.sin(ANGLE), 0.0, np.cos(ANGLE), 0.02],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
RIG = Rig.from_matrix(TOF, GUIDE, POSE)
WALL, BOARD_Z, BOARD = np.array([0.3, -0.2, 1.0]) / 1.5, 0.9, (0.2, 0.15)


def first_hit(origin, rays, board):
    """Lengths along the rays, origin and rays in the guide's axes."""
    t = (1.0 - origin @ WALL) / (rays @ WALL)
    if board:
        near = (BOARD_Z - origin[2]) / rays[..., 2]
        at = np.abs(origin + near[..., None] * rays)
        t = np.where((at[..., 0] < BOARD[0]) & (at[..., 1] < BOARD[1]), np.minimum(near, t), t)
    return t


def tof_arrays(board=True):
    """What `Renderer.render` and `camera_arrays` give for a scene with two cameras."""
    rays = TOF.rays()
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    distance = first_hit(POSE[:3, 3], rays @ POSE[:3, :3].T, board)
    depth = first_hit(np.zeros(3), GUIDE.rays(), board)
    grey = np.where(depth < 1.0, 200, 90).astype(np.uint8)
    return {
        "image": np.repeat(grey[..., None], 3, axis=-1),
        "depth": depth.astype(np.float32),
        "valid": np.ones(depth.shape, bool),
        "tof_distance": distance.astype(np.float32),
        "tof_amplitude": (0.5 / distance**2).astype(np.float32),
        "tof_valid": np.ones(distance.shape, bool),
        "guide_camera": np.array([GUIDE.fx, GUIDE.fy, GUIDE.cx, GUIDE.cy]),
        "tof_camera": np.array([TOF.fx, TOF.fy, TOF.cx, TOF.cy]),
        "guide_from_tof": POSE,
    }
