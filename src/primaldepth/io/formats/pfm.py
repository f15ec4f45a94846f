"""PFM: 32-bit floats, bottom row first; the sign of the scale gives the byte order.

Unknown pixels are written as infinity, as the Middlebury files have it. The magnitude of the scale is
ignored, as every common reader does.
"""

import math
import re

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import Codec, Pixels, Raster, Source, native

_HEADER = re.compile(rb"(P[Ff])\s+(\d{1,10})\s+(\d{1,10})\s+([-+.0-9eE]{1,32})(?:\r?\n|[ \t])")


def _read(source: Source) -> Raster:
    match = _HEADER.match(source.data[:256])
    if match is None:
        raise source.error(
            "PFM header not understood", "expected 'Pf', width, height and scale; export it again"
        )
    channels = 3 if match[1] == b"PF" else 1
    width, height = int(match[2]), int(match[3])
    source.check_size(height, width)
    expected, found = 4 * channels * width * height, len(source.data) - match.end()
    if found != expected:
        raise source.damaged(
            f"PFM of {width}x{height} pixels needs {expected} bytes after the header, found {found}"
        )
    kind = np.dtype("<f4" if _scale(source, match[4]) < 0 else ">f4")
    flat = np.frombuffer(source.data, kind, count=expected // 4, offset=match.end())
    shape = (height, width) if channels == 1 else (height, width, 3)
    return Raster(native(flat.reshape(shape)[::-1]))


def _scale(source: Source, text: bytes) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if scale == 0.0 or not math.isfinite(scale):
        raise source.damaged("PFM scale {} is not a number other than 0", repr(text.decode()))
    return scale


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    height, width = pixels.shape
    header = f"Pf\n{width} {height}\n-1.0\n".encode()
    return b"".join([header, *pixels[::-1].astype("<f4", copy=False)])


CODEC = Codec(
    name="PFM",
    extensions=(".pfm",),
    recognises=lambda head: head[:2] in (b"Pf", b"PF") and head[2:3].isspace(),
    read=_read,
    dtypes=("float32",),
    missing=math.inf,
    encode=_encode,
)
