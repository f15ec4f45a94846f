"""A copy of noisy-middlebury with two small scenes, frozen anew."""

import hashlib
from dataclasses import replace

import numpy as np
from PIL import Image

from primaldepth.evaluation.protocols import get_protocol

SCENES = ("art", "books")


def write_scene(folder, seed):
    """A 32x48 disparity plane with unknown pixels, its colour image and its samples at x2 and x4."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    truth = (60 + np.add.outer(np.arange(32), np.arange(48)) + seed).astype(np.uint8)
    truth[3, 5:9] = 0
    Image.fromarray(truth).save(folder / "disparity_gt.png")
    Image.fromarray(rng.integers(0, 255, (32, 48, 3), dtype=np.uint8)).save(folder / "color.png")
    for scale in (2, 4):
        samples = np.maximum(truth[::scale, ::scale], 60)
        Image.fromarray(samples).save(folder / f"disparity_x{scale}_noisy.png")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def freeze(data):
    """The protocol, its scenes written below `data`."""
    frozen = get_protocol("noisy-middlebury")
    root = data / frozen.folder
    for seed, scene in enumerate(SCENES):
        write_scene(root / scene, seed)
    files = {
        scene: {path.name: digest(path) for path in sorted((root / scene).iterdir())} for scene in SCENES
    }
    return replace(frozen, files=files, scales=(2, 4))
