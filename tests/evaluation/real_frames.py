"""Small frames of the form of real-holdout: a wall, a box before it, holes beside the box."""

import numpy as np
from PIL import Image

SHAPE = (101, 131)  # odd on purpose: it is cropped to 96x128


def write_frame(folder, name, seed=0, shape=SHAPE, image_shape=None):
    """A wall in 2 m, a box in 1 m with a hole of 10 columns to its left, and some single holes."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    depth = np.full(shape, 2000, np.uint16)
    depth[30:70, 60:100] = 1000
    depth[30:70, 50:60] = 0
    depth[5:95:10, 7] = 0
    image = rng.integers(90, 110, (*(image_shape or shape), 3), dtype=np.uint8)
    image[30:70, 60:100] += 100
    Image.fromarray(depth).save(folder / f"{name}_depth_mm.png")
    Image.fromarray(image).save(folder / f"{name}_rgb.png")
