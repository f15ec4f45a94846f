"""What `upsample --temporal` does to rendered sequences: flicker and error, with and without it.

    python -m benchmarks.quality.temporal --scenes 6 --json benchmarks/results/temporal-cpu.json

Each scene is seen in three sequences: nothing moves, the camera moves, one object moves. `--moves` adds one
in which both move, and two in which the object comes nearer. Every frame has its own noise, in the image and
in the depth.

Flicker is the mean absolute change from frame to frame. While the camera moves, true depth changes too;
unrest is the mean absolute change of the error of points that stand still, followed by their true motion.
The error of what moves by itself is measured over its own pixels, and with `BORDER` pixels around it.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from benchmarks.quality.moving_views import MOVES, View, carried_error, rendered
from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.seeds import generator
from primaldepth.methods import create
from primaldepth.methods.temporal import Temporal
from primaldepth.scenes.renderer import Renderer
from primaldepth.sensors import sensor

SCALE = 4
BORDER = 6  # pixels around what moves by itself that an estimate may leave wrong behind it
SENSORS = ("structured-light-v1", "tof-v1")
SETTINGS = {"nlh-l2": {"iterations": 15, "coarse_iterations": 10}}


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
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    renderer = Renderer(preset="rich", samples=64, variant="auto")
    rows = []
    for seed, move in product(range(options.first, options.first + options.scenes), options.moves):
        views = list(rendered(renderer, seed, move, options.frames))
        for name, method in product(SENSORS, options.methods):
            frames = [measured(name, view, (seed, t)) for t, view in enumerate(views)]
            rows.append(TemporalRow(seed, move, name, method, **compared(frames, views, method)))
            show(rows[-1])
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


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


def compared(frames: list[Frame], views: list[View], method: str) -> dict[str, float | None]:
    """Return the numbers of a `TemporalRow` for one sequence."""
    single = create(method, SETTINGS.get(method))
    predictions = [single(frame) for frame in frames]
    temporal = Temporal(_Replay(method, iter(predictions)))
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
