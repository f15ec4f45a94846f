"""What every format shares: bytes that come in, pixels that come out, and the limits between.

How much reading a file may cost is decided from its headers, before anything is decoded.
"""

import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, PrimalDepthError, TooLargeError, Worded

Role = Literal["depth", "guide", "confidence"]
Pixels = NDArray[Any]

DEFLATE_RATIO = 1032  # no deflate stream can expand further
MAX_PIXELS = 2**28
MAX_FILE_BYTES = 2**32
PIXELS_AT_ONCE = 2**18  # large maps are worked on by rows, so that what is made on the way stays small
LEVEL = 2  # of deflate: for 5 % more bytes than at zlib's own choice a fifth of the time or less


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that reading one file may cost, in counts that are the same on every machine.

    Args:
        pixels: height times width of the image.
        side: pixels in a row or column.
        pixel_bytes: bytes of one pixel, all channels together.
        decoded_bytes: bytes of all channels, decoded, that any file may hold however small it is.
        expansion: a larger image may decode to this many times the bytes of its file.
        parts: chunks, strips, tiles, segments or values of one tag.
        members: variables, arrays or channels.
        scans: passes over a JPEG; a progressive one has about ten.
        scanned_pixels: scans times pixels of a JPEG.
        spare_memory: bytes that a decoder in its own process may take besides the image.
        spare_seconds: CPU time that a decoder in its own process may take besides that for the image.
    """

    pixels: int = MAX_PIXELS
    side: int = MAX_PIXELS
    pixel_bytes: int = 64
    decoded_bytes: int = 2**29
    expansion: int = 8
    parts: int = 2**18
    members: int = 1000
    scans: int = 100
    scanned_pixels: int = 2**31
    spare_memory: int = 2**28
    spare_seconds: int = 4

    def most_decoded(self, file_bytes: int) -> int:
        """Return the most bytes that a file of `file_bytes` may decode to."""
        return min(self.pixel_bytes * self.pixels, max(self.decoded_bytes, self.expansion * file_bytes))

    def memory(self, decoded: int, file_bytes: int) -> int:
        """Return the bytes a decoder in its own process may take for an image of `decoded` bytes.

        The image is held up to four times: decoded, arranged, converted, and on its way out.
        """
        return self.spare_memory + 4 * decoded + 2 * file_bytes

    def seconds(self, decoded: int) -> int:
        """Return the CPU seconds a decoder may take for `decoded` bytes, at 64 MiB in each second."""
        return self.spare_seconds + (decoded >> 26)


_current: ContextVar[Budget] = ContextVar("budget", default=Budget())  # noqa: B039 - frozen


def current_budget() -> Budget:
    """Return the budget that holds here: the package's own, or the narrower one of a `size_limit`."""
    return _current.get()


@contextmanager
def size_limit(pixels: int, side: int) -> Iterator[None]:
    """Refuse, within the block, every file whose header claims more pixels, in all or in a row or column."""
    token = _current.set(Budget(pixels=min(pixels, MAX_PIXELS), side=side))
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's bytes, its path for messages, and what the caller wants of it."""

    path: Path
    data: bytes
    role: Role = "depth"

    def error(self, found: str, hint: str = "", *quoted: str) -> FileFormatError:
        """Return an error that names the file; what is quoted from it stands for the {} of `found`."""
        return FileFormatError(self.path, found, hint, quoted)

    def damaged(self, found: str, *quoted: str) -> FileFormatError:
        """Return the error for content that no whole file has."""
        return self.error(found, "the file is truncated or damaged, copy or export it again", *quoted)

    def picture_hint(self, hint: str) -> str:
        """Return the hint for a picture that was perhaps given where a depth map should be."""
        if self.role != "depth":
            return hint
        in_form = f"{hint}, and put the depth map in the field 'depth', the image in 'guide'"
        return Worded(f"{hint}, and give the depth before the image", in_form)

    def check_size(
        self, height: int, width: int, *, stored_bytes: int = 0, ratio: int = DEFLATE_RATIO
    ) -> None:
        """Refuse a claimed size before anything of that size is allocated.

        Args:
            height: rows of pixels.
            width: columns of pixels.
            stored_bytes: what the pixels take uncompressed.
            ratio: the most that the compression can gain.

        Raises:
            TooLargeError: the image is larger than the budget allows.
            FileFormatError: the file is too small to hold such an image.
        """
        if height < 1 or width < 1:
            raise self.damaged(f"claims a size of {width}x{height} pixels")
        budget = current_budget()
        if height * width > budget.pixels or max(height, width) > budget.side:
            side = f", or of {budget.side} in a row or column" if budget.side < budget.pixels else ""
            raise TooLargeError(
                self.path,
                f"claims {width}x{height} pixels, more than the limit of {budget.pixels}{side}",
                "split the image, or export the file again if it is damaged",
            )
        most = budget.most_decoded(len(self.data))
        if stored_bytes > most:
            raise TooLargeError(
                self.path,
                f"claims {stored_bytes} bytes of pixels in {len(self.data)} of the file, more "
                f"than the limit of {most}",
                "export it with fewer channels",
            )
        if stored_bytes > ratio * len(self.data):
            raise self.damaged(f"claims {width}x{height} pixels, which {len(self.data)} bytes cannot hold")

    def check_parts(self, count: int, what: str) -> None:
        """Refuse a file cut into more parts than the budget allows, each of which costs time of its own."""
        most = current_budget().parts
        if count > most:
            raise self.error(f"has {count} {what}, more than the limit of {most}", "export it in larger ones")

    def check_apart(self, spans: Iterable[tuple[int, int]], what: str) -> None:
        """Refuse parts of the file, each (start, end), that share bytes and so are decoded more than once."""
        ordered = sorted(spans)
        if any(after[0] < before[1] for before, after in itertools.pairwise(ordered)):
            raise self.damaged(f"has {what} that overlap")


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
def decoding(path: object, problem: str, hint: str = "copy or export it again") -> Iterator[None]:
    """Turn whatever a decoder raises on damaged input into a `FileFormatError` that names the file.

    Args:
        path: of the file.
        problem: such as "not a readable PNG file".
        hint: what to do.

    Raises:
        FileFormatError: in place of what was raised within the block, unless that is an error of ours.
    """
    try:
        yield
    except PrimalDepthError:
        raise
    except Exception as error:  # decoders share no base class of errors
        detail = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileFormatError(path, f"{problem} ({{}})", hint, [detail]) from error


@contextmanager
def library_errors(source: Source, name: str) -> Iterator[None]:
    """Turn whatever a decoder raises into one line about the file, and keep its warnings quiet."""
    with decoding(source.path, f"not a readable {name} file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def inflated(packed: bytes | memoryview, most: int) -> bytes:
    """Inflate a zlib stream to its end, which must come within `most` bytes; its checksum is compared.

    Raises:
        ValueError: if the stream is longer or has no end.
        zlib.error: if it is damaged.
    """
    stream = zlib.decompressobj()
    found = stream.decompress(packed, most + 1)
    if len(found) > most or not stream.eof:
        raise ValueError(f"a deflate stream does not end within {most} bytes")
    return found


def native(pixels: Pixels) -> Pixels:
    """Return the same numbers, contiguous and in the machine's byte order."""
    return np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("="))


def listing(names: list[str]) -> str:
    """Return names for an error message, cut where it would get long."""
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return (shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")) or "nothing"


def row_blocks(height: int, width: int) -> Iterator[slice]:
    """Yield slices of whole rows that cover the map from top to bottom."""
    rows = max(1, PIXELS_AT_ONCE // width)
    for top in range(0, height, rows):
        yield slice(top, min(height, top + rows))
