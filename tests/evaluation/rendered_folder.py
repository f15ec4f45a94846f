"""Small scenes in the place of rendered ones, and the folder that a job leaves."""

import numpy as np

from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part


def plain_arrays(seed, size=64):
    """A slope, a nearer square, and a corner where nothing is met."""
    rng = np.random.default_rng(seed)
    depth = np.add.outer(np.linspace(2, 3, size), np.linspace(0, 0.5, size)).astype(np.float32)
    depth[10:30, 20:40] = 1.2 + 0.1 * seed
    valid = np.ones(depth.shape, bool)
    valid[:5, :6] = False
    image = rng.integers(0, 256, (size, size, 3), np.uint8)
    return {"image": image, "depth": np.where(valid, depth, 0).astype(np.float32), "valid": valid}


def store(folder, protocol, scenes):
    """The folder that a job with the protocol's settings leaves."""
    made_with = {name: getattr(protocol, name) for name in ("preset", "size", "samples", "seed")}
    manifest = Manifest(
        made_with={**made_with, "textures": "built-in"}, versions={}, scenes_per_shard=2, count=len(scenes)
    )
    with ShardWriter(folder, manifest) as writer:
        for number, arrays in enumerate(scenes):
            write_part(folder, number, arrays)
            writer.add(number)
    return folder
