"""From radiance to an image: exposure, the lens' blur, the sensor's noise, the sRGB curve."""

import numpy as np
from numpy.typing import NDArray

from primaldepth.scenes.description import Exposure

WHITE = 0.95
_WEIGHTS = np.array([0.2126, 0.7152, 0.0722], np.float32)


def develop(radiance: NDArray[np.float32], exposure: Exposure, seed: int) -> NDArray[np.uint8]:
    """Return linear radiance (H, W, 3) as sRGB bytes, exposed so that the mean is `exposure.level` or less.

    Like a camera, it gives way where more than a twentieth of the picture would be white.

    Args:
        radiance: (H, W, 3), linear.
        exposure: of the scene.
        seed: of the sensor's noise.
    """
    light = np.nan_to_num(radiance, nan=0.0, posinf=0.0, neginf=0.0)
    grey = light @ _WEIGHTS
    bright = max(float(np.percentile(grey, 95)), 1e-9)
    mean = max(float(np.minimum(grey, 2 * bright).mean()), 1e-9)  # mirrors must not darken the picture
    gain = min(exposure.level / mean, WHITE / bright)
    light *= np.float32(gain)
    light = blurred(light, exposure.softness)
    if exposure.grey:
        light = np.repeat((light @ _WEIGHTS)[..., None], 3, axis=-1)
    if exposure.noise > 0:
        light += _shot_noise(light, exposure, seed)
    codes = srgb(np.clip(light, 0, 1, out=light))
    codes *= 255
    return np.round(codes, out=codes).astype(np.uint8)


def srgb(linear: NDArray[np.float32]) -> NDArray[np.float32]:
    """Apply the sRGB curve: 12.92 x below 0.0031308, else 1.055 x^(1/2.4) - 0.055."""
    curve = np.maximum(linear, np.float32(1e-7))
    curve **= np.float32(1 / 2.4)
    curve *= np.float32(1.055)
    curve -= np.float32(0.055)
    return np.where(linear <= 0.0031308, linear * np.float32(12.92), curve)


def linear_table() -> NDArray[np.float32]:
    """Return the inverse of `srgb` for each byte, (256,)."""
    x = np.arange(256) / 255
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4).astype(np.float32)


def blurred(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """Return an image blurred by a separable Gaussian; the border is repeated."""
    if sigma <= 0:
        return image
    reach = max(1, int(np.ceil(2.5 * sigma)))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel = (kernel / kernel.sum()).astype(np.float32)
    for axis in (0, 1):
        image = _along(image, kernel, axis)
    return image


def _along(image: NDArray[np.float32], kernel: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Filter one axis; the kernel is even, so equal weights are multiplied once."""
    reach, length = len(kernel) // 2, image.shape[axis]
    pad = [(0, 0)] * image.ndim
    pad[axis] = (reach, reach)
    padded = np.moveaxis(np.pad(image, pad, mode="edge"), axis, 0)
    total = kernel[reach] * np.moveaxis(image, axis, 0)
    for k in range(reach):
        pair = padded[k : k + length] + padded[2 * reach - k : 2 * reach - k + length]
        pair *= kernel[k]
        total += pair
    return np.moveaxis(total, 0, axis)


def _shot_noise(light: NDArray[np.float32], exposure: Exposure, seed: int) -> NDArray[np.float32]:
    """Return noise of variance noise^2 (light + 0.02): photons, and a floor of read-out noise."""
    rng = np.random.default_rng([seed, 0x6E01])
    shape = (*light.shape[:2], 1 if exposure.grey else 3)
    std = np.float32(exposure.noise) * np.sqrt(np.maximum(light, 0) + np.float32(0.02))
    return std * rng.standard_normal(shape, dtype=np.float32)
