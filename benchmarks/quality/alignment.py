"""Whether views that differ are warned of with the right number, and nothing else is.

python -m benchmarks.quality.alignment --scenes RENDERED [--data DATA] [--scale 4] [--count 56]

RENDERED is a folder that `primaldepth render` made. Each scene is compared as it is, with its depth moved by
12 pixels against the image, and with an image of 55 degrees beside a depth of 79. DATA has frames of real
cameras and of benchmarks, which are compared as they are, whole and reduced. The cost is CPU time against
that of `pdn-any`.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from primaldepth.data.shards import Shards
from primaldepth.geometry.alignment import Alignment, alignment
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io import read_depth, read_guide
from primaldepth.methods import create
from primaldepth.pipeline.load import load
from primaldepth.pipeline.request import Item, Request

Array = NDArray[np.float32]
SHIFT = 12
WIDE, NARROW = 79.0, 55.0  # degrees
NEAR_PIXELS, NEAR_DEGREES = 2.0, 3.0
SCALES = (1, 4, 8)


def compared(
    depth: Array, image: Array, kind: str, scale: int, degrees: float | None = None
) -> Alignment | None:
    """Return what is found for a frame whose depth is reduced to one sample of scale x scale."""
    low = torch.from_numpy(depth[scale // 2 :: scale, scale // 2 :: scale].copy())[None, None]
    guide = torch.from_numpy(np.ascontiguousarray(image))
    guide = guide.permute(2, 0, 1)[None] if guide.ndim == 3 else guide[None, None]
    camera = None if degrees is None else Intrinsics.guess(guide.shape[3], guide.shape[2], degrees)
    return alignment(low, low > 0, guide.contiguous(), kind, camera)


def moved(depth: Array, image: Array, number: int) -> tuple[Array, Array, tuple[int, int]]:
    """Return a pair whose depth lies 12 pixels off the image, in another direction for each scene."""
    angle = math.radians(137.5 * number)
    right, down = round(SHIFT * math.cos(angle)), round(SHIFT * math.sin(angle))

    def parts(size: int, shift: int) -> tuple[slice, slice]:
        return slice(max(0, -shift), size - max(0, shift)), slice(max(0, shift), size - max(0, -shift))

    rows, columns = parts(len(depth), down), parts(depth.shape[1], right)
    return depth[rows[0], columns[0]], image[rows[1], columns[1]], (right, down)


def enlarged(image: Array, zoom: float) -> Array:
    """Return the middle of an image, with as many pixels as before."""
    steps = [torch.arange(size, dtype=torch.float32) + 0.5 for size in image.shape[:2]]
    places = [(each * 2.0 / len(each) - 1.0) / zoom for each in steps]
    grid = torch.stack(torch.meshgrid(places[1], places[0], indexing="xy"), dim=-1)[None]
    planes = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
    found = torch.nn.functional.grid_sample(planes, grid, align_corners=False)
    return found[0].permute(1, 2, 0).numpy()


def scene_rows(folder: Path, scale: int, count: int) -> Iterator[dict[str, object]]:
    """Compare each rendered scene as it is, moved, and with another field of view."""
    zoom = math.tan(math.radians(WIDE / 2)) / math.tan(math.radians(NARROW / 2))
    for number, scene in enumerate(Shards(folder)):
        if number >= count:
            return
        depth = np.where(scene["valid"], scene["depth"], 0.0).astype(np.float32)
        image = scene["image"].astype(np.float32) / 255.0
        same = compared(depth, image, "z", scale)
        beside, cut, shift = moved(depth, image, number)
        offset = compared(beside, cut, "z", scale)
        wide = compared(depth, enlarged(image, zoom), "z", scale, NARROW)
        yield {
            "scene": number,
            "aligned": _warned(same),
            "moved": _warned(offset),
            "moved right": _warned(offset) and _pixels(offset, shift) <= NEAR_PIXELS,
            "wide": _warned(wide),
            "wide right": _warned(wide)
            and abs(((wide and wide.depth_degrees) or 0.0) - WIDE) <= NEAR_DEGREES,
        }


def _warned(found: Alignment | None) -> bool:
    return found is not None and found.differs


def _pixels(found: Alignment | None, shift: tuple[int, int]) -> float:
    if found is None or found.zoomed:
        return math.inf
    return math.hypot(found.view.offset[0] + shift[0], found.view.offset[1] + shift[1])


def real_pairs(data: Path) -> Iterator[tuple[str, Path, Path, str]]:
    """Frames as (set, depth file, image file, unit)."""
    for depth in sorted((data / "real_holdout").glob("*_depth_mm.png")):
        yield "real_holdout", depth, depth.with_name(depth.name.replace("_depth_mm", "_rgb")), "mm"
    for depth in sorted((data / "real").glob("*/depth_mm.png")):
        yield "real", depth, next(depth.parent.glob("color.*")), "mm"
    for depth in sorted((data / "real" / "tof_graz").glob("*_tof_warped_8bit.png")):
        image = depth.with_name(depth.name.replace("tof_warped_8bit", "intensity"))
        yield "real", depth, image, "disparity"
    for depth in sorted((data / "middlebury_2006_half").glob("*/disparity_gt.png")):
        yield "middlebury_2006_half", depth, depth.with_name("color.png"), "disparity"
    for depth in sorted((data / "noise_free" / "nyu").glob("*_depth_5000.png")):
        yield "nyu", depth, depth.with_name(depth.name.replace("_depth_5000", "_rgb")), "5000"


def false_warnings(data: Path) -> dict[str, dict[str, Any]]:
    """Count warnings of frames as they are, by set and reduction; there should be none."""
    found: dict[str, dict[str, Any]] = {}
    for name, depth, image, unit in real_pairs(data):
        frame, guide = read_depth(depth, unit=unit), np.asarray(read_guide(image))
        guide = guide.astype(np.float32) / (np.iinfo(guide.dtype).max if guide.dtype.kind == "u" else 1.0)
        values = np.where(frame.valid, frame.values, 0.0).astype(np.float32)
        for scale in SCALES:
            if min(values.shape) // scale < 24:
                continue
            row = found.setdefault(f"{name} x{scale}", {"frames": 0, "not judged": 0, "warned": []})
            result = compared(values, guide, frame.kind, scale)
            row["frames"] += 1
            row["not judged"] += result is None or not result.certain
            if _warned(result):
                row["warned"].append(f"{depth.parent.name}/{depth.name}")
    return found


def cost(data: Path) -> dict[str, float]:
    """CPU seconds of the comparison, and of loading and running pdn-any, on a frame reduced by 4."""
    _, depth, image, _ = next(real_pairs(data))
    values = read_depth(depth, unit="mm").values[2::4, 2::4].astype(np.float32)
    method, item = create("pdn-any"), Item(values, np.asarray(read_guide(image)))
    request = Request(device="cpu")
    torch.set_num_threads(1)
    with_check = _seconds(lambda: method(load(item, request).frame))
    inputs = load(item, request, compare_views=False).frame
    check = _seconds(lambda: alignment(inputs.depth, inputs.valid, inputs.guide, "z"))
    return {"upsample": with_check, "check": check, "share": check / with_check}


def _seconds(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(5):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scale", type=int, default=4)
    parser.add_argument("--count", type=int, default=56)
    arguments = parser.parse_args()
    found: dict[str, object] = {}
    if arguments.scenes:
        rows = list(scene_rows(arguments.scenes, arguments.scale, arguments.count))
        names = [name for name in rows[0] if name != "scene"]
        found["scenes"] = len(rows)
        found |= {name: sum(bool(row[name]) for row in rows) for name in names}
        found["silent"] = {
            name: [row["scene"] for row in rows if not row[name]] for name in ("moved right", "wide right")
        }
    if arguments.data:
        found["cost"] = cost(arguments.data)
        found["as they are"] = false_warnings(arguments.data)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
