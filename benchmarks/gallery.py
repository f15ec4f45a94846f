"""Real frames through several methods, for the eye: depth in colours, and the same surface lit from the side.

    python -m benchmarks.gallery --data DATA --out docs/images

DATA/real holds frames of a tablet's LiDAR scanner, of RGB-D cameras and of a time-of-flight camera; none
has a true depth. The lit surface shows what colours hide: noise, steps and texture copied from the image.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from primaldepth.api import Inputs, load_inputs
from primaldepth.io.preview import RGB, colorize, draw_samples, panel, robust_limits
from primaldepth.methods import create
from primaldepth.results import sample_reach

METHODS = ("bicubic", "ferstl13", "fcn-pdn-s", "pdn-any")
WIDTH, LIGHT = 480, np.array([-0.485, 0.485, 0.728])


@dataclass(frozen=True)
class Shot:
    """Two files of a frame, and what is known of its noise."""

    name: str
    depth: str
    guide: str
    noise: str = "auto"


SHOTS = (
    Shot("arkit", "arkit/depth_mm.png", "arkit/color.jpg", "ipad-lidar"),
    Shot("rgbd-0", "rgbd_0/depth_mm.png", "rgbd_0/color.png"),
    Shot("rgbd-2", "rgbd_2/depth_mm.png", "rgbd_2/color.png"),
    *(
        Shot(f"tof-{name}", f"tof_graz/{name}_tof_warped_8bit.png", f"tof_graz/{name}_intensity.png")
        for name in ("books", "devil", "shark")
    ),
)


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


def sheet(shot: Shot, folder: Path) -> Image.Image:
    """Image and samples, then for every method its depth and its surface."""
    inputs = load_inputs(folder / shot.depth, folder / shot.guide, noise=shot.noise, unit="mm")
    frame = inputs.frame
    guide = (255 * frame.guide[0].permute(1, 2, 0).expand(-1, -1, 3).numpy()).astype(np.uint8)
    low, valid = frame.depth[0, 0].numpy(), frame.valid[0, 0].numpy()
    limits = robust_limits(low, valid)
    seen = draw_samples(low, valid, limits, frame.high_size, sample_reach(inputs))
    rows = [[("image", guide), ("measured", seen)]]
    for name in METHODS:
        depth = create(name)(frame).depth[0, 0].numpy()
        colours = colorize(depth, np.ones_like(depth, bool), limits)
        rows.append([(name, colours), (f"{name}, lit", lit(depth, _focal(inputs)))])
        print(shot.name, name, flush=True)
    strips = [panel([(title, smaller(rgb)) for title, rgb in row], max_width=2 * WIDTH + 40) for row in rows]
    return Image.fromarray(np.concatenate(strips))


def _focal(inputs: Inputs) -> float:
    """In pixels; for a view of about 60 degrees where no camera is known."""
    return 0.87 * max(inputs.frame.high_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=[shot.name for shot in SHOTS])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        if shot.name in arguments.only:
            picture = sheet(shot, arguments.data / "real")
            picture.save(arguments.out / f"real-{shot.name}.jpg", quality=85)


if __name__ == "__main__":
    main()
