"""How much reading one file may cost, decided from its headers before anything is decoded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

MAX_PIXELS = 2**28
MAX_FILE_BYTES = 2**32


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
