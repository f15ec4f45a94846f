"""Sensor models beside real cameras, for the eye: each row has a rendered scene and a frame of such a camera.

    python -m benchmarks.pages.sensor_pictures --out docs/images --data DATA

DATA holds the real frames. The scenes are those of `benchmarks.pages.gallery`, picked by their images.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmarks.pages.gallery import SETTINGS, smaller
from primaldepth.io import read_depth
from primaldepth.pictures.preview import RGB, colorize, panel, robust_limits
from primaldepth.scenes.scene_source import render_scene
from primaldepth.sensors import sensor
from primaldepth.sensors.triangulation import Triangulation

COLUMN = 300


@dataclass(frozen=True)
class Pair:
    """A sensor and the scene that it sees, beside the two files of a real frame."""

    sensor: str
    scene: int
    scale: int
    depth: str
    image: str
    options: tuple[tuple[str, float], ...] = ()


AT_BORDER = (("at_border", 1.0),)
TUM = "real_holdout/tumfr1_1"
PAIRS = (
    Pair("structured-light-v2", 11, 1, f"{TUM}_depth_mm.png", f"{TUM}_rgb.png", AT_BORDER),
    Pair("stereo-v1", 7, 1, "real/rgbd_2/depth_mm.png", "real/rgbd_2/color.png", AT_BORDER),
    Pair("lidar-v2", 8, 2, "real/arkit/depth_mm.png", "real/arkit/color.jpg"),
)


def modelled(pair: Pair) -> tuple[RGB, RGB]:
    """The image of a rendered scene, and what the sensor measures of it."""
    renderer = SETTINGS.resolved().open()
    arrays = render_scene(renderer, SETTINGS.seed, pair.scene)
    depth, valid = (torch.tensor(arrays[name])[None, None] for name in ("depth", "valid"))
    model = sensor(pair.sensor, scale=pair.scale, **dict(pair.options))
    random = torch.Generator().manual_seed(0)
    light = {}
    if isinstance(model, Triangulation):
        brightness = torch.tensor(arrays["image"]).float().mean(2)[None, None] / 255.0
        light = {"amplitude": brightness / torch.where(valid, depth, 1.0).square()}
    samples = model(depth, valid, generator=random, **light)
    return np.array(arrays["image"]), coloured(samples.depth[0, 0].numpy(), samples.valid[0, 0].numpy())


def coloured(depth: np.ndarray, valid: np.ndarray) -> RGB:
    """Depth in colours; black where nothing is measured."""
    return np.where(valid[..., None], colorize(depth, valid, robust_limits(depth, valid)), 0).astype(np.uint8)


def row(pair: Pair, data: Path) -> RGB:
    """Rendered image, modelled samples, real image, real samples."""
    image, samples = modelled(pair)
    found = read_depth(data / pair.depth, unit="mm")
    real = np.asarray(Image.open(data / pair.image).convert("RGB"))
    parts = [
        ("rendered", image),
        (pair.sensor, samples),
        ("a real frame", real),
        ("its depth", coloured(np.asarray(found.values), np.asarray(found.valid))),
    ]
    return panel([(title, smaller(rgb, COLUMN)) for title, rgb in parts], max_width=4 * COLUMN + 60)


def main() -> None:
    """Write one picture with a row for each sensor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    for pair in PAIRS:
        Image.fromarray(row(pair, arguments.data)).save(
            arguments.out / f"sensor-{pair.sensor}.jpg", quality=88
        )


if __name__ == "__main__":
    main()
