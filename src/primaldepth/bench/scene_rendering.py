"""`bench render`: one image from seed to arrays, and shards back into memory."""

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.torch import load_file

from primaldepth.bench.kernels import BenchRow
from primaldepth.bench.timing import copy_bandwidth, measure
from primaldepth.core.part_seconds import collected
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.shards import Shards
from primaldepth.data.single_scenes import write_part
from primaldepth.scenes.scene_source import Arrays, RenderSettings, render_scene

SIZE, SAMPLES = 512, {"cuda": 32, "cpu": 16}
SCENES, STORED = 12, 128


def bench_render(device: str) -> list[BenchRow]:
    """Measure preset `rich` on `device`, against the variant `scalar`; then reading stored scenes."""
    variant = "cuda" if device == "cuda" else "llvm"
    settings = RenderSettings(size=SIZE, samples=SAMPLES[device], variant=variant).resolved()
    fast, parts, arrays = _render_ms(settings, SCENES)
    slow, _, _ = _render_ms(settings.model_copy(update={"variant": "scalar"}).resolved(), 1)
    with TemporaryDirectory() as folder:
        floor = _store(Path(folder), arrays)
        name = f"one scene, rich {SIZE}x{SIZE} {settings.samples} samples"
        return [
            BenchRow(name, variant, fast, slow, slow / fast, floor, None, None, {**parts, "write": floor}),
            _reading(Path(folder), device),
        ]


def _render_ms(settings: RenderSettings, scenes: int) -> tuple[float, dict[str, float], Arrays]:
    """Return the median milliseconds of a scene and of each part, and the arrays of the last scene."""
    renderer = settings.open()
    arrays = render_scene(renderer, 0, 0)
    times, parts = [], []
    for scene in range(1, scenes + 1):
        start = time.perf_counter()
        with collected() as seconds:
            arrays = render_scene(renderer, 0, scene)
        times.append(1e3 * (time.perf_counter() - start))
        parts.append(seconds)
    return (
        median(times),
        {name: 1e3 * median(each[name].clock for each in parts) for name in parts[0]},
        arrays,
    )


def _store(folder: Path, arrays: Mapping[str, np.ndarray]) -> float:
    """Fill a folder with copies of one scene; return the median milliseconds until one is safe on disk."""
    manifest = Manifest(made_with={}, versions={}, count=STORED)
    times = []
    with ShardWriter(folder, manifest) as writer:
        for scene in range(STORED):
            start = time.perf_counter()
            write_part(folder, scene, arrays)
            times.append(1e3 * (time.perf_counter() - start))
            writer.add(scene)
    return median(times)


def _reading(folder: Path, device: str) -> BenchRow:
    """Time `Shards.load` beside safetensors and torch.stack; the floor is the time to copy each byte."""
    shards = Shards(folder)
    files = [folder / entry.file for entry in shards.manifest.shards]
    moved = 2 * sum(spec.nbytes for spec in shards.specs.values()) * len(shards)

    def reference() -> object:
        loaded = [load_file(file) for file in files]
        return {name: torch.cat([each[name] for each in loaded]).to(device) for name in shards.specs}

    out = shards.load(device)
    fast, slow = measure(lambda: shards.load(device, out=out), device), measure(reference, device)
    name = f"load {STORED} scenes, {moved / 2e9:.2f} GB"
    return BenchRow.of(name, "threads", fast, slow, 1e3 * moved / copy_bandwidth(device))
