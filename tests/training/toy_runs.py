"""Runs of seconds: small scenes without a renderer, a small network, few steps."""

import json
from pathlib import Path

import numpy as np
import torch

from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part
from primaldepth.training.recipe import Recipe
from primaldepth.training.run import train

SIZE, COUNT = 32, 10
NET = {"input": "s", "layers": 3, "maps": 8, "window": 3, "iterations": 2}
DATA = {"far": (50.0, 60.0), "near": (100.0, 120.0), "held_out": 2}
FCN = {"part": "fcn", "steps": 8, "batch": 4, "patch": 16, "rate": 1e-2, "warmup": 2, "ema": 0.5}
JOINT = {**FCN, "part": "joint", "steps": 6, "rate": 5e-3, "first": 0.2, "affinity": 0.5, "rate_pdn": 5.0}


def scene(number, size=SIZE):
    """A slanted wall with a box before it, textured, and nothing at all in one corner."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[:size, :size] / size
    inverse = 0.3 + 0.1 * rng.random() * x + 0.1 * rng.random() * y
    top, left = rng.integers(4, size // 2, 2)
    box = (slice(top, top + size // 3), slice(left, left + size // 3))
    inverse[box] = 0.8
    image = 60.0 * np.ones((size, size, 3))
    image[box] = 180.0
    depth = (1.0 / inverse).astype(np.float32)
    hole = rng.integers(0, size // 4)
    depth[:hole, :hole] = 0.0
    return {"depth": depth, "image": (image + rng.integers(0, 40, image.shape)).astype(np.uint8)}


def write_scenes(folder: Path, count=COUNT, size=SIZE) -> Path:
    job = Manifest(made_with={"preset": "toy", "size": size}, versions={}, scenes_per_shard=4, count=count)
    with ShardWriter(folder, job) as writer:
        for number in writer.missing():
            write_part(folder, number, scene(number, size))
            writer.add(number)
    return folder


def recipe(*stages, data=None, **changes) -> Recipe:
    """Two short stages with a checkpoint every 3 steps, unless told otherwise."""
    values = {
        "name": "toy",
        "scale": 2,
        "net": NET,
        "data": {**DATA, **(data or {})},
        "stages": stages or ({**FCN, "save_as": "toy-fcn"}, {**JOINT, "save_as": "toy-pdn"}),
        "validation": {"every": 4, "protocols": ()},
        "precision": "fp32",
        "checkpoint_every": 3,
    }
    return Recipe.model_validate({**values, **changes})


def run(wanted: Recipe, shards: Path, out: Path, **options):
    """The events of a whole run."""
    events = []
    train(wanted, shards, out, observer=events.append, **options)
    return events


def log(out: Path, key="loss"):
    """(total step, value) of every line that has the key."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [(line["total_step"], line[key]) for line in lines if key in line]


def tensors(path: Path):
    from safetensors.torch import load_file

    return load_file(path)


def same_tensors(a: Path, b: Path) -> bool:
    """Bit for bit."""
    first, second = tensors(a), tensors(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
