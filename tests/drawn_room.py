"""A room of boxes before a wall, drawn without a renderer: depth and image with the same edges."""

import numpy as np
import torch

from primaldepth.core.seeds import generator


def drawn_room(seed: int, height: int = 240, width: int = 320) -> tuple[np.ndarray, np.ndarray]:
    """Depth in metres, (height, width), and the image, (height, width, 3), of boxes that hide each other."""
    draws = np.random.default_rng(generator("room", seed).initial_seed() % 2**32)
    depth = np.full((height, width), 4.0, np.float32)
    image = np.full((height, width, 3), 0.5, np.float32)
    for distance in np.sort(draws.uniform(1.0, 3.5, 18))[::-1]:
        high, wide = draws.integers(height // 10, height // 3), draws.integers(width // 10, width // 3)
        top, left = draws.integers(0, height - high), draws.integers(0, width - wide)
        box = slice(top, top + high), slice(left, left + wide)
        depth[box], image[box] = distance, draws.uniform(0.0, 1.0, 3)
    return depth, np.clip(image + draws.normal(0.0, 0.02, image.shape), 0.0, 1.0).astype(np.float32)


def checkered_box(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Depth and image of a near box with a pattern that repeats over the width of a board behind it."""
    draws = np.random.default_rng(seed)
    depth, image = np.full((256, 320), 3.0, np.float32), np.full((256, 320, 3), 0.6, np.float32)
    board = int(draws.integers(30, 50))
    depth[:board], image[board : board + 16], image[board + 15 : board + 18] = 3.4, 0.75, 0.2
    image[int(draws.integers(150, 180)) :] = 0.1, 0.3, 0.6
    left, top = int(draws.integers(30, 180)), int(draws.integers(110, 140))
    rows, columns = np.mgrid[: 256 - top, :90] // 16
    depth[top:, left : left + 90] = 1.0
    image[top:, left : left + 90] = np.where((rows + columns) % 2, 0.95, 0.05)[..., None]
    return depth, np.clip(image + draws.normal(0.0, 0.02, image.shape), 0.0, 1.0).astype(np.float32)


def cut(array: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """A part of it."""
    return array[top : top + height, left : left + width]


def enlarged(image: np.ndarray, zoom: float) -> np.ndarray:
    """The middle of an image, as a camera with a narrower view sees it."""
    height, width = image.shape[:2]
    rows = ((np.arange(height) + 0.5 - height / 2) / zoom + height / 2).astype(int)
    columns = ((np.arange(width) + 0.5 - width / 2) / zoom + width / 2).astype(int)
    return image[rows][:, columns]


def tensors(depth: np.ndarray, image: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Depth, where it is measured, and the image, as a frame has them."""
    values = torch.tensor(np.ascontiguousarray(depth))[None, None]
    return values, values > 0, torch.tensor(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
