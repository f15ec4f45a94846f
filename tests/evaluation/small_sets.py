"""Small sets in the layout of noise-free, with checksums of their own."""

from dataclasses import replace

import numpy as np
from PIL import Image
from small_benchmark import digest

from primaldepth.evaluation.protocols import get_protocol

NUMBERS = {"middlebury": (1, 2), "lu": (1, 2), "nyu": (1001, 1003)}
SIZE = (37, 55)


def frame(seed):
    """(levels, image): a slope with a step, and noise; the sizes are no multiples of anything."""
    rng = np.random.default_rng(seed)
    levels = np.add.outer(2.0 * np.arange(SIZE[0]), np.arange(SIZE[1])) + 20 + seed
    levels[:, 30:] += 60
    return levels.round().astype(np.float32), rng.integers(0, 255, (*SIZE, 3), dtype=np.uint8)


def write_arrays(root, name, number, truth, image):
    """`SET/gt/N.npy` and `SET/rgb/N.npy`, in Fortran's order as the public ones are."""
    for part, array in (("gt", truth), ("rgb", image)):
        (root / name / part).mkdir(parents=True, exist_ok=True)
        np.save(root / name / part / f"{number}.npy", np.asfortranarray(array))


def write_png(root, name, number, truth, image):
    """`SET/N_gt.png` of levels or `SET/N_depth_5000.png` of metres, and `SET/N_rgb.png`."""
    (root / name).mkdir(parents=True, exist_ok=True)
    stem = root / name / str(number)
    if name == "nyu":
        Image.fromarray(np.rint(5000 * truth).astype(np.uint16)).save(f"{stem}_depth_5000.png")
    else:
        Image.fromarray(truth.astype(np.uint8)).save(f"{stem}_gt.png")
    Image.fromarray(image).save(f"{stem}_rgb.png")


def freeze_sets(data, write=write_arrays, names=tuple(NUMBERS)):
    """The protocol on sets of two or three frames, those of `names` written below `data`."""
    frozen = get_protocol("noise-free")
    root = data / frozen.folder
    for name in names:
        first, last = NUMBERS[name]
        for number in range(first, last + 1):
            levels, image = frame(number % 1000)
            write(root, name, number, levels / 50 if name == "nyu" else levels, image)
    scenes = tuple(
        f"{name}/{number}" for name, ends in NUMBERS.items() for number in range(ends[0], ends[1] + 1)
    )
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): digest(path) for path in paths}
    return replace(frozen, files=files, names=scenes)
