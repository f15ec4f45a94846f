"""What `upsample --temporal` does to rendered sequences: flicker and error, with and without it.

    python -m benchmarks.temporal --scenes 6 --json benchmarks/results/temporal-cpu.json

Each scene is seen in four sequences: nothing moves, the camera moves as in a hand, one object moves, or both.
Every frame has its own noise, in the image and in the depth. Flicker follows each point of a surface by its
true motion: it is the mean absolute change, from one frame to the next, of the error of the point's depth.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from torch import Tensor
from torch.nn.functional import grid_sample

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.seeds import generator
from primaldepth.methods import create
from primaldepth.methods.temporal import Temporal
from primaldepth.scenes.description import Camera, Scene, SceneObject, pose
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample
from primaldepth.sensors import sensor

WIDTH, HEIGHT, SCALE = 160, 120, 4
SAME_POINT = 0.02  # of the depth: farther off, another point is seen there
MOVES = ("still", "camera", "object", "both")
SENSORS = ("structured-light-v1", "tof-v1")
METHODS = {"bilinear": {}, "nlh-l2": {"iterations": 15, "coarse_iterations": 10}, "pdn-any": {}}


@dataclass(frozen=True)
class Row:
    scene: int
    move: str
    sensor: str
    method: str
    rmse: float
    rmse_temporal: float
    worst_frame: float  # largest rmse_temporal / rmse of a frame
    rmse_moving: float  # of what moves by itself
    rmse_moving_temporal: float
    flicker: float
    flicker_temporal: float
    carried: float  # share of the past in the last frame


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--moves", nargs="+", choices=MOVES, default=MOVES)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    renderer = Renderer(preset="rich", samples=64, variant="auto")
    rows = []
    for seed, move in product(range(options.first, options.first + options.scenes), options.moves):
        views = list(rendered(renderer, seed, move, options.frames))
        for name, (method, settings) in product(SENSORS, METHODS.items()):
            frames = [measured(name, view, (seed, t)) for t, view in enumerate(views)]
            rows.append(Row(seed, move, name, method, **compared(frames, views, method, settings)))
            show(rows[-1])
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def rendered(renderer: Renderer, seed: int, move: str, count: int) -> Iterator[dict[str, Tensor]]:
    """Image, depth, length of rays, what moves by itself, (1, C, H, W) each, and pose of every frame."""
    scene = sample("rich", seed)
    camera = scene.guide.model_copy(update={"width": WIDTH, "height": HEIGHT})
    scene = scene.model_copy(update={"guide": camera})
    first = renderer.render(scene)
    chosen = _object(first["ids"], scene) if move in ("object", "both") else -1
    middle = float(np.median(first["depth"][first["valid"]]))
    path = hand_held(seed, count)
    for t in range(count):
        changes: dict[str, object] = {"seed": 1000 * seed + t}
        if move in ("camera", "both"):
            changes["guide"] = _moved_camera(camera, path[t], middle)
        if chosen >= 0:
            items = list(scene.items)
            items[chosen] = _moved_item(items[chosen], camera, t, middle)
            changes["items"] = tuple(items)
        yield _view(scene.model_copy(update=changes), renderer, chosen)


def _view(scene: Scene, renderer: Renderer, chosen: int) -> dict[str, Tensor]:
    found = renderer.render(scene)
    rays = scene.guide.intrinsics(WIDTH).rays()
    far = float(found["depth"].max())
    return {
        "image": torch.from_numpy(found["image"]).permute(2, 0, 1)[None].float() / 255,
        "depth": torch.from_numpy(np.where(found["valid"], found["depth"], far))[None, None].float(),
        "rays": torch.from_numpy(np.linalg.norm(rays, axis=-1))[None, None].float(),
        "moving": torch.from_numpy(found["ids"].astype(int) == chosen + 1)[None, None] & (chosen >= 0),
        "pose": torch.from_numpy(pose(scene.guide)),
        "directions": torch.from_numpy(rays),
    }


def hand_held(seed: int, count: int) -> NDArray[np.float64]:
    """(count, 6) shift, in parts of the depth, and turn in radians: slow sways of 1 to 3 s at 30 frames/s."""
    random = np.random.default_rng(seed)
    t, path = np.arange(count)[:, None] / 30.0, np.zeros((count, 6))
    for size in (1.0, 0.5):
        rate = random.uniform(0.3, 1.0, 6) / size
        phase = random.uniform(0.0, 2 * np.pi, 6)
        path += size * (np.sin(2 * np.pi * rate * t + phase) - np.sin(phase))
    return path * ([0.04] * 3 + [0.02] * 3)


def _moved_camera(camera: Camera, path: NDArray[np.float64], middle: float) -> Camera:
    rotation = np.asarray(camera.rotation) @ Rotation.from_rotvec(path[3:]).as_matrix()
    position = np.asarray(camera.position) + np.asarray(camera.rotation) @ (middle * path[:3])
    return camera.model_copy(
        update={"rotation": tuple(map(tuple, rotation.tolist())), "position": tuple(position.tolist())}
    )


def _moved_item(item: SceneObject, camera: Camera, t: int, middle: float) -> SceneObject:
    """To the right in the image, and a little nearer."""
    shift = np.asarray(camera.rotation) @ (middle * t * np.array([0.012, 0.0, -0.004]))
    position = np.asarray(item.position) + shift
    return item.model_copy(update={"position": tuple(position.tolist())})


def _object(ids: np.ndarray, scene: Scene) -> int:
    """The largest thing that fills less than a quarter of the image; no wall or floor, which only slides."""
    counts = np.bincount(ids.ravel(), minlength=len(scene.items) + 1)[1:]
    loose = np.array([item.shape != "plane" for item in scene.items])
    return int(np.argmax(np.where(loose & (counts < 0.25 * ids.size), counts, 0)))


def measured(name: str, view: dict[str, Tensor], seed: tuple[int, int]) -> Frame:
    """What the sensor sees of a view, as z."""
    device = sensor(name, scale=SCALE)
    truth = view["depth"] * view["rays"] if device.kind == "radial" else view["depth"]
    samples = device(truth, generator=generator("temporal", name, *seed))
    rays = torch.nn.functional.avg_pool2d(view["rays"], SCALE) if device.kind == "radial" else 1.0
    return Frame(samples.depth / rays, samples.valid, view["image"], sigma=samples.sigma / rays)


@dataclass
class _Replay:
    """A method that gives, one after the other, what it found before: nothing is computed twice."""

    name: str
    predictions: Iterator[Prediction]

    def __call__(self, _: Frame) -> Prediction:
        return next(self.predictions)


def compared(
    frames: list[Frame], views: list[dict[str, Tensor]], method: str, settings: dict[str, int]
) -> dict[str, float]:
    single = create(method, settings)
    predictions = [single(frame) for frame in frames]
    temporal = Temporal(_Replay(method, iter(predictions)))
    filtered = [temporal(frame) for frame in frames]
    plain, calm = ([each.depth for each in found] for found in (predictions, filtered))
    errors = np.array(
        [
            [_rmse(each, view["depth"]) for each in pair]
            for *pair, view in zip(plain, calm, views, strict=True)
        ]
    )
    moving = [_moving_error(each, views) for each in (plain, calm)]
    return {
        "rmse": float(errors[:, 0].mean()),
        "rmse_temporal": float(errors[:, 1].mean()),
        "worst_frame": float((errors[:, 1] / errors[:, 0]).max()),
        "rmse_moving": moving[0],
        "rmse_moving_temporal": moving[1],
        "flicker": flicker(plain, views),
        "flicker_temporal": flicker(calm, views),
        "carried": float(filtered[-1].info["carried"]),
    }


def _moving_error(depths: list[Tensor], views: list[dict[str, Tensor]]) -> float:
    """RMSE over what moves by itself, in all frames; 0 if nothing does."""
    parts = [(d - view["depth"])[view["moving"]].square() for d, view in zip(depths, views, strict=True)]
    found = torch.cat(parts)
    return float(found.mean().sqrt()) if len(found) else 0.0


def _rmse(depth: Tensor, truth: Tensor) -> float:
    return float((depth - truth).square().mean().sqrt())


def flicker(depths: list[Tensor], views: list[dict[str, Tensor]]) -> float:
    """Mean absolute change of the error of points that two frames in a row see, by their true motion."""
    found = []
    for t in range(1, len(views)):
        place, seen = _followed(views[t], views[t - 1])
        before, now = (depths[i] - views[i]["depth"] for i in (t - 1, t))
        change = now - grid_sample(before, place, padding_mode="border", align_corners=False)
        found.append(float(change[seen].abs().mean()))
    return float(np.mean(found))


def _followed(now: dict[str, Tensor], before: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Where the points of a view were in the one before, as `grid_sample` counts, and whether it saw them."""
    rays = now["directions"]
    motion = torch.linalg.inv(before["pose"]) @ now["pose"]
    points = now["depth"][0, 0].double()[..., None] * rays @ motion[:3, :3].T + motion[:3, 3]
    x, y = (points[..., axis] / points[..., 2] for axis in (0, 1))
    (left, right), (top, bottom) = rays[0, [0, -1], 0], rays[[0, -1], 0, 1]
    column, row = (x - left) / (right - left) * (WIDTH - 1), (y - top) / (bottom - top) * (HEIGHT - 1)
    place = torch.stack([(2 * column + 1) / WIDTH - 1, (2 * row + 1) / HEIGHT - 1], -1)[None].float()
    there = grid_sample(before["depth"], place, mode="nearest", padding_mode="border", align_corners=False)
    z = points[None, None, ..., 2]
    return place, (place.abs() <= 1).all(-1)[None] & ((there - z).abs() < SAME_POINT * z)


def show(row: Row) -> None:
    rmse, rmse_temporal, flicker, flicker_temporal = (
        1000 * value for value in (row.rmse, row.rmse_temporal, row.flicker, row.flicker_temporal)
    )
    print(
        f"scene {row.scene} {row.move:7s} {row.sensor:20s} {row.method:9s}"
        f" rmse {rmse:7.2f} -> {rmse_temporal:7.2f} mm (worst frame x{row.worst_frame:.4f})"
        f" flicker {flicker:6.2f} -> {flicker_temporal:6.2f} mm, carried {row.carried:.2f}",
        flush=True,
    )


def summarise(rows: list[Row]) -> None:
    for move, name, method in product(MOVES, SENSORS, METHODS):
        chosen = [row for row in rows if (row.move, row.sensor, row.method) == (move, name, method)]
        if not chosen:
            continue
        rmse = [row.rmse_temporal / row.rmse for row in chosen]
        moving = [row.rmse_moving_temporal / row.rmse_moving for row in chosen if row.rmse_moving]
        calm = [row.flicker_temporal / row.flicker for row in chosen]
        print(
            f"{move:7s} {name:20s} {method:9s} {len(chosen)} sequences: rmse x{np.mean(rmse):.3f} "
            f"(at most x{max(rmse):.3f}), flicker x{np.mean(calm):.3f} (at most x{max(calm):.3f})"
            + (f", on what moves x{np.mean(moving):.3f} (at most x{max(moving):.3f})" if moving else "")
        )


if __name__ == "__main__":
    main()
