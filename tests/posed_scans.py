"""Scans of an analytic sphere, whose every point is known."""

import numpy as np

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.poses import Pose
from primaldepth.geometry.views import PosedView

RADIUS, AWAY = 0.5, 2.0
CAMERA = Intrinsics.guess(160, 120, 50.0)


def look_at(angle: float, height: float) -> Pose:
    """Of a camera 2 m from the origin, which it looks at."""
    place = AWAY * np.array([np.cos(height) * np.sin(angle), np.sin(height), -np.cos(height) * np.cos(angle)])
    forward = -place / AWAY
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right)
    return Pose.of(np.stack([right, np.cross(forward, right), forward], axis=1), place)


def sphere_view(pose: Pose, camera: Intrinsics = CAMERA, off: float = 0.0, sigma: float | None = None):
    """What a camera sees of the sphere, its depth off by so many metres; red where x > 0, else blue."""
    rays, place = camera.rays() @ np.transpose(pose.rotation), np.array(pose.translation)
    a, b, c = (rays**2).sum(-1), rays @ place, place @ place - RADIUS**2
    hit = b * b - a * c > 0
    z = np.where(hit, (-b - np.sqrt(np.maximum(b * b - a * c, 0.0))) / a, 0.0)
    right = (place + z[..., None] * rays)[..., :1] > 0
    colors = np.where(right, [200, 20, 20], [20, 20, 200]).astype(np.uint8)
    known = None if sigma is None else np.full(z.shape, sigma)
    return PosedView(z + off * hit, hit, camera, pose, colors, known)


def sphere_views(**how):
    """Twenty-four of them all around."""
    return [
        sphere_view(look_at(angle, height), **how)
        for height in (-0.9, 0.0, 0.9)
        for angle in np.arange(8) * np.pi / 4
    ]
