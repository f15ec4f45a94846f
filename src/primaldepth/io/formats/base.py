"""What every format shares: the bytes that come in, the pixels that come out, and the limits between."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, PrimalDepthError, TooLargeError

Role = Literal["depth", "guide", "confidence"]
Pixels = NDArray[Any]

MAX_PIXELS = 2**28
MAX_FILE_BYTES = 2**32
MAX_PIXEL_BYTES = 64  # of one pixel, all channels; many more are a way to fill the memory
DEFLATE_RATIO = 1032  # no deflate stream can expand further
LEVEL = 2  # of deflate: for 5 % more bytes than at zlib's own choice a fifth of the time or less
DEPTH_FIRST = ", and give the depth before the image"


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """The largest image that is decoded: so many pixels in all, so many in a row or column."""

    pixels: int = MAX_PIXELS
    side: int = MAX_PIXELS


_UNLIMITED = SizeLimit()
_size_limit: ContextVar[SizeLimit] = ContextVar("size_limit", default=_UNLIMITED)


@contextmanager
def size_limit(pixels: int, side: int) -> Iterator[None]:
    """Within the block no file is decoded that claims more; its header alone decides."""
    token = _size_limit.set(SizeLimit(min(pixels, MAX_PIXELS), side))
    try:
        yield
    finally:
        _size_limit.reset(token)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's bytes, its path for messages, and what the caller wants of it."""

    path: Path
    data: bytes
    role: Role = "depth"

    def error(self, message: str) -> FileFormatError:
        """An error that names the file."""
        return FileFormatError(f"{self.path}: {message}")

    @property
    def order_hint(self) -> str:
        """For what is a picture where a depth map should be."""
        return DEPTH_FIRST if self.role == "depth" else ""

    def check_size(
        self, height: int, width: int, *, stored_bytes: int = 0, ratio: int = DEFLATE_RATIO
    ) -> None:
        """Refuse a claimed size before anything of that size is allocated.

        `stored_bytes` is what the pixels take uncompressed, `ratio` the most the compression can gain.
        """
        if height < 1 or width < 1:
            raise self.error(
                f"claims a size of {width}x{height} pixels; the file is damaged, export it again"
            )
        limit = _size_limit.get()
        if height * width > limit.pixels or max(height, width) > limit.side:
            side = f", or of {limit.side} in a row or column" if limit.side < limit.pixels else ""
            raise TooLargeError(
                f"{self.path}: claims {width}x{height} pixels, more than the limit of {limit.pixels}{side}; "
                "split the image, or export the file again if it is damaged"
            )
        if stored_bytes > MAX_PIXEL_BYTES * limit.pixels:
            raise TooLargeError(
                f"{self.path}: claims {stored_bytes} bytes of pixels, more than the limit of "
                f"{MAX_PIXEL_BYTES * limit.pixels}; export it with fewer channels"
            )
        if stored_bytes > ratio * len(self.data):
            raise self.error(
                f"claims {width}x{height} pixels, which {len(self.data)} bytes cannot hold; "
                "the file is truncated or damaged, copy or export it again"
            )


@dataclass(frozen=True, slots=True)
class Raster:
    """Pixels as a file stores them.

    Args:
        pixels: (H, W) or (H, W, C), any real type.
        valid: (H, W) mask the file carries itself, or None.
    """

    pixels: Pixels
    valid: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Codec:
    """One format: how it is recognised, read and written.

    Args:
        dtypes: number types it can store, narrowest first; empty if depth cannot be written.
        missing: what an invalid pixel becomes in a floating point file (integers always use 0).
        encode: (H, W) stored numbers and (H, W) mask to bytes.
    """

    name: str
    extensions: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[Source], Raster]
    dtypes: tuple[str, ...] = ()
    missing: float = 0.0
    encode: Callable[[Pixels, NDArray[np.bool_]], bytes] | None = None


@contextmanager
def library_errors(source: Source, name: str) -> Iterator[None]:
    """Turn whatever a decoder raises into one line about the file, and keep its warnings quiet."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except PrimalDepthError:
        raise
    except Exception as error:  # decoders raise almost anything on damaged input
        detail = " ".join(str(error).split())[:120] or type(error).__name__
        raise source.error(f"not a readable {name} file ({detail}); copy or export it again") from error


def native(pixels: Pixels) -> Pixels:
    """The same numbers, contiguous and in the machine's byte order."""
    return np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("="))


def listing(names: list[str]) -> str:
    """Names for an error message, cut where it would get long."""
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return (shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")) or "nothing"
