"""A result as a live picture: the image, its depth, and its point cloud seen from the side."""

import math

import numpy as np
from numpy.typing import NDArray

from primaldepth.pictures.point_pictures import draw_points
from primaldepth.pictures.preview import colorize, robust_limits
from primaldepth.pipeline.outcome import Outcome, first, first_mask
from primaldepth.pipeline.outputs import guide_camera, rgb_of

RGB = NDArray[np.uint8]
MOST_POINTS = 80_000
SWAY = 0.45  # radians to either side
PERIOD = 120  # frames of one sway


def live_picture(outcome: Outcome, index: int) -> RGB:
    """Return image, depth and cloud side by side, (H, 3 W, 3); without the cloud for disparities.

    Args:
        outcome: of one frame.
        index: its number, by which the cloud's view turns.
    """
    image = rgb_of(outcome.inputs.frame.guide)
    kept = outcome.kept
    depth = first(kept.depth)
    valid = first_mask(kept.valid) & np.isfinite(depth) & (depth > 0)
    parts = [image, colorize(depth, valid, robust_limits(depth, valid) if valid.any() else None)]
    if outcome.inputs.kind != "disparity":
        angle = SWAY * math.sin(2 * math.pi * index / PERIOD)
        parts.append(cloud_picture(depth, valid, image, outcome, angle))
    return np.concatenate(parts, axis=1)


def cloud_picture(
    depth: NDArray[np.float64], valid: NDArray[np.bool_], image: RGB, outcome: Outcome, angle: float
) -> RGB:
    """Return a picture of the cloud, by a camera turned by `angle` around the middle of the scene."""
    height, width = depth.shape
    step = max(1, math.ceil(math.sqrt(depth.size / MOST_POINTS)))
    some = valid[::step, ::step]
    camera = guide_camera(outcome.inputs)
    z = depth[::step, ::step][some]
    points, colours = camera.rays()[::step, ::step][some] * z[:, None], image[::step, ::step][some]
    middle = np.array([0.0, 0.0, float(np.median(z)) if len(z) else 1.0])
    c, s = math.cos(angle), math.sin(angle)
    seen = (points - middle) @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]) + middle
    seen, colours = seen[seen[:, 2] > 0.05 * middle[2]], colours[seen[:, 2] > 0.05 * middle[2]]
    pixels = seen[:, :2] / seen[:, 2:] * [camera.fx, camera.fy] + [camera.cx, camera.cy]
    return draw_points(seen, colours, pixels, (height, width), step)
