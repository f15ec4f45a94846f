"""Rendered sequences: a scene in which nothing, the camera, one object or both move, with the true depth.

The true pose of every frame is kept, so that a point of a surface can be followed from frame to frame.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from primaldepth.evaluation.rendered import image_of
from primaldepth.scenes.description import Camera, Scene, SceneObject, pose
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample

WIDTH, HEIGHT = 160, 120
MOVES = ("still", "camera", "object", "both", "towards", "both-towards")
SAME_POINT = 0.02  # of the depth; a point farther off than this is another one
_CAMERA = ("camera", "both", "both-towards")
_OBJECT = {  # in parts of the scene's median depth per frame: right, down, away from the camera
    "object": (0.012, 0.0, -0.004),
    "both": (0.012, 0.0, -0.004),
    "towards": (0.0, 0.0, -0.004),
    "both-towards": (0.0, 0.0, -0.004),
}

View = dict[str, Tensor]


def rendered(renderer: Renderer, seed: int, move: str, count: int) -> Iterator[View]:
    """Yield the views of a sequence.

    Args:
        renderer: makes the pictures.
        seed: of the scene.
        move: one of `MOVES`.
        count: of frames.

    Yields:
        `image` (1, 3, H, W), `depth`, `rays` (their length) and `moving` (what moves by itself), each
        (1, 1, H, W), `pose` (4, 4) and `directions` (H, W, 3) of the rays, with z = 1.
    """
    scene = sample("rich", seed)
    camera = scene.guide.model_copy(update={"width": WIDTH, "height": HEIGHT})
    scene = scene.model_copy(update={"guide": camera})
    first = renderer.render(scene)
    chosen = _object(first["ids"], scene) if move in _OBJECT else -1
    middle = float(np.median(first["depth"][first["valid"]]))
    for t in range(count):
        changes: dict[str, object] = {"seed": 1000 * seed + t}
        if move in _CAMERA:
            changes["guide"] = _moved_camera(camera, t, middle)
        if move in _OBJECT:
            items = list(scene.items)
            items[chosen] = _moved_item(items[chosen], camera, t * middle * np.array(_OBJECT[move]))
            changes["items"] = tuple(items)
        yield _view(scene.model_copy(update=changes), renderer, chosen)


def _view(scene: Scene, renderer: Renderer, chosen: int) -> View:
    found = renderer.render(scene)
    pinhole = scene.guide.intrinsics(WIDTH)
    x = (np.arange(WIDTH) + 0.5 - pinhole.cx) / pinhole.fx
    y = (np.arange(HEIGHT) + 0.5 - pinhole.cy)[:, None] / pinhole.fy
    directions = np.stack(np.broadcast_arrays(x, y, 1.0), axis=-1)
    far = float(found["depth"].max())
    moving = (found["ids"].astype(int) == chosen + 1) & (chosen >= 0)
    return {
        "image": image_of(found),
        "depth": torch.from_numpy(np.where(found["valid"], found["depth"], far))[None, None].float(),
        "rays": torch.from_numpy(np.sqrt(1 + x**2 + y**2))[None, None].float(),
        "moving": torch.from_numpy(moving)[None, None],
        "pose": torch.from_numpy(np.asarray(pose(scene.guide))),
        "directions": torch.from_numpy(directions),
    }


def _moved_camera(camera: Camera, t: int, middle: float) -> Camera:
    """Return a camera that walks slowly to the right and forward and turns: about a pixel per frame."""
    turn = 0.003 * t
    yaw = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    rotation = np.asarray(camera.rotation) @ yaw
    position = np.asarray(camera.position) + np.asarray(camera.rotation) @ (
        middle * t * np.array([0.006, 0.002, 0.006])
    )
    return camera.model_copy(
        update={"rotation": tuple(map(tuple, rotation.tolist())), "position": tuple(position.tolist())}
    )


def _moved_item(item: SceneObject, camera: Camera, shift: np.ndarray) -> SceneObject:
    """Return the object shifted, in metres along the first camera's axes."""
    position = np.asarray(item.position) + np.asarray(camera.rotation) @ shift
    return item.model_copy(update={"position": tuple(position.tolist())})


def _object(ids: np.ndarray, scene: Scene) -> int:
    """Return the largest thing that fills less than a quarter of the image; no plane, which only slides."""
    counts = np.bincount(ids.ravel(), minlength=len(scene.items) + 1)[1:]
    loose = np.array([item.shape != "plane" for item in scene.items])
    return int(np.argmax(np.where(loose & (counts < 0.25 * ids.size), counts, 0)))


def carried_error(before: View, error: Tensor, now: View) -> tuple[Tensor, Tensor]:
    """Return the error that a view's points had in the view before, and which of them it saw standing still.

    Args:
        before: a view.
        error: (1, 1, H, W) of a depth map of `before`.
        now: the next view.

    Returns:
        The error at each point of `now`, and True where `before` saw the same point and it did not move by
        itself, (1, 1, H, W) each.
    """
    place, z = _followed(before, now)
    there, moved = (
        grid_sample(image, place, mode="nearest", padding_mode="border", align_corners=False)
        for image in (before["depth"], before["moving"].to(error.dtype))
    )
    seen = (place.abs() <= 1.0).all(-1)[:, None] & ((there - z).abs() < SAME_POINT * z)
    error = grid_sample(error, place, padding_mode="border", align_corners=False)
    return error, seen & ~now["moving"] & (moved == 0)


def _followed(before: View, now: View) -> tuple[Tensor, Tensor]:
    """Return where the points of `now` were in `before`, as `grid_sample` counts, and their depth there."""
    rays, (height, width) = now["directions"], now["depth"].shape[2:]
    motion = torch.linalg.inv(before["pose"]) @ now["pose"]
    points = now["depth"][0, 0].double()[..., None] * rays @ motion[:3, :3].T + motion[:3, 3]
    x, y = points[..., 0] / points[..., 2], points[..., 1] / points[..., 2]
    (left, right), (top, bottom) = rays[0, [0, -1], 0], rays[[0, -1], 0, 1]
    column = (x - left) / (right - left) * (width - 1)
    row = (y - top) / (bottom - top) * (height - 1)
    place = torch.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], dim=-1)[None]
    return place.to(now["depth"].dtype), points[None, None, ..., 2]
