"""Image messages of ROS, sensor_msgs/Image and CompressedImage, as arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.io.formats.base import Source, library_errors
from primaldepth.io.picture_files import open_picture

_DEPTHS: dict[str, tuple[str, float]] = {
    "16UC1": ("u2", 0.001),
    "mono16": ("u2", 0.001),
    "32FC1": ("f4", 1.0),
}
_CHANNELS: dict[str, tuple[int, tuple[int, ...]]] = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
    "8UC1": (1, (0, 0, 0)),
    "8UC3": (3, (2, 1, 0)),
}
T = TypeVar("T")
_COMPRESSED_DEPTH_HEADER = 12  # bytes before the PNG of compressed_depth_image_transport


def is_depth(message: Any) -> bool:
    """Return whether an image message may hold depth."""
    if hasattr(message, "encoding"):
        return message.encoding in _DEPTHS
    return "compressedDepth" in message.format or message.format.startswith("16UC1")


def is_grey(message: Any) -> bool:
    """Return whether numbers that may be depth are called brightness, as those of an infrared camera are."""
    return getattr(message, "encoding", "") == "mono16"


def depth_metres(message: Any, path: Path) -> NDArray[np.float32]:
    """Return (h, w) in metres; 0 and NaN where nothing was measured."""
    if not hasattr(message, "encoding"):
        return _compressed_depth(message, path)
    kind, scale = _of_encoding(message, _DEPTHS, "a depth image", path)
    return _rows(message, np.dtype(kind), 1, path)[..., 0].astype(np.float32) * np.float32(scale)


def depth_steps(message: Any, path: Path) -> NDArray[np.float32]:
    """Return (h, w) of a raw image of whole numbers, whose unit something else says."""
    if message.encoding not in ("16UC1", "mono16"):
        raise FileFormatError(path, f"a depth image of encoding {shortened(message.encoding)}, not mono16")
    return _rows(message, np.dtype("u2"), 1, path)[..., 0].astype(np.float32)


def color_pixels(message: Any, path: Path) -> NDArray[np.uint8]:
    """Return (H, W, 3) in RGB."""
    if not hasattr(message, "encoding"):
        return _decoded(bytes(message.data), path)
    count, order = _of_encoding(message, _CHANNELS, "an image", path)
    return np.ascontiguousarray(_rows(message, np.dtype("u1"), count, path)[..., order])


def _of_encoding(message: Any, known: Mapping[str, T], what: str, path: Path) -> T:
    """Return the entry of a table for the message's encoding; raise if there is none."""
    if message.encoding not in known:
        found = f"{what} of encoding {shortened(message.encoding)}"
        raise FileFormatError(path, found, f"convert it to one of {', '.join(known)}")
    return known[message.encoding]


def _rows(message: Any, kind: np.dtype[Any], channels: int, path: Path) -> NDArray[Any]:
    """Return (H, W, channels) of a raw image, whose rows may be padded."""
    kind = kind.newbyteorder(">" if message.is_bigendian else "<")
    used = message.width * channels * kind.itemsize
    data = np.frombuffer(bytes(message.data), np.uint8)
    empty = min(message.width, message.height) < 1
    if empty or message.step < used or data.size < message.height * message.step:
        raise FileFormatError(
            path, f"an image message of {data.size} bytes is too short", "the bag is damaged"
        )
    rows = data[: message.height * message.step].reshape(message.height, message.step)[:, :used]
    return np.ascontiguousarray(rows).view(kind).reshape(message.height, message.width, channels)


def _compressed_depth(message: Any, path: Path) -> NDArray[np.float32]:
    data = bytes(message.data)
    if message.format.startswith("32FC1"):
        raise FileFormatError(path, "compressed depth of 32FC1 is not read", "record 16UC1 or raw images")
    skip = 0 if data[:4] == b"\x89PNG" else _COMPRESSED_DEPTH_HEADER
    pixels = np.asarray(open_picture(data[skip:], path, formats=("PNG",)))
    if pixels.ndim != 2 or pixels.dtype.kind not in "iu":
        raise FileFormatError(
            path, f"compressed depth of shape {pixels.shape} and type {pixels.dtype}", "record 16UC1"
        )
    return pixels.astype(np.float32) * np.float32(0.001)


def _decoded(data: bytes, path: Path) -> NDArray[np.uint8]:
    picture = open_picture(data, path)
    with library_errors(Source(path, data), "image in colour"):
        return np.asarray(picture.convert("RGB"))
