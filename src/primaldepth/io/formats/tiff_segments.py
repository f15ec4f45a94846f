"""The strips and tiles of a TIFF: where they lie, how they are packed, and the pixels in them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from primaldepth.io.formats.base import DEFLATE_RATIO, Pixels, Source, inflated
from primaldepth.io.formats.tiff_directory import Directory, Tag

UNCOMPRESSED, LZW, JPEG, PACKBITS = 1, 5, 7, 32773
DEFLATE = (8, 32946)
UNPACKED_HERE = (UNCOMPRESSED, *DEFLATE, PACKBITS)
_LOOSE_RATIO = 4096  # of compressions that have no bound as firm as deflate's
_RATIO = {UNCOMPRESSED: 1, PACKBITS: 64, 8: DEFLATE_RATIO, 32946: DEFLATE_RATIO}
_KINDS = {1: "u", 2: "i", 3: "f"}
_SIZES = {"u": (8, 16, 32, 64), "i": (8, 16, 32, 64), "f": (16, 32, 64)}
_MAX_SAMPLES = 4
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True, slots=True)
class TiffLayout:
    """How the pixels of one directory are stored.

    Args:
        dtype: of the samples, in the byte order of the file.
        separate: each channel has strips or tiles of its own.
        tiled: tiles, which all have one size; the last strip has only the rows that are left.
        rows: of a strip or tile.
        columns: of a strip or tile.
        predictor: 1 none, 2 differences of neighbours, 3 differences of the bytes of floats.
        reversed_bits: the first pixel is in the lowest bit of a byte.
        spans: (start, end) of each strip or tile in the file.
    """

    height: int
    width: int
    samples: int
    dtype: np.dtype[Any]
    compression: int
    separate: bool
    tiled: bool
    rows: int
    columns: int
    predictor: int
    reversed_bits: bool
    spans: tuple[tuple[int, int], ...]

    @property
    def inner(self) -> int:
        """Samples of a pixel that lie side by side."""
        return 1 if self.separate else self.samples

    @property
    def pixel_bytes(self) -> int:
        """Bytes of one pixel, all samples."""
        return self.samples * self.dtype.itemsize

    @property
    def segment_bytes(self) -> int:
        """Bytes of a whole strip or tile, unpacked."""
        return self.rows * self.columns * self.inner * self.dtype.itemsize

    @property
    def grid(self) -> tuple[int, int, int]:
        """How many planes, rows and columns of strips or tiles there are."""
        planes = self.samples if self.separate else 1
        return planes, -(-self.height // self.rows), -(-self.width // self.columns)


def read_layout(source: Source, directory: Directory) -> TiffLayout:
    """Read the tags that say how pixels are stored, and refuse sizes that the file cannot hold."""
    height, width = directory.number(Tag.HEIGHT, 0), directory.number(Tag.WIDTH, 0)
    source.check_size(height, width)
    tiled = Tag.TILE_WIDTH in directory.entries
    rows = (
        directory.number(Tag.TILE_HEIGHT, 0)
        if tiled
        else min(directory.number(Tag.STRIP_ROWS, height), height)
    )
    layout = TiffLayout(
        height=height,
        width=width,
        samples=directory.number(Tag.SAMPLES, 1),
        dtype=_dtype(source, directory),
        compression=directory.number(Tag.COMPRESSION, UNCOMPRESSED),
        separate=directory.number(Tag.PLANES, 1) == 2,
        tiled=tiled,
        rows=rows,
        columns=directory.number(Tag.TILE_WIDTH, 0) if tiled else width,
        predictor=directory.number(Tag.PREDICTOR, 1),
        reversed_bits=directory.number(Tag.BIT_ORDER, 1) == 2,
        spans=_spans(directory, tiled),
    )
    _check(source, layout)
    return layout


def read_pixels(source: Source, layout: TiffLayout) -> Pixels:
    """Unpack every strip or tile; (H, W) or (H, W, samples), in the byte order of the machine."""
    native = layout.dtype.newbyteorder("=")
    pixels = np.empty((layout.grid[0], layout.height, layout.width, layout.inner), native)
    for (plane, row, column), span in zip(np.ndindex(layout.grid), layout.spans, strict=True):
        top, left = row * layout.rows, column * layout.columns
        bottom, right = min(top + layout.rows, layout.height), min(left + layout.columns, layout.width)
        rows = layout.rows if layout.tiled else bottom - top
        block = _unpredicted(_unpacked(source, layout, span, rows), layout, rows)
        pixels[plane, top:bottom, left:right] = block[: bottom - top, : right - left]
    if layout.samples == 1:
        return pixels[0, ..., 0]
    return np.moveaxis(pixels[..., 0], 0, -1) if layout.separate else pixels[0]


def _dtype(source: Source, directory: Directory) -> np.dtype[Any]:
    """Return the number type that all samples have in common."""
    bits, kinds = directory.numbers(Tag.BITS, (1,)), directory.numbers(Tag.SAMPLE_KIND, (1,))
    samples = directory.number(Tag.SAMPLES, 1)
    kind = _KINDS.get(kinds[0]) if len(set(kinds)) == 1 else None
    plain = kind is not None and len(set(bits)) == 1 and bits[0] in _SIZES[kind]
    if (
        kind is None
        or not plain
        or not 1 <= samples <= _MAX_SAMPLES
        or directory.number(Tag.IMAGE_DEPTH, 1) != 1
    ):
        raise source.error(
            f"TIFF with {samples} samples of {(bits[0] if bits else 0)} bits",
            "export it as uint16 or float32",
        )
    return np.dtype(f"{directory.form.order}{kind}{bits[0] // 8}")


def _spans(directory: Directory, tiled: bool) -> tuple[tuple[int, int], ...]:
    starts = directory.numbers(Tag.TILE_OFFSETS if tiled else Tag.STRIP_OFFSETS)
    counts = directory.numbers(Tag.TILE_SIZES if tiled else Tag.STRIP_SIZES)
    return tuple((start, start + count) for start, count in zip(starts, counts, strict=True))


def _check(source: Source, layout: TiffLayout) -> None:
    """Refuse sizes and places the file cannot hold, before anything is allocated."""
    if layout.rows < 1 or layout.columns < 1 or layout.predictor not in (1, 2, 3):
        raise source.damaged("TIFF holds values no TIFF has")
    if layout.predictor != 1 and layout.compression == UNCOMPRESSED:  # most programs then ignore it
        raise source.error("TIFF without compression, but with a predictor", "export it without either")
    if layout.tiled and layout.rows * layout.columns > 4 * max(layout.height * layout.width, 2**16):
        raise source.damaged("TIFF with tiles far larger than the image")
    count = math.prod(layout.grid)
    stored = layout.height * layout.width * (1 if layout.compression == JPEG else layout.pixel_bytes)
    ratio = _RATIO.get(layout.compression, _LOOSE_RATIO)
    source.check_parts(count, "strips or tiles")
    source.check_size(layout.height, layout.width, stored_bytes=stored, ratio=ratio)
    if layout.tiled:
        padded = count * layout.segment_bytes
        source.check_size(layout.height, layout.width, stored_bytes=padded, ratio=ratio)
    if len(layout.spans) != count:
        raise source.damaged(f"TIFF has {len(layout.spans)} strips, expected {count}")
    if any(start < 8 or end <= start or end > len(source.data) for start, end in layout.spans):
        raise source.damaged("TIFF has pixels outside of the file")
    source.check_apart(layout.spans, "strips or tiles")


def _unpacked(source: Source, layout: TiffLayout, span: tuple[int, int], rows: int) -> bytes:
    """Return the bytes of `rows` rows; raise if some are missing or a stream holds more than a segment."""
    packed = source.data[slice(*span)]
    if layout.reversed_bits:
        packed = packed.translate(_REVERSED_BITS)
    needed = rows * layout.columns * layout.inner * layout.dtype.itemsize
    if layout.compression == PACKBITS:
        packed = _unpack_bits(packed, needed)
    elif layout.compression in DEFLATE:
        packed = inflated(packed, layout.segment_bytes)
    if len(packed) < needed:
        raise source.damaged(f"TIFF has a strip of {len(packed)} bytes, expected {needed}")
    return packed[:needed]


def _unpack_bits(packed: bytes, needed: int) -> bytes:
    """Expand run-lengths with the decoder that Pillow has for rows, of which this is one."""
    from PIL import Image

    return Image.frombytes("L", (needed, 1), packed, "packbits", "L").tobytes()


def _unpredicted(raw: bytes, layout: TiffLayout, rows: int) -> Pixels:
    """Return (rows, columns, inner) samples: differences along each row are summed, modulo their width."""
    shape, itemsize = (rows, layout.columns, layout.inner), layout.dtype.itemsize
    if layout.predictor == 3:
        steps = np.frombuffer(raw, np.uint8).reshape(rows, -1, layout.inner)
        planes = np.cumsum(steps, axis=1, dtype=np.uint8).reshape(rows, itemsize, -1)
        return np.ascontiguousarray(np.swapaxes(planes, 1, 2)).view(f">f{itemsize}").reshape(shape)
    samples = np.frombuffer(raw, layout.dtype).reshape(shape)
    if layout.predictor == 1:
        return samples
    native = samples.astype(layout.dtype.newbyteorder("="))
    whole = native.view(f"u{itemsize}")
    return np.cumsum(whole, axis=1, dtype=whole.dtype).view(native.dtype)
