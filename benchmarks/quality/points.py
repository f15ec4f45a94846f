"""Points in: a LiDAR beside the camera as a .ply with cameras, and 500 random samples of a depth map.

    python -m benchmarks.quality.points --scenes 10 --data DATA --json benchmarks/results/points-cpu.json

`lidar`: rendered scenes of 640x480 pixels and a scanner with 64 beams, 20 cm to the right of the camera, 0.7
degrees between beams, 0.35 between the columns of a turn, 1 cm of noise. Its points go to a .ply and from
there through `primaldepth.upsample`. `linear` interpolates between the very same points as they fall, the
hidden ones included; `linear-seen` between those that are kept as seen by the camera. Scored are pixels with
a true depth between the first and the last beam: `lidar` all of them, also in shadows that the scanner sees
nothing of, `lidar-near` those within 9 pixels of a point that is kept.

`nyu-500`: depth completion as Ma and Karaman test it, on the frames of NYU-Depth v2 that lie in DATA/nyu:
halved, the middle 304x228 pixels, 500 of which keep their depth.
"""

import argparse
import json
import math
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from scipy.ndimage import distance_transform_edt

import primaldepth
from primaldepth.core.seeds import derive_seed
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.motion import as_tuples
from primaldepth.io import read_depth
from primaldepth.io.pointcloud import write_cloud
from primaldepth.pipeline.load import load
from primaldepth.pipeline.request import Item, Request
from primaldepth.scenes.description import Camera
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample

Array = NDArray[np.float64]
METHODS = ("bilinear", "nlh-l2", "atgv-l2", "pdn-any-small", "pdn-any")
WIDTH, HEIGHT = 640, 480
BESIDE, BEAMS, BEAM_STEP, TURN, TURN_STEP, RANGE_NOISE = 0.2, 64, 0.7, 64.0, 0.35, 0.01  # m, degrees, m
SAMPLES, NEAR = 500, 9.0


@dataclass(frozen=True)
class PointsRow:
    test: str
    scene: str
    method: str
    rmse: float
    mae: float
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="from one scene's seed to the next")
    parser.add_argument("--data", type=Path, help="folder with nyu/N_rgb.png and nyu/N_depth_5000.png")
    parser.add_argument("--frames", default=":", help="of NYU, as a slice")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[PointsRow] = []
    for found in (_lidar_rows(options), _nyu_rows(options)):
        for row in found:
            rows.append(row)
            print(
                f"{row.test} {row.scene} {row.method:14s} rmse {row.rmse:.4f} m mae {row.mae:.4f}", flush=True
            )
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _lidar_rows(options: argparse.Namespace) -> Iterator[PointsRow]:
    if not options.scenes:
        return
    renderer = Renderer(preset="rich", samples=64, variant="auto")
    seeds = range(options.first, options.first + options.scenes * options.every, options.every)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            yield from _scene_rows(renderer, seed, Path(folder) / "scan.ply", options.methods)


def _scene_rows(renderer: Renderer, seed: int, file: Path, methods: Sequence[str]) -> Iterator[PointsRow]:
    image, truth, points, cameras = lidar_scene(renderer, seed)
    grey = np.full((len(points), 3), 128, np.uint8)
    write_cloud(file, PointCloud(points.astype(np.float32), grey))
    pixels, z = _projected(points, cameras)
    seen = load(Item(file, image, cameras=cameras), Request(noise=RANGE_NOISE)).frame
    kept = seen.valid[0, 0].numpy()
    scored = _between_beams(pixels) & np.isfinite(truth)
    near = scored & (distance_transform_edt(~kept) <= NEAR)
    places = {"lidar": scored, "lidar-near": near}
    linear = {
        "linear": interpolated(pixels, z),
        "linear-seen": interpolated(np.argwhere(kept), seen.depth[0, 0].numpy()[kept]),
    }
    for name, found in linear.items():
        yield from (_scored(test, str(seed), name, found, truth, at, 0.0) for test, at in places.items())
    for method in methods:
        found, seconds = _upsampled(file, image, method, cameras=cameras, noise=RANGE_NOISE)
        for test, at in places.items():
            yield _scored(test, str(seed), method, found, truth, at, seconds)


def lidar_scene(renderer: Renderer, seed: int) -> tuple[NDArray[np.uint8], Array, Array, Cameras]:
    """(image, true depth or NaN, points of the scanner in its own axes, cameras) of a rendered scene."""
    scene = sample("rich", seed)
    guide = scene.guide.model_copy(update={"width": WIDTH, "height": HEIGHT})
    beside = np.asarray(guide.position) + np.asarray(guide.rotation) @ [BESIDE, 0.0, 0.0]
    # A fine and wide view from the scanner's place; rays of the scanner are those of the nearest pixels. A
    # turn is a full circle: what lies near the camera's border is far to the side for the scanner.
    fine = {"position": tuple(beside.tolist()), "fov_degrees": 130.0, "width": 2400, "height": 1200}
    scanner = guide.model_copy(update={**fine, "centre_shift": (0.0, 0.0)})
    scene = scene.model_copy(update={"guide": guide, "tof": scanner})
    found = renderer.render(scene)
    truth = np.where(found["valid"], found["depth"], np.nan).astype(np.float64)
    points = _scanned(found["tof_distance"], found["tof_valid"], scanner, seed)
    matrix = scene.guide_from_tof()
    camera = guide.intrinsics(WIDTH)
    return (
        found["image"],
        truth,
        points,
        Cameras(camera, None, as_tuples(matrix[:3, :3]), as_tuples(matrix[:3, 3])),
    )


def _scanned(distance: Array, valid: NDArray[np.bool_], scanner: Camera, seed: int) -> Array:
    """(N, 3) points along the beams, with noise in their range."""
    camera = scanner.intrinsics(0)
    elevation = np.radians(BEAM_STEP * (np.arange(BEAMS) - (BEAMS - 1) / 2))
    azimuth = np.radians(np.arange(-TURN, TURN, TURN_STEP))
    a, e = np.meshgrid(azimuth, elevation)
    x, y = np.tan(a), np.tan(e) / np.cos(a)
    column = np.floor(camera.fx * x + camera.cx).astype(int)
    row = np.floor(camera.fy * y + camera.cy).astype(int)
    inside = (column >= 0) & (column < camera.width) & (row >= 0) & (row < camera.height)
    column, row = column[inside], row[inside]
    hit = valid[row, column]
    column, row = column[hit], row[hit]
    rays = camera.rays()[row, column]
    rays = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    noise = np.random.default_rng(derive_seed("scanner", seed)).normal(0.0, RANGE_NOISE, len(rays))
    return rays * (distance[row, column] + noise)[:, None]


def _projected(points: Array, cameras: Cameras) -> tuple[Array, Array]:
    """(rows and columns, z) of the points in the image, hidden or not."""
    moved = points @ np.asarray(cameras.rotation).T + cameras.translation
    moved = moved[moved[:, 2] > 0]
    x, y = cameras.guide.project(moved).T
    seen = (x >= 0) & (x < WIDTH) & (y >= 0) & (y < HEIGHT)
    return np.stack([y, x], axis=1)[seen] - 0.5, moved[seen, 2]


def _between_beams(pixels: Array) -> NDArray[np.bool_]:
    rows = np.arange(HEIGHT)[:, None]
    inside = (rows >= pixels[:, 0].min()) & (rows <= pixels[:, 0].max())
    return np.broadcast_to(inside, (HEIGHT, WIDTH))


def interpolated(pixels: Array, z: Array, size: tuple[int, int] = (HEIGHT, WIDTH)) -> Array:
    """Linear between the points, the nearest beyond them."""
    y, x = np.mgrid[: size[0], : size[1]]
    linear = LinearNDInterpolator(pixels, z)(y, x)
    return np.where(np.isfinite(linear), linear, NearestNDInterpolator(pixels, z)(y, x))


def _nyu_rows(options: argparse.Namespace) -> Iterator[PointsRow]:
    files = sorted(options.data.glob("nyu/*_rgb.png")) if options.data else []
    first, last = (int(end) if end else None for end in options.frames.split(":"))
    for file in files[first:last]:
        name = file.name.split("_")[0]
        image, truth, kept = _nyu_frame(file.parent, name)
        pixels = np.argwhere(kept)
        everywhere = np.ones_like(kept)
        linear = interpolated(pixels, truth[kept], truth.shape)
        yield _scored("nyu-500", name, "linear", linear, truth, everywhere, 0.0)
        samples = np.where(kept, truth, 0.0).astype(np.float32)
        for method in options.methods:
            found, seconds = _upsampled(samples, image, method, unit="m")
            yield _scored("nyu-500", name, method, found, truth, everywhere, seconds)


def _nyu_frame(folder: Path, name: str) -> tuple[NDArray[np.uint8], Array, NDArray[np.bool_]]:
    """(image, depth, which pixels keep their depth)."""
    depth = read_depth(folder / f"{name}_depth_5000.png", unit="5000").values.astype(np.float64)
    image = (
        Image.open(folder / f"{name}_rgb.png").convert("RGB").resize((320, 240), Image.Resampling.BILINEAR)
    )
    middle = (slice(6, 234), slice(8, 312))
    truth = depth[1::2, 1::2][middle]
    chosen = np.random.default_rng(derive_seed("nyu-500", name)).choice(truth.size, SAMPLES, replace=False)
    kept = np.zeros(truth.size, bool)
    kept[chosen] = True
    return np.asarray(image)[middle], truth, kept.reshape(truth.shape)


def _upsampled(
    depth: object, image: NDArray[np.uint8], method: str, **options: object
) -> tuple[Array, float]:
    start = time.process_time()
    found = primaldepth.upsample(depth, image, method=method, device="cpu", **options)
    return found.depth.numpy().astype(np.float64), time.process_time() - start


def _scored(
    test: str, scene: str, method: str, found: Array, truth: Array, where: NDArray[np.bool_], seconds: float
) -> PointsRow:
    error = (found - truth)[where]
    return PointsRow(test, scene, method, math.sqrt(np.mean(error**2)), float(np.abs(error).mean()), seconds)


def summarise(rows: list[PointsRow]) -> None:
    for test in dict.fromkeys(row.test for row in rows):
        chosen = [row for row in rows if row.test == test]
        plain = {row.scene: row.rmse for row in chosen if row.method == "linear"}
        for method in dict.fromkeys(row.method for row in chosen):
            own = [row for row in chosen if row.method == method]
            ratios = [row.rmse / plain[row.scene] for row in own]
            print(
                f"{test} {method:14s} of {len(own)}: mean rmse {np.mean([row.rmse for row in own]):.4f} m, "
                f"mae {np.mean([row.mae for row in own]):.4f} m; of linear's rmse x{np.mean(ratios):.3f} "
                f"(worst x{max(ratios):.3f}); {np.mean([row.cpu_seconds for row in own]):.2f} CPU s"
            )


if __name__ == "__main__":
    main()
