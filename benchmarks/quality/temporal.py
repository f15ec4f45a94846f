"""What `upsample --temporal` does to rendered sequences: flicker and error, with and without it.

    python -m benchmarks.quality.temporal --scenes 6 --json benchmarks/results/temporal-cpu.json

Each scene is seen in three sequences: nothing moves, the camera moves, one object moves. Every frame has its
own noise, in the image and in the depth. Flicker is the mean absolute change from frame to frame.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.seeds import generator
from primaldepth.evaluation.rendered import image_of
from primaldepth.methods import create
from primaldepth.methods.temporal import Temporal
from primaldepth.scenes.description import Camera, Scene, SceneObject
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample
from primaldepth.sensors import sensor

WIDTH, HEIGHT, SCALE = 160, 120, 4
MOVES = ("still", "camera", "object")
SENSORS = ("structured-light-v1", "tof-v1")
METHODS = {"bilinear": {}, "nlh-l2": {"iterations": 15, "coarse_iterations": 10}, "pdn-any": {}}


@dataclass(frozen=True)
class TemporalRow:
    scene: int
    move: str
    sensor: str
    method: str
    rmse: float
    rmse_temporal: float
    worst_frame: float  # largest rmse_temporal / rmse of a frame
    flicker: float
    flicker_temporal: float
    carried: float  # share of the past in the last frame


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    renderer = Renderer(preset="rich", samples=64, variant="auto")
    rows = []
    for seed, move in product(range(options.scenes), MOVES):
        views = list(rendered(renderer, seed, move, options.frames))
        for name, (method, settings) in product(SENSORS, METHODS.items()):
            frames = [(measured(name, view, (seed, t)), view["depth"]) for t, view in enumerate(views)]
            rows.append(TemporalRow(seed, move, name, method, **compared(frames, method, settings)))
            show(rows[-1])
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def rendered(renderer: Renderer, seed: int, move: str, count: int) -> Iterator[dict[str, Tensor]]:
    """Image, depth and length of the rays, (1, C, H, W) each, of every frame."""
    scene = sample("rich", seed)
    camera = scene.guide.model_copy(update={"width": WIDTH, "height": HEIGHT})
    scene = scene.model_copy(update={"guide": camera})
    first = renderer.render(scene)
    chosen = _object(first["ids"], scene) if move == "object" else -1
    middle = float(np.median(first["depth"][first["valid"]]))
    for t in range(count):
        changes: dict[str, object] = {"seed": 1000 * seed + t}
        if move == "camera":
            changes["guide"] = _moved_camera(camera, t, middle)
        if move == "object":
            items = list(scene.items)
            items[chosen] = _moved_item(items[chosen], camera, t, middle)
            changes["items"] = tuple(items)
        yield _view(scene.model_copy(update=changes), renderer)


def _view(scene: Scene, renderer: Renderer) -> dict[str, Tensor]:
    found = renderer.render(scene)
    pinhole = scene.guide.intrinsics(WIDTH)
    x = (np.arange(WIDTH) + 0.5 - pinhole.cx) / pinhole.fx
    y = (np.arange(HEIGHT) + 0.5 - pinhole.cy)[:, None] / pinhole.fy
    far = float(found["depth"].max())
    return {
        "image": image_of(found),
        "depth": torch.from_numpy(np.where(found["valid"], found["depth"], far))[None, None].float(),
        "rays": torch.from_numpy(np.sqrt(1 + x**2 + y**2))[None, None].float(),
    }


def _moved_camera(camera: Camera, t: int, middle: float) -> Camera:
    """A slow walk to the right and forward that turns a little: about a pixel per frame."""
    turn = 0.003 * t
    yaw = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    rotation = np.asarray(camera.rotation) @ yaw
    position = np.asarray(camera.position) + np.asarray(camera.rotation) @ (
        middle * t * np.array([0.006, 0.002, 0.006])
    )
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


def compared(frames: list[tuple[Frame, Tensor]], method: str, settings: dict[str, int]) -> dict[str, float]:
    single = create(method, settings)
    predictions = [single(frame) for frame, _ in frames]
    temporal = Temporal(_Replay(method, iter(predictions)))
    filtered = [temporal(frame) for frame, _ in frames]
    plain = [each.depth for each in predictions]
    errors = [(_rmse(a, t), _rmse(b.depth, t)) for a, b, (_, t) in zip(plain, filtered, frames, strict=True)]
    before, after = (float(np.mean(values)) for values in zip(*errors, strict=True))
    return {
        "rmse": before,
        "rmse_temporal": after,
        "worst_frame": max(b / a for a, b in errors),
        "flicker": _flicker(plain),
        "flicker_temporal": _flicker([each.depth for each in filtered]),
        "carried": float(filtered[-1].info["carried"]),
    }


def _rmse(depth: Tensor, truth: Tensor) -> float:
    return float((depth - truth).square().mean().sqrt())


def _flicker(depths: list[Tensor]) -> float:
    return float(np.mean([float((b - a).abs().mean()) for a, b in pairwise(depths)]))


def show(row: TemporalRow) -> None:
    rmse, rmse_temporal, flicker, flicker_temporal = (
        1000 * value for value in (row.rmse, row.rmse_temporal, row.flicker, row.flicker_temporal)
    )
    print(
        f"scene {row.scene} {row.move:7s} {row.sensor:20s} {row.method:9s}"
        f" rmse {rmse:7.2f} -> {rmse_temporal:7.2f} mm (worst frame x{row.worst_frame:.4f})"
        f" flicker {flicker:6.2f} -> {flicker_temporal:6.2f} mm, carried {row.carried:.2f}",
        flush=True,
    )


def summarise(rows: list[TemporalRow]) -> None:
    for move in MOVES:
        chosen = [row for row in rows if row.move == move]
        rmse = [row.rmse_temporal / row.rmse for row in chosen]
        cut = [1 - row.flicker_temporal / row.flicker for row in chosen]
        print(
            f"{move:7s} of {len(chosen)} sequences: rmse x{min(rmse):.3f} to x{max(rmse):.3f}, "
            f"worst frame x{max(row.worst_frame for row in chosen):.4f}, "
            f"flicker cut by {100 * min(cut):.0f} to {100 * max(cut):.0f} %"
        )


if __name__ == "__main__":
    main()
