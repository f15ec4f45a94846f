"""Rendered scenes as the files of a camera: noisy depth, the image beside it, the truth, the intrinsics."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.core.seeds import generator
from primaldepth.data.shards import Shards
from primaldepth.geometry.intrinsics import Intrinsics
from primaldepth.io.cameras import write_cameras
from primaldepth.io.depth_writing import write_values
from primaldepth.io.picture_files import write_preview
from primaldepth.sensors.base import Sensor


def write_recording(
    shards: Shards,
    out: Path,
    camera: Sensor,
    *,
    count: int,
    seed: int = 0,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Write depth/N.png in millimetres, guide/N.png, truth/N.png and cameras/N.json of every scene.

    Args:
        camera: a sensor of kind z.
        count: of scenes, the first ones; no more than there are.
        seed: of the sensor's noise; scene by scene, so that fewer scenes have the same files.
        watch: called with the number of scenes that are done.
    """
    if camera.kind != "z":
        raise InputError(
            f"sensor '{camera.name}' measures {camera.kind}; choose one of z, such as metric-gaussian-v1"
        )
    if count:
        shards.check("depth", "valid", "image", "guide_camera")
    for index in range(count):
        _write(out, f"{shards.scenes[index]:06d}", shards[index], camera, seed)
        if watch is not None:
            watch(index + 1)


def _write(out: Path, name: str, scene: Mapping[str, NDArray[Any]], camera: Sensor, seed: int) -> None:
    truth, valid = np.array(scene["depth"]), np.array(scene["valid"])
    maps = [torch.from_numpy(each)[None, None] for each in (truth, valid)]
    samples = camera(maps[0], maps[1], generator=generator("recording", name, seed))
    height, width = truth.shape
    fx, fy, cx, cy = (float(number) for number in scene["guide_camera"])
    for folder in ("depth", "guide", "truth", "cameras"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    measured = samples.valid[0, 0].numpy()
    write_values(out / "depth" / f"{name}.png", samples.depth[0, 0].numpy(), measured, "mm")
    write_values(out / "truth" / f"{name}.png", truth, valid, "mm")
    write_preview(out / "guide" / f"{name}.png", np.array(scene["image"]))
    write_cameras(out / "cameras" / f"{name}.json", Intrinsics(fx, fy, cx, cy, width, height))
