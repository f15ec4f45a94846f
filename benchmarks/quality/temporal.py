"""What `upsample --temporal` does to rendered sequences: flicker and error, with and without it.

    python -m benchmarks.quality.temporal --scenes 6 --json benchmarks/results/temporal-cpu.json

Each scene is seen in three sequences: nothing moves, the camera moves, one object moves. `--moves` adds one
in which both move, and two in which the object comes nearer. Every frame has its own noise, in the image and
in the depth.

Flicker is the mean absolute change from frame to frame. While the camera moves, true depth changes too;
unrest is the mean absolute change of the error of points that stand still, followed by their true motion.
The error of what moves by itself is measured over its own pixels, and with `BORDER` pixels around it.
`--static-scene` is that of `upsample`: with a sequence in which something moves it shows what that costs.
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
from torch.nn.functional import avg_pool2d, grid_sample, max_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.seeds import generator
from primaldepth.evaluation.rendered import image_of
from primaldepth.methods import create
from primaldepth.methods.temporal import Temporal, TemporalSettings
from primaldepth.scenes.description import Camera, Scene, SceneObject, pose
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample
from primaldepth.sensors import sensor

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
SCALE = 4
BORDER = 6  # pixels around what moves by itself that an estimate may leave wrong behind it
SENSORS = ("structured-light-v1", "tof-v1")
SETTINGS = {"nlh-l2": {"iterations": 15, "coarse_iterations": 10}}


View = dict[str, Tensor]


@dataclass(frozen=True)
class TemporalRow:
    """Means over the frames of a sequence, in metres; `_temporal`: with the filter. None: nothing moves."""

    scene: int
    move: str
    sensor: str
    method: str
    rmse: float
    rmse_temporal: float
    worst_frame: float  # largest rmse_temporal / rmse of a frame
    flicker: float
    flicker_temporal: float
    unrest: float
    unrest_temporal: float
    moving: float | None  # RMSE of what moves by itself
    moving_temporal: float | None
    border: float | None  # RMSE of what moves by itself and of the pixels around it
    border_temporal: float | None
    carried: float  # share of the past in the last frame


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scene")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--moves", nargs="+", choices=MOVES, default=["still", "camera", "object"])
    parser.add_argument("--methods", nargs="+", default=["bilinear", "nlh-l2", "pdn-any"])
    parser.add_argument("--static-scene", action="store_true", help="as of upsample: only the camera moves")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    renderer = Renderer(preset="rich", samples=64, variant="auto")
    settings, rows = TemporalSettings(static_scene=options.static_scene), []
    for seed, move in product(range(options.first, options.first + options.scenes), options.moves):
        views = list(rendered(renderer, seed, move, options.frames))
        for name, method in product(SENSORS, options.methods):
            frames = [measured(name, view, (seed, t)) for t, view in enumerate(views)]
            rows.append(TemporalRow(seed, move, name, method, **compared(frames, views, method, settings)))
            show(rows[-1])
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


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


def measured(name: str, view: View, seed: tuple[int, int]) -> Frame:
    """What the sensor sees of a view, as z."""
    device = sensor(name, scale=SCALE)
    truth = view["depth"] * view["rays"] if device.kind == "radial" else view["depth"]
    samples = device(truth, generator=generator("temporal", name, *seed))
    rays = avg_pool2d(view["rays"], SCALE) if device.kind == "radial" else 1.0
    return Frame(samples.depth / rays, samples.valid, view["image"], sigma=samples.sigma / rays)


@dataclass
class _Replay:
    """A method that gives, one after the other, what it found before: nothing is computed twice."""

    name: str
    predictions: Iterator[Prediction]

    def __call__(self, _: Frame) -> Prediction:
        return next(self.predictions)


def compared(
    frames: list[Frame], views: list[View], method: str, settings: TemporalSettings
) -> dict[str, float | None]:
    """Return the numbers of a `TemporalRow` for one sequence."""
    single = create(method, SETTINGS.get(method))
    predictions = [single(frame) for frame in frames]
    temporal = Temporal(_Replay(method, iter(predictions)), settings)
    filtered = [temporal(frame) for frame in frames]
    found: dict[str, float | None] = {"carried": float(filtered[-1].info["carried"])}
    for suffix, results in (("", predictions), ("_temporal", filtered)):
        errors = [each.depth - view["depth"] for each, view in zip(results, views, strict=True)]
        found["rmse" + suffix] = float(np.mean([_rms(error) for error in errors]))
        found["flicker" + suffix] = _flicker([each.depth for each in results])
        found["unrest" + suffix] = unrest(errors, views)
        found["moving" + suffix], found["border" + suffix] = (
            moving_error(errors, views, border) for border in (0, BORDER)
        )
    pairs = zip(predictions, filtered, views, strict=True)
    found["worst_frame"] = max(
        _rms(b.depth - view["depth"]) / _rms(a.depth - view["depth"]) for a, b, view in pairs
    )
    return found


def unrest(errors: list[Tensor], views: list[View]) -> float:
    """Return the mean absolute change of the error of points that stand still, from frame to frame."""
    found = []
    for (before, now), (error, later) in zip(pairwise(views), pairwise(errors), strict=True):
        carried, seen = carried_error(before, error, now)
        found.append(float((later - carried)[seen].abs().mean()))
    return float(np.mean(found))


def moving_error(errors: list[Tensor], views: list[View], border: int) -> float | None:
    """Return the RMSE of what moves by itself and of `border` pixels around it; None if nothing does."""
    found = []
    for error, view in zip(errors, views, strict=True):
        area = max_pool2d(view["moving"].to(error.dtype), 2 * border + 1, 1, border) > 0
        if bool(area.any()):
            found.append(_rms(error[area]))
    return float(np.mean(found)) if found else None


def _rms(error: Tensor) -> float:
    return float(error.square().mean().sqrt())


def _flicker(depths: list[Tensor]) -> float:
    return float(np.mean([float((b - a).abs().mean()) for a, b in pairwise(depths)]))


def show(row: TemporalRow) -> None:
    """Print a row in millimetres."""
    numbers = asdict(row)
    parts = [
        f"{name} {1000 * numbers[name]:.2f} -> {1000 * numbers[name + '_temporal']:.2f}"
        for name in ("rmse", "flicker", "unrest", "moving", "border")
        if numbers[name] is not None
    ]
    print(
        f"scene {row.scene} {row.move:12s} {row.sensor:20s} {row.method:13s} {', '.join(parts)} mm, "
        f"worst frame x{row.worst_frame:.4f}, carried {row.carried:.2f}",
        flush=True,
    )


def summarise(rows: list[TemporalRow]) -> None:
    """Print the mean and the largest ratio, with the filter to frame by frame, for each move and sensor."""
    for move, name in product(MOVES, SENSORS):
        chosen = [asdict(row) for row in rows if (row.move, row.sensor) == (move, name)]
        parts = []
        for kind in ("rmse", "flicker", "unrest", "moving", "border"):
            ratios = [row[kind + "_temporal"] / row[kind] for row in chosen if row[kind] is not None]
            if ratios:
                parts.append(f"{kind} x{np.mean(ratios):.4f} (at most x{max(ratios):.4f})")
        if parts:
            print(f"{move:12s} {name:20s} {len(chosen)} sequences: {', '.join(parts)}")


if __name__ == "__main__":
    main()
