"""How a depth camera is turned against the image's, from the edges of frames that both took.

A small turn of a camera moves, turns and zooms what it sees; `View` has these. The views of several frames of
one rig are the same, so that their scores are added before the best one is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.geometry.alignment import (
    FINE_GRID,
    FINE_RATIO,
    FINE_REACH,
    GRID,
    LEAST,
    RATIO,
    REACH,
    STEPS,
    Edges,
    Search,
    View,
    around,
)
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.motion import as_tuples, rotation

TURNS = [math.radians(1.5 * step) for step in range(-4, 5)]
FINE_TURNS = [math.radians(0.25 * step) for step in range(-6, 7)]
FINE_ZOOMS = 4  # steps
CLEARLY = 1.25  # times the z of any other view
MOST_FRAMES = 30  # more do not make it better


@dataclass(frozen=True, slots=True)
class CameraFit:
    """The view that fits frames of one rig best.

    Args:
        view: how the depth has to be laid over the image.
        score: z of the view over all frames, as in `alignment`, divided by the root of their number.
        rival: the largest of any other view.
    """

    view: View
    score: float
    rival: float

    @property
    def certain(self) -> bool:
        """Whether no other view fits nearly as well."""
        return self.score >= max(LEAST, CLEARLY * self.rival)


def fit_view(frames: Sequence[Frame], kind: str, *, zoom: bool) -> CameraFit:
    """Find the offset, the turn and the zoom in which depth edges lie on image edges.

    Args:
        frames: of one rig, with images of one size.
        kind: of the depth; "disparity" or another.
        zoom: whether the field of view of the depth is unknown.

    Raises:
        InputError: if there is no frame, or the sizes of the images differ.
    """
    if not frames or len({frame.high_size for frame in frames}) > 1:
        raise InputError("frames", "expected at least one, with images of one size")
    chosen = frames[:MOST_FRAMES]
    coarse = [Search.of(_edges(frame, kind, GRID), REACH) for frame in chosen]
    view, score, rival = _best(coarse, View(), TURNS, RATIO, STEPS if zoom else 0)
    fine = [Search.of(_edges(frame, kind, FINE_GRID), FINE_REACH) for frame in chosen]
    turns = [view.turn + each for each in FINE_TURNS]
    view, _, _ = _best(fine, view, turns, FINE_RATIO, FINE_ZOOMS if zoom else 0)
    return CameraFit(view, score, rival)


def _edges(frame: Frame, kind: str, grid: int) -> Edges:
    return Edges.of(frame.depth, frame.valid, frame.guide, kind, grid)


def _best(
    searches: Sequence[Search], about: View, turns: Sequence[float], ratio: float, steps: int
) -> tuple[View, float, float]:
    """Return the best view around one, its score, and that of the best with another zoom or place."""
    search, weight = searches[0], len(searches) ** -0.5
    views = [replace(about, turn=turn) for turn in turns]
    scores = [
        weight * torch.stack([each.scores(view, ratio, steps) for each in searches]).sum(0) for view in views
    ]
    tops = [float(each.max()) for each in scores]
    at = int(np.argmax(tops))
    place, view = search.summit(scores[at], views[at], ratio)
    if 0 < at < len(turns) - 1:
        before, top, after = tops[at - 1 : at + 2]
        bend = min(before - 2.0 * top + after, -1e-9)
        view = replace(view, turn=view.turn + (turns[1] - turns[0]) * 0.5 * (before - after) / bend)
    return view, tops[at], max(_rival(each, place, search.reach) for each in scores)


def _rival(z: Tensor, place: tuple[int, int, int], reach: int) -> float:
    """Return the largest score that is not near a place."""
    apart = max(2, round(0.4 * reach))
    others = z.clone()
    others[around(place, (4, apart, apart))] = -torch.inf
    return float(others.max())


def with_view(
    cameras: Cameras, view: View, depth_size: tuple[int, int], image_size: tuple[int, int]
) -> Cameras:
    """Turn the depth camera so that the depth lies over the image as a view says, and return the cameras.

    The depth camera is turned; where it had none of its own it gets one, with the image's lens and its own
    field of view.

    Args:
        cameras: as they were.
        view: what has to be done to the depth as it was laid over the image with these cameras.
        depth_size: (h, w) of the depth map.
        image_size: (H, W) of the image.
    """
    guide = cameras.guide.scaled_to(image_size[1], image_size[0])
    turn = _turned(2, view.turn)  # clockwise as seen in the image
    grown = view.zoom * turn[:2, :2]
    aside = np.array([0.5 * guide.width - guide.cx, 0.5 * guide.height - guide.cy])
    right, down = np.array(view.offset) + (np.eye(2) - grown) @ aside
    tilt, pan = _turned(0, -math.atan2(down, guide.fy)), _turned(1, math.atan2(right, guide.fx))
    motion = tilt @ pan @ turn
    turned = motion @ np.asarray(cameras.rotation)
    translation = motion @ np.asarray(cameras.translation)
    depth = cameras.depth
    if depth is None:
        small = guide.scaled_to(depth_size[1], depth_size[0])
        depth = replace(small, fx=small.fx / view.zoom, fy=small.fy / view.zoom)
    return Cameras(cameras.guide, depth, as_tuples(turned), as_tuples(translation))


def _turned(axis: int, angle: float) -> NDArray[np.float64]:
    """Turn about the axis x, y or z of a camera by an angle."""
    return rotation([*math.sin(0.5 * angle) * np.eye(3)[axis], math.cos(0.5 * angle)])
