"""Frames through several methods, for the eye: real ones, and rendered ones beside their true depth.

    python -m benchmarks.pages.gallery --out docs/images --data DATA

DATA/real holds frames of a tablet's LiDAR scanner, of RGB-D cameras and of a time-of-flight camera; none
has a true depth. Their surfaces are drawn lit from the side, which shows what colours hide: noise, steps and
texture copied from the image. Rendered scenes are seen by three sensor models; their errors are drawn.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from primaldepth.api import load_inputs
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.conversions import radial_from_z
from primaldepth.methods import create
from primaldepth.pictures.preview import RGB, colorize, draw_samples, error_map, panel, robust_limits
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.outputs import sample_reach
from primaldepth.scenes.scene_source import RenderSettings, render_scene
from primaldepth.sensors import sensor

METHODS = ("bicubic", "ferstl13", "fcn-pdn-s", "pdn-any")
WIDTH, LIGHT = 480, np.array([-0.485, 0.485, 0.728])
SETTINGS = RenderSettings(preset="rich", size=512, samples=128, seed=515)
ERROR = 0.05  # of the median depth: the full colour of an error


@dataclass(frozen=True)
class Real:
    """Two files of a frame, and what is known of its noise."""

    name: str
    depth: str
    guide: str
    noise: str = "auto"


@dataclass(frozen=True)
class Rendered:
    """A sensor by the name of its noise, the scene that it sees, pixels per sample."""

    name: str
    scene: int
    scale: int


@dataclass(frozen=True, eq=False)
class GalleryFrame:
    """What the methods get, and (H, W) what is true, if that is known."""

    name: str
    inputs: Inputs
    truth: np.ndarray | None = None


REAL = (
    Real("arkit", "arkit/depth_mm.png", "arkit/color.jpg", "ipad-lidar"),
    Real("rgbd-0", "rgbd_0/depth_mm.png", "rgbd_0/color.png"),
    Real("rgbd-2", "rgbd_2/depth_mm.png", "rgbd_2/color.png"),
    *(
        Real(f"tof-{name}", f"tof_graz/{name}_tof_warped_8bit.png", f"tof_graz/{name}_intensity.png")
        for name in ("books", "devil", "shark")
    ),
)
RENDERED = (
    Rendered("tof", 7, 8),
    Rendered("structured-light", 11, 4),
    Rendered("lidar", 8, 4),
)


def real_frames(folder: Path, only: list[str]) -> Iterator[GalleryFrame]:
    """Real frames, as files are read."""
    for each in REAL:
        if each.name in only:
            paths = folder / each.depth, folder / each.guide
            yield GalleryFrame(f"real-{each.name}", load_inputs(*paths, noise=each.noise, unit="mm"))


def rendered_frames(only: list[str]) -> Iterator[GalleryFrame]:
    """Rendered scenes, as the sensor models see them."""
    chosen = [each for each in RENDERED if each.name in only]
    renderer = SETTINGS.resolved().open() if chosen else None
    for each in chosen:
        arrays = render_scene(renderer, SETTINGS.seed, each.scene)
        camera = Intrinsics(*map(float, arrays["guide_camera"]), SETTINGS.size, SETTINGS.size)
        model, truth = sensor(f"{each.name}-v1", scale=each.scale), arrays["depth"]
        valid = np.array(arrays["valid"])
        seen = radial_from_z(truth, valid, camera) if model.kind == "radial" else truth
        samples = model(
            torch.from_numpy(np.array(seen, np.float32))[None, None],
            torch.from_numpy(valid)[None, None],
            generator=torch.Generator().manual_seed(each.scene),
        )
        depth = torch.where(samples.valid, samples.depth, 0.0)
        known = {"kind": model.kind, "cameras": Cameras(camera), "confidence": samples.confidence}
        inputs = load_inputs(depth, arrays["image"], noise=each.name, **known)
        yield GalleryFrame(f"rendered-{each.name}", inputs, np.where(valid, truth, 0.0))


def lit(depth: np.ndarray, focal: float) -> RGB:
    """The surface under a lamp from the left and below, where floors face; a pixel is z / focal wide."""
    down, right = np.gradient(depth.astype(np.float64))
    pitch = depth / focal
    normal = np.stack([-right / pitch, -down / pitch, np.ones_like(down)])
    shade = np.tensordot(LIGHT, normal / np.linalg.norm(normal, axis=0), 1).clip(0.0, 1.0)
    return np.repeat((255 * shade).astype(np.uint8)[..., None], 3, axis=2)


def smaller(rgb: RGB, width: int = WIDTH) -> RGB:
    """Area-averaged to the width of a column."""
    height = round(rgb.shape[0] * width / rgb.shape[1])
    return np.asarray(Image.fromarray(rgb).resize((width, height), Image.Resampling.BOX))


def sheet(shown: GalleryFrame) -> Image.Image:
    """Image and samples, then for every method its depth, and its surface or its error."""
    frame = shown.inputs.frame
    guide = (255 * frame.guide[0].permute(1, 2, 0).expand(-1, -1, 3).numpy()).astype(np.uint8)
    low, valid = frame.depth[0, 0].numpy(), frame.valid[0, 0].numpy()
    limits = robust_limits(low, valid)
    seen = draw_samples(low, valid, limits, frame.high_size, sample_reach(shown.inputs))
    rows = [[("image", guide), ("measured", seen)]]
    for name in METHODS:
        depth = create(name)(frame).depth[0, 0].numpy()
        colours = colorize(depth, np.ones_like(depth, bool), limits)
        rows.append([(name, colours), _beside(name, depth, shown)])
        print(shown.name, name, flush=True)
    strips = [panel([(title, smaller(rgb)) for title, rgb in row], max_width=2 * WIDTH + 40) for row in rows]
    return Image.fromarray(np.concatenate(strips))


def _beside(name: str, depth: np.ndarray, shown: GalleryFrame) -> tuple[str, RGB]:
    if shown.truth is None:
        return f"{name}, lit", lit(depth, _focal(shown.inputs))
    known = shown.truth > 0
    rmse = float(np.sqrt(np.mean((depth - shown.truth)[known] ** 2)))
    limit = ERROR * float(np.median(shown.truth[known]))
    return f"error, RMSE {1000 * rmse:.0f} mm", error_map(depth, shown.truth, known, limit)


def _focal(inputs: Inputs) -> float:
    """In pixels; for a view of about 60 degrees where no camera is known."""
    return 0.87 * max(inputs.frame.high_size)


def main() -> None:
    """Make every picture, or some."""
    names = [each.name for each in (*RENDERED, *REAL)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for frames in (rendered_frames(arguments.only), real_frames(arguments.data / "real", arguments.only)):
        for shown in frames:
            sheet(shown).save(arguments.out / f"{shown.name}.jpg", quality=85)


if __name__ == "__main__":
    main()
