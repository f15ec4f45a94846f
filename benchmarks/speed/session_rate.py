"""Frames a second of `Session.push` from arrays in memory, without holes and with them.

    python -m benchmarks.speed.session_rate --method pdn-any-small --width 640 --height 480
    python -m benchmarks.speed.session_rate --method pdn-any --width 1280 --height 720 --device cuda

The camera sees slanted surfaces, with fresh noise in every frame; on a GPU its arrays lie there. The first
frames, in which kernels are compiled and recorded, are timed apart. `--frames 10000` shows whether memory
grows.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from primaldepth import Session

KEPT = 8  # frames that are drawn, and used over and over
FIRST = 5


def frames(height: int, width: int, scale: int, holes: float, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield depth (1, 1, h, w) in metres and image (1, 3, H, W) for ever; holes lie beside a box."""
    h, w = height // scale, width // scale
    generator = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(torch.arange(h) / h, torch.arange(w) / w, indexing="ij")
    box = ((x - 0.5).abs() < 0.2) & ((y - 0.5).abs() < 0.25)
    surface = torch.where(box, 1.2 + 0.1 * x, 2.0 + 0.5 * y)
    shadow = (x > 0.7) & (x < 0.7 + holes / 0.6) & ((y - 0.5).abs() < 0.3)
    image = torch.nn.functional.interpolate(surface[None, None], size=(height, width)).expand(1, 3, -1, -1)
    kept = []
    for _ in range(KEPT):
        depth = surface * (1.0 + 0.01 * torch.randn(h, w, generator=generator))
        grain = 0.02 * torch.randn(1, 3, height, width, generator=generator)
        depth = torch.where(shadow, 0.0, depth)[None, None]
        kept.append((depth.to(device), (image / 3.0 + grain).clamp(0.0, 1.0).to(device)))
    while True:
        yield from kept


def memory() -> int:
    """Return the bytes of memory that this process has (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def rate(arguments: argparse.Namespace, holes: float) -> dict[str, float]:
    """Return the rate over all frames but the first, their seconds, and memory after and before."""
    source = frames(arguments.height, arguments.width, arguments.scale, holes, arguments.device)
    with Session(method=arguments.method, unit="m", device=arguments.device) as session:
        start = time.perf_counter()
        for _ in range(FIRST):
            session.push(*next(source))
        first, before = time.perf_counter() - start, memory()
        start = time.perf_counter()
        for number in range(arguments.frames):
            session.push(*next(source))
            if (number + 1) % max(1, arguments.frames // 5) == 0:
                done = (number + 1) / (time.perf_counter() - start)
                print(f"{holes:.0%} holes, {number + 1} frames: {done:.1f} a second", flush=True)
        seconds = time.perf_counter() - start
    grown = (memory() - before) / 2**20
    return {
        "holes": holes,
        "frames_per_second": arguments.frames / seconds,
        "first_seconds": first,
        "grown_MiB": grown,
    }


def main() -> None:
    """Print the rates, as they come and at the end as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="pdn-any-small")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--scale", type=int, default=4)
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    print(json.dumps([rate(arguments, holes) for holes in (0.0, 0.16)], indent=1))


if __name__ == "__main__":
    main()
