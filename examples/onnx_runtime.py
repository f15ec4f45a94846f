"""Depth super-resolution with ONNX Runtime, numpy and Pillow alone.

    primaldepth export pdn-any -o net.onnx
    python onnx_runtime.py net.onnx depth.png photo.jpg fine.png --noise 12

The depth is a 16-bit PNG in any unit, 0 where nothing was measured; the noise is in the same unit, and so is
the result. The network sees depth centred at its median and divided by half its spread: see `prepare`.
"""

import argparse

import numpy as np
import onnxruntime
from PIL import Image


def main() -> None:
    """Read, run, write."""
    parser = argparse.ArgumentParser()
    for name in ("net", "depth", "image", "out"):
        parser.add_argument(name)
    parser.add_argument("--noise", type=float, required=True, help="standard deviation of a sample")
    parser.add_argument("--sampling", choices=("average", "point"), default="point")
    options = parser.parse_args()
    depth = np.asarray(Image.open(options.depth)).astype(np.float64)
    image = np.asarray(Image.open(options.image).convert("RGB"), np.float32) / 255
    session = onnxruntime.InferenceSession(options.net)
    result = upsample(session, depth, image, options.noise, options.sampling)
    Image.fromarray(np.clip(np.rint(result), 0, 65535).astype(np.uint16)).save(options.out)


def upsample(
    session: onnxruntime.InferenceSession,
    depth: np.ndarray,
    image: np.ndarray,
    noise: float,
    sampling: str = "point",
) -> np.ndarray:
    """(h, w) depth and (H, W, 3) image in [0, 1] -> (H, W) depth in the same unit."""
    names = [each.name for each in session.get_inputs()]
    any_scale = "ratio" in names
    maps, centre, spread = prepare(depth, image.shape[:2], noise, grow=any_scale)
    feed = {name: np.asarray(each, np.float32)[None, None] for name, each in maps.items()}
    feed["guide"] = image.mean(axis=2)[None, None].astype(np.float32)
    if any_scale:  # a network for every scale: it reads colours, and by how much the image is larger
        feed["guide"] = image.transpose(2, 0, 1)[None].astype(np.float32)
        feed["ratio"] = np.full((1, 1, 1, 1), 0.5 * np.log2(image[..., 0].size / depth.size), np.float32)
    if "rows" in names:  # a network that compares its result with the samples: it reads how they come about
        size = image.shape[:2]
        kernel = cubic if sampling == "average" and size != depth.shape else point
        feed["rows"], feed["columns"] = (
            kernel(*sides).astype(np.float32) for sides in zip(size, depth.shape, strict=True)
        )
        scaled = {
            "samples": np.where(depth > 0, (depth - centre) / spread, 0.0),
            "sample_sigma": np.full(depth.shape, noise / spread),
            "sample_trust": depth > 0,
        }
        feed |= {name: np.asarray(each, np.float32)[None, None] for name, each in scaled.items()}
    return session.run(["result"], feed)[0][0, 0] * spread + centre


def prepare(
    depth: np.ndarray, size: tuple[int, ...], noise: float, *, grow: bool
) -> tuple[dict[str, np.ndarray], float, float]:
    """Depth, noise and trust as the network sees them, on the image's grid; centre and spread of depth.

    Networks for every scale get surfaces that are continued into holes, and trusted there up to two samples
    from their border. Networks for one scale get a smooth fill that is not trusted.
    """
    valid = depth > 0
    low, centre, high = np.quantile(depth[valid], [0.05, 0.5, 0.95])
    spread = max(0.5 * (high - low), 1e-3 * abs(centre) + 1e-12)
    steps = 5 if grow else 0
    depths, ring = grow_into_holes(np.where(valid, (depth - centre) / spread, 0.0), valid, steps)
    noises, _ = grow_into_holes(np.where(valid, noise / spread, 0.0), valid, steps)
    trust = np.clip((6 - ring) / 4, 0.0, 1.0) if grow else valid.astype(float)  # 0 from six samples on
    maps = {"depth": depths, "sigma": noises, "trust": trust}
    return {name: resized(each, size, linear) for name, each in maps.items()}, centre, spread


def grow_into_holes(values: np.ndarray, valid: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Continue samples into holes ring by ring, then fill; also returns the ring of each pixel."""
    known, ring = valid.astype(float), 1.0 - valid
    for _ in range(steps):
        count = around(known)
        new = (known == 0) & (count > 0)
        values = np.where(new, around(values * known) / np.maximum(count, 1.0), values)
        known = np.where(new, 1.0, known)
        ring = ring + (1.0 - known)
    return fill(values * known, known > 0), ring


def around(values: np.ndarray) -> np.ndarray:
    """Sum over the 3x3 pixels around each, 0 beyond the border."""
    rows, columns = values.shape
    padded = np.pad(values, 1)
    return sum(padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3))


def fill(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Holes get means over cells that double until they reach a valid sample."""
    if valid.all():
        return values
    half = [(side + 1) // 2 for side in values.shape]
    weight, total = resized(valid.astype(float), half, area), resized(values, half, area)
    coarse = fill(np.where(weight > 1e-6, total / np.maximum(weight, 1e-6), 0.0), weight > 1e-6)
    return np.where(valid, values, resized(coarse, values.shape, linear))


def resized(values: np.ndarray, size: tuple[int, ...] | list[int], weights) -> np.ndarray:
    """Both axes with (new, old) matrices of weights."""
    return weights(values.shape[0], size[0]) @ values @ weights(values.shape[1], size[1]).T


def linear(old: int, new: int) -> np.ndarray:
    """Between pixel centres; constant beyond the first and the last."""
    place = (np.arange(new) + 0.5) * (old / new) - 0.5
    return np.array([np.interp(place, np.arange(old), row) for row in np.eye(old)]).T


def area(old: int, new: int) -> np.ndarray:
    """The mean of the old pixels that a new one covers, parts of pixels counted as such."""
    left = np.arange(new)[:, None] * (old / new)
    cell = np.arange(old)[None, :]
    covered = np.clip(np.minimum(left + old / new, cell + 1) - np.maximum(left, cell), 0, None)
    return covered / covered.sum(axis=1, keepdims=True)


def cubic(old: int, new: int) -> np.ndarray:
    """Cubic convolution (a = -1/2), as wide as a new pixel: samples that average what they cover."""
    return kernel_matrix(old, new, max(1.0, old / new), 2.0, cubic_weight)


def point(old: int, new: int) -> np.ndarray:
    """Linear between pixel centres at the centre of each new pixel: samples of single points."""
    return kernel_matrix(old, new, 1.0, 1.0, lambda t: np.maximum(0.0, 1.0 - np.abs(t)))


def cubic_weight(t: np.ndarray) -> np.ndarray:
    """The cubic kernel: it meets 1 at 0 and 0 at every other integer."""
    t = np.abs(t)
    near, far = 1.5 * t**3 - 2.5 * t**2 + 1.0, -0.5 * t**3 + 2.5 * t**2 - 4.0 * t + 2.0
    return np.where(t <= 1.0, near, np.where(t < 2.0, far, 0.0))


def kernel_matrix(old: int, new: int, stretch: float, radius: float, weight) -> np.ndarray:
    """(new, old) weights of a kernel at the centres of new pixels; the border is mirrored."""
    centre = (np.arange(new) + 0.5) * (old / new) - 0.5
    first = np.floor(centre - radius * stretch).astype(int)
    index = first[:, None] + np.arange(int(np.ceil(2 * radius * stretch)) + 2)
    weights = weight((centre[:, None] - index) / stretch)
    inside = np.minimum(index % (2 * old), 2 * old - 1 - index % (2 * old))
    matrix = np.zeros((new, old))
    np.add.at(matrix, (np.arange(new)[:, None], inside), weights / weights.sum(axis=1, keepdims=True))
    return matrix


if __name__ == "__main__":
    main()
