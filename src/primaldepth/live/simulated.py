"""A simulated camera that needs no device: a room with a box and a ball, seen by a swaying noisy sensor.

Rays are traced exactly, so the truth of every frame is known. Nothing but numpy is needed.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.poses import Pose
from primaldepth.live.sources import LiveSource
from primaldepth.pipeline.request import Item

Array = NDArray[np.float64]
_ROOM = np.array([[-2.0, -1.4, -1.0], [2.0, 1.1, 4.0]])  # corners, x right, y down, z forward, metres
_BOX = np.array([[-1.1, 0.3, 2.2], [-0.3, 1.1, 3.0]])
_BALL, _RADIUS = np.array([0.6, 0.35, 2.4]), 0.45
_LIGHT = np.array([0.4, -0.8, -0.45])
_COLOURS = np.array([[0.75, 0.72, 0.65], [0.35, 0.5, 0.75], [0.8, 0.4, 0.3]])  # room, box, ball
_TILE = 0.35  # metres of the pattern on surfaces
_GRAZING = 0.12  # cosine of the angle below which the sensor sees nothing


@dataclass(frozen=True, slots=True, eq=False)
class TrueView:
    """The truth of one frame: what each pixel shows and how far away it is, (H, W) each.

    Args:
        depth: z in metres.
        image: (H, W, 3) in [0, 1].
        facing: cosine between ray and surface.
    """

    depth: Array
    image: Array
    facing: Array


class Simulated(LiveSource):
    """A simulated depth and colour camera in a room with a box and a ball.

    Args:
        size: (height, width) of the image.
        scale: of the image's size to that of the depth.
        rate: frames per second; 0 gives them as fast as they are asked for.
        noise: standard deviation of the depth as a part of z squared, per metre.
        moves: whether the camera sways.
        count: of frames; None for no end.
    """

    title = "simulated camera"

    def __init__(
        self,
        *,
        size: tuple[int, int] = (240, 320),
        scale: int = 4,
        rate: float = 30.0,
        noise: float = 0.003,
        moves: bool = True,
        count: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._size, self._scale, self._rate, self._noise = size, scale, rate, noise
        self._moves, self._count, self._clock, self._sleep = moves, count, clock, sleep
        self.camera = Intrinsics.guess(size[1], size[0], 65.0)

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        """Yield what the camera sees when it is asked; frames that nobody asked for are skipped."""
        start, given, index = self._clock(), 0, 0
        while self._count is None or given < self._count:
            if self._rate > 0:
                late = (self._clock() - start) * self._rate
                index = max(index, math.floor(late))
                self._sleep(max(0.0, (index - late) / self._rate))
            yield f"{index:06d}", self.frame(index)
            index, given = index + 1, given + 1

    def frame(self, index: int) -> Item:
        """Return frame `index`; the same index gives the same frame."""
        random = np.random.default_rng(index)
        h, w = (side // self._scale for side in self._size)
        low = self.seen(self.camera.scaled_to(w, h), index)
        depth = low.depth + self._noise * low.depth**2 * random.standard_normal(low.depth.shape)
        depth[low.facing < _GRAZING] = 0.0
        image = self.seen(self.camera, index).image
        image = image + 0.01 * random.standard_normal(image.shape)
        pixels = np.rint(255 * image.clip(0.0, 1.0)).astype(np.uint8)
        return Item(depth.astype(np.float32), pixels, cameras=Cameras(self.camera), unit="m")

    def seen(self, camera: Intrinsics, index: int) -> TrueView:
        """Return the true depth and image that a camera sees from its pose in frame `index`."""
        return seen_from(camera, self.pose(index))

    def pose(self, index: int) -> Pose:
        """Return where the camera stands, which sways with a period of 12 s."""
        t = 2 * math.pi * index / 360 if self._moves else 0.0
        yaw = 0.12 * math.sin(t)
        turn = np.array([[math.cos(yaw), 0, math.sin(yaw)], [0, 1, 0], [-math.sin(yaw), 0, math.cos(yaw)]])
        return Pose.of(turn, [-0.5 * math.sin(t), 0.1 * math.sin(2 * t), 0.25 * (1 - math.cos(t))])


def seen_from(camera: Intrinsics, pose: Pose) -> TrueView:
    """Return what a camera truly sees of the room.

    Args:
        camera: of any size.
        pose: within the room, which reaches from (-2, -1.4, -1) to (2, 1.1, 4) metres.
    """
    place, rays = np.array(pose.translation), camera.rays() @ np.transpose(pose.rotation)
    hits = [_box(place, rays, _ROOM, inside=True), _box(place, rays, _BOX), _ball(place, rays)]
    z = np.stack([hit[0] for hit in hits])  # a ray's parameter is the z of its point
    nearest = z.argmin(axis=0)
    depth = z.min(axis=0)
    normal = np.take_along_axis(np.stack([hit[1] for hit in hits]), nearest[None, ..., None], 0)[0]
    point = place + depth[..., None] * rays
    facing = np.abs((rays * normal).sum(-1)) / np.linalg.norm(rays, axis=-1)
    return TrueView(depth, _shaded(point, normal, nearest), facing)


def off_surface(points: NDArray[np.floating]) -> Array:
    """Return (N,): metres from points (N, 3) to the nearest surface of the room."""
    walls = np.abs(points[:, None] - _ROOM).min(axis=(1, 2))
    ball = np.abs(np.linalg.norm(points - _BALL, axis=1) - _RADIUS)
    outside = np.maximum(_BOX[0] - points, points - _BOX[1])
    nearest = np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.abs(np.minimum(outside.max(axis=1), 0.0))
    return np.asarray(np.minimum(np.minimum(walls, ball), nearest))


def _box(place: Array, rays: Array, corners: Array, *, inside: bool = False) -> tuple[Array, Array]:
    """Return ray parameter and normal where rays meet a box from outside or inside; infinite if they miss."""
    with np.errstate(divide="ignore"):
        both = (corners[:, None, None] - place) / rays
    low, high = both.min(axis=0), both.max(axis=0)
    enter, leave = low.max(axis=-1), high.min(axis=-1)
    axis = high.argmin(axis=-1) if inside else low.argmax(axis=-1)
    normal = np.eye(3)[axis]
    t = leave if inside else np.where((enter < leave) & (enter > 0), enter, np.inf)
    return t, normal * -np.sign((rays * normal).sum(-1, keepdims=True))


def _ball(place: Array, rays: Array) -> tuple[Array, Array]:
    """Return ray parameter and normal where rays meet the ball; infinite where they miss."""
    to = place - _BALL
    a, b, c = (rays**2).sum(-1), rays @ to, to @ to - _RADIUS**2
    root = b * b - a * c
    t = np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / a, np.inf)
    point = place + np.where(np.isfinite(t), t, 0.0)[..., None] * rays
    return t, (point - _BALL) / _RADIUS


def _shaded(point: Array, normal: Array, thing: NDArray[np.intp]) -> Array:
    """Return the colour of surfaces with a pattern of soft tiles, lit by one lamp."""
    waves = np.sin(point * (math.pi / _TILE) + 0.3).prod(axis=-1) + 0.5 * np.sin(point.sum(-1) * 17.0)
    pattern = 0.78 + 0.22 * np.tanh(3.0 * waves)
    light = 0.45 + 0.55 * np.maximum(0.0, normal @ (_LIGHT / np.linalg.norm(_LIGHT)))
    shaded: Array = _COLOURS[thing] * (pattern * light)[..., None]
    return shaded
