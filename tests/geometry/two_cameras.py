"""A tilted wall and a box before it, by formula, for a ToF camera and a guide's camera beside it."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.rig import Rig

TOF = Intrinsics.guess(160, 120, 50.0)
GUIDE = Intrinsics.guess(810, 610, 50.0)
WALL = (np.array([0.45, -0.25, 1.0]), 1.6)  # n . X = 1.6 in the guide's frame
BOX = (np.array([-0.22, -0.15, 0.9]), np.array([0.14, 0.12, 1.1]))


def turned(degrees):
    """About the y axis."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return ((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c))


RIG = Rig(TOF, GUIDE, turned(1.5), (0.08, 0.005, -0.01))


@dataclass
class Hit:
    """What rays meet first: the distance in lengths of the ray, and whether it is the box."""

    distance: np.ndarray
    box: np.ndarray


def trace(origin, rays, box=True, shrink=0.0):
    """Wall and box by formula; origin and rays in the guide's frame; the box is smaller by `shrink`."""
    normal, offset = WALL
    wall = (offset - origin @ normal) / (rays @ normal)
    if not box:
        return Hit(wall, np.zeros(wall.shape, bool))
    with np.errstate(divide="ignore"):
        near, far = (
            (corner + inward - origin) / rays for corner, inward in zip(BOX, (shrink, -shrink), strict=True)
        )
    enter, leave = np.minimum(near, far).max(-1), np.maximum(near, far).min(-1)
    hit = (enter <= leave) & (enter > 0) & (enter < wall)
    return Hit(np.where(hit, enter, wall), hit)


def view(camera, rig_to_guide=None, box=True):
    """(Hit with z as distance, points in the guide's frame) of every pixel of a camera."""
    rays, origin = camera.rays(), np.zeros(3)
    if rig_to_guide is not None:
        rays, origin = rays @ np.asarray(rig_to_guide.rotation).T, np.asarray(rig_to_guide.translation)
    hit = trace(origin, rays, box)
    return hit, origin + hit.distance[..., None] * rays


def tof_pixels(points, rig=RIG):
    """(x, y) in the ToF image of points in the guide's frame."""
    local = (points - np.asarray(rig.translation)) @ np.asarray(rig.rotation)
    pixels = rig.source.project(local)
    return pixels[..., 0], pixels[..., 1]


def seen_by_tof(points, box=True, rig=RIG, shrink=0.0):
    """True where nothing stands between the ToF camera and a point, and the point lies in its image."""
    origin = np.asarray(rig.translation)
    free = trace(origin, points - origin, box, shrink).distance > 1 - 1e-6
    x, y = tof_pixels(points, rig)
    return free & (x > 0) & (x < rig.source.width) & (y > 0) & (y < rig.source.height)


def tensor(values):
    """(H, W) -> (1, 1, H, W), float32 where it is a number."""
    found = torch.from_numpy(np.ascontiguousarray(values))[None, None]
    return found if found.dtype == torch.bool else found.float()


def radial(camera, z):
    """Distance along the ray."""
    return z * np.linalg.norm(camera.rays(), axis=-1)
