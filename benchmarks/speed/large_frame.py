"""A guide far larger than memory would allow whole: the command line, in tiles, under a memory cap.

    python -m benchmarks.speed.large_frame --width 12000 --height 9000 --memory 4 --tile 1024 --out FILE.json

The network is `fcn-pdn-s` with random weights: what is measured is time and peak memory, not depth.
"""

import argparse
import datetime as dt
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.networks.card import ModelCard
from primaldepth.networks.zoo import save_model


def write_inputs(folder: Path, width: int, height: int, scale: int) -> None:
    """Depth in millimetres, a smooth guide with some texture, and random weights."""
    random = np.random.default_rng(0)
    y, x = np.mgrid[0 : height // scale, 0 : width // scale].astype(np.float32)
    depth = 2000 + 500 * np.sin(y / 90) * np.cos(x / 70) + random.normal(0, 10, y.shape)
    Image.fromarray(depth.astype(np.uint16)).save(folder / "depth.png")
    tile = random.integers(0, 40, (256, 256, 3), dtype=np.uint8)
    guide = np.tile(tile, (height // 256 + 1, width // 256 + 1, 1))[:height, :width]
    guide += (120 + 80 * np.sin(np.arange(height) / 300)).astype(np.uint8)[:, None, None]
    Image.fromarray(guide).save(folder / "guide.png", compress_level=1)
    torch.manual_seed(0)
    net = DepthNet(NetworkSettings())
    torch.nn.init.normal_(net.fcn.head.weight, std=0.01)
    card = ModelCard(name="fcn-pdn-s", scale=scale, settings=net.settings, created=dt.datetime.now(dt.UTC))
    save_model(folder / "random", net, card)


def measure(folder: Path, tile: int, memory: float) -> dict[str, float]:
    """Seconds and the peak memory of `primaldepth upsample` on the files in `folder`."""
    command = [
        str(Path(sys.executable).with_name("primaldepth")), "upsample", "depth.png", "guide.png",
        "-o", "out.png",
        "--method", "random.safetensors", "--unit", "mm", "--device", "cpu", "--tile", str(tile),
        "--set", f"memory_gib={memory}",
    ]  # fmt: skip
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True)
    seconds = time.perf_counter() - start
    (folder / "out.png").stat()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return {"seconds": round(seconds, 1), "peak_gib": round(peak, 3)}


def main() -> None:
    """Make the inputs, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=12000)
    parser.add_argument("--height", type=int, default=9000)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--tile", type=int, default=1024)
    parser.add_argument("--memory", type=float, default=4.0, help="GiB")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), options.width, options.height, options.scale)
        found = measure(Path(folder), options.tile, options.memory)
    report = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
        **{name: getattr(options, name) for name in ("width", "height", "scale", "tile", "memory")},
        **found,
    }
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    if found["peak_gib"] > options.memory:
        sys.exit(f"the peak of {found['peak_gib']} GiB is above the cap of {options.memory} GiB")


if __name__ == "__main__":
    main()
