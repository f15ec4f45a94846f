"""What every format shares: the bytes that come in, the pixels that come out, and the checks between."""

import itertools
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, PrimalDepthError, TooLargeError, Worded
from primaldepth.io.formats.budget import current_budget

Role = Literal["depth", "guide", "confidence"]
Pixels = NDArray[Any]

DEFLATE_RATIO = 1032  # no deflate stream can expand further
LEVEL = 2  # of deflate: for 5 % more bytes than at zlib's own choice a fifth of the time or less


@dataclass(frozen=True, slots=True)
class Source:
    """A file's bytes, its path for messages, and what the caller wants of it."""

    path: Path
    data: bytes
    role: Role = "depth"

    def error(self, found: str, *quoted: str, hint: str = "") -> FileFormatError:
        """An error that names the file; what is quoted from it stands for the {} of `found`."""
        return FileFormatError(self.path, found, hint, quoted)

    def picture_hint(self, hint: str) -> str:
        """The hint for what is a picture, perhaps given where a depth map should be."""
        if self.role != "depth":
            return hint
        in_form = f"{hint}, and put the depth map in the field 'depth', the image in 'guide'"
        return Worded(f"{hint}, and give the depth before the image", in_form)

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
            raise self.error(
                f"claims {width}x{height} pixels, which {len(self.data)} bytes cannot hold; "
                "the file is truncated or damaged, copy or export it again"
            )

    def check_parts(self, count: int, what: str) -> None:
        """Refuse a file cut into more parts than the budget allows, each of which costs time of its own."""
        most = current_budget().parts
        if count > most:
            raise self.error(f"has {count} {what}, more than the limit of {most}; export it in larger ones")

    def check_apart(self, spans: Iterable[tuple[int, int]], what: str) -> None:
        """Refuse parts of the file, each (start, end), that share bytes and so are decoded more than once."""
        ordered = sorted(spans)
        if any(after[0] < before[1] for before, after in itertools.pairwise(ordered)):
            raise self.error(f"has {what} that overlap; the file is damaged, export it again")


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
        raise source.error(f"not a readable {name} file ({{}}); copy or export it again", detail) from error


def inflated(packed: bytes, most: int) -> bytes:
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
    """The same numbers, contiguous and in the machine's byte order."""
    return np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("="))


def listing(names: list[str]) -> str:
    """Names for an error message, cut where it would get long."""
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    return (shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")) or "nothing"
