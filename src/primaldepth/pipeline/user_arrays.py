"""Arrays and tensors of a user, of any accepted form, as float32 tensors (B, C, h, w) on the CPU."""

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.io.rasters import from_integers
from primaldepth.pipeline.request import ArrayLike


def depth_tensor(depth: ArrayLike) -> Tensor:
    """Return (B, 1, h, w) of a depth map, holes included.

    Args:
        depth: (h, w), (1, h, w), (h, w, 1) or (B, 1, h, w).

    Raises:
        InputError: if it has another shape, or holds no numbers.
    """
    if getattr(depth, "dtype", None) in (bool, torch.bool):
        raise InputError("depth", "an array of bool, expected numbers", "is it a mask of the depth map?")
    return _map(_tensor("depth", depth), "depth")


def guide_tensor(guide: ArrayLike) -> Tensor:
    """Return (B, C, H, W) in [0, 1] of an image; an alpha channel is dropped.

    Args:
        guide: (H, W), (H, W, C) or (B, C, H, W) with 1, 3 or 4 channels: in [0, 1], uint8 or uint16.

    Raises:
        InputError: if it has another shape, other values, or masked pixels.
    """
    image = _tensor("guide", guide)
    if image.dtype in (torch.uint8, torch.uint16):
        image = image.float().div_(torch.iinfo(image.dtype).max)
    of_colours = image.ndim == 3 and image.shape[2] in (1, 3, 4)
    if image.numel() == 0 or not (of_colours or image.ndim in (2, 4)):
        found = f"shape {tuple(image.shape)}, expected (H, W), (H, W, 3) or (B, C, H, W)"
        raise InputError("guide", found + (", with at least one pixel" if image.numel() == 0 else ""))
    image = image.permute(2, 0, 1)[None] if of_colours else image
    image = _map(image, "guide")
    return _unit_range(image[:, :3] if image.shape[1] == 4 else image)


def _unit_range(image: Tensor) -> Tensor:
    """Raise if a guide has finite values outside [0, 1]; `Frame` refuses NaN and infinity."""
    low, high = (float(image.min()), float(image.max())) if image.numel() else (0.0, 0.0)
    if (low < 0.0 or high > 1.0) and bool(image.isfinite().all()):
        raise InputError("guide", f"values {low:g}..{high:g}, expected [0, 1], uint8 or uint16")
    return image.contiguous()


def confidence_tensor(confidence: ArrayLike, depth: Tensor) -> Tensor:
    """Return (B, 1, h, w) in [0, 1] of a confidence map for this depth.

    Args:
        confidence: of any shape that a depth map may have; uint8 and uint16 are scaled to [0, 1].
        depth: (B, 1, h, w).

    Raises:
        InputError: if it does not have the size of the depth.
    """
    values = _tensor("confidence", confidence)
    if values.dtype in (torch.uint8, torch.uint16):
        values = torch.from_numpy(from_integers(values.numpy()))
    return tensor_like("confidence", values, depth)


def tensor_like(name: str, values: ArrayLike, depth: Tensor) -> Tensor:
    """Return a map of the depth's size; a single one is repeated for every image of a batch.

    Args:
        name: of the map, for errors.
        values: of any shape that a depth map may have.
        depth: (B, 1, h, w).

    Raises:
        InputError: if the map does not have the size of the depth.
    """
    found = _map(_tensor(name, values), name)
    if found.shape[1:] != depth.shape[1:] or found.shape[0] not in (1, depth.shape[0]):
        raise InputError(name, f"shape {tuple(found.shape)}, but the depth has {tuple(depth.shape)}")
    return found.expand_as(depth)


def _tensor(name: str, values: ArrayLike) -> Tensor:
    """Return a copy on the CPU: uint8 and uint16 as they are, everything else as float32."""
    if isinstance(values, Tensor):
        return values.detach().cpu()
    if isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any()):
        if name == "guide":
            raise InputError("guide", "a masked array, but an image has no holes", "fill it first")
        values = values.filled(0)  # a hole, or no confidence
    array = np.asarray(values)
    if array.dtype.kind not in "bfiu":
        raise InputError(name, f"array of {array.dtype}, expected numbers")
    native = array.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):
        return torch.from_numpy(
            array.astype(native if native in (np.uint8, np.uint16) else np.float32, order="C")
        )


def _map(values: Tensor, name: str) -> Tensor:
    """Return (h, w), (1, h, w), (h, w, 1) or (B, C, h, w) as float32 (B, C, h, w)."""
    if values.ndim == 3 and (values.shape[0] == 1) != (values.shape[2] == 1):  # (1, n, 1): row or column?
        values = values.squeeze(0 if values.shape[0] == 1 else 2)
    if values.ndim not in (2, 4) or values.is_complex() or values.numel() == 0:
        raise InputError(
            name,
            f"{values.dtype} of shape {tuple(values.shape)}, expected (h, w), (1, h, w), (h, w, 1) "
            f"or (B, 1, h, w){', with at least one pixel' if values.numel() == 0 else ''}",
        )
    values = values.float()
    return values[None, None] if values.ndim == 2 else values
