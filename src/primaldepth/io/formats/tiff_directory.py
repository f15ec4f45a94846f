"""The directories of a TIFF file, or of an EXIF block, which is laid out like one: tags and their values.

Only the tags that are asked for are read. What leads outside the data raises `ValueError` or `struct.error`.
"""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum

from primaldepth.io.formats.base import current_budget

_MAX_TAGS = 4096  # of one directory
MAX_DIRECTORIES = 64  # that are followed
_INTEGERS = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}  # type of a tag -> code of struct


class Tag(IntEnum):
    """The tags that say how pixels are stored and what an image is for; decoders need those from INKS on."""

    PURPOSE = 254
    OLD_PURPOSE = 255
    WIDTH = 256
    HEIGHT = 257
    BITS = 258
    COMPRESSION = 259
    PHOTOMETRIC = 262
    BIT_ORDER = 266
    STRIP_OFFSETS = 273
    ORIENTATION = 274
    SAMPLES = 277
    STRIP_ROWS = 278
    STRIP_SIZES = 279
    PLANES = 284
    PREDICTOR = 317
    PALETTE = 320
    TILE_WIDTH = 322
    TILE_HEIGHT = 323
    TILE_OFFSETS = 324
    TILE_SIZES = 325
    EXTRA_SAMPLES = 338
    SAMPLE_KIND = 339
    IMAGE_DEPTH = 32997
    INKS = 332
    INK_COUNT = 334
    JPEG_TABLES = 347
    YCBCR_WEIGHTS = 529
    YCBCR_SAMPLING = 530
    YCBCR_PLACES = 531
    BLACK_AND_WHITE = 532


@dataclass(frozen=True, slots=True)
class TiffEncoding:
    """Byte order, and the codes of struct for the numbers that classic TIFF and BigTIFF store differently."""

    order: str
    count: str
    entry: str
    offset: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One tag; `field` holds its values if they fit, else where they lie."""

    tag: int
    kind: int
    count: int
    field: bytes


FORMS = {
    b"II*\0": TiffEncoding("<", "H", "HHI4s", "I"),
    b"MM\0*": TiffEncoding(">", "H", "HHI4s", "I"),
    b"II+\0": TiffEncoding("<", "Q", "HHQ8s", "Q"),
    b"MM\0+": TiffEncoding(">", "Q", "HHQ8s", "Q"),
}


@dataclass(frozen=True, slots=True)
class Directory:
    """The tags of one image.

    Args:
        data: the file it lies in.
        form: of that file.
        at: where it begins.
        entries: the first entry of each tag.
        end: where its entries end and the offset of the next directory begins.
    """

    data: bytes
    form: TiffEncoding
    at: int
    entries: dict[int, Entry]
    end: int

    def numbers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return the integers of a tag, or `default` if the directory lacks it."""
        entry = self.entries.get(tag)
        if entry is None:
            return default
        code = _INTEGERS.get(entry.kind)
        if code is None or entry.count > current_budget().parts:
            raise ValueError(f"tag {tag} has {entry.count} values of type {entry.kind}")
        layout = struct.Struct(f"{self.form.order}{entry.count}{code}")
        if layout.size <= len(entry.field):
            return layout.unpack_from(entry.field)
        return layout.unpack_from(self.data, _offset(self.form, entry.field))

    def number(self, tag: int, default: int) -> int:
        """Return the first integer of a tag, or `default` if the directory lacks it."""
        return next(iter(self.numbers(tag)), default)


def first_directory(data: bytes) -> Directory:
    """Read the directory that the head of the data points to."""
    form = FORMS.get(data[:4])
    if form is None:
        raise ValueError("no head of a TIFF file")
    return _directory(data, form, _offset(form, data, _head_size(form)))


def directories(data: bytes) -> Iterator[Directory]:
    """Follow the chain of directories to its end, or to one that was there before; no more than 64."""
    directory, seen = first_directory(data), set[int]()
    while directory.at not in seen and len(seen) < MAX_DIRECTORIES:
        yield directory
        seen.add(directory.at)
        following = _offset(directory.form, data, directory.end)
        if not 0 < following < len(data):
            return
        directory = _directory(data, directory.form, following)


def screened(directory: Directory, tags: Collection[int]) -> bytes:
    """Return the file with this directory alone, and of that only the given tags.

    The entries that stay move to the front of their directory; everything else keeps its place.
    """
    form, data = directory.form, bytearray(directory.data)
    most = current_budget().parts
    kept = [each for tag, each in sorted(directory.entries.items()) if tag in tags and each.count <= most]
    packed = struct.pack(form.order + form.count, len(kept))
    packed += b"".join(
        struct.pack(form.order + form.entry, each.tag, each.kind, each.count, each.field) for each in kept
    )
    packed += struct.pack(form.order + form.offset, 0)
    data[directory.at : directory.at + len(packed)] = packed
    struct.pack_into(form.order + form.offset, data, _head_size(form), directory.at)
    return bytes(data)


def _head_size(form: TiffEncoding) -> int:
    """Return where the offset of the first directory lies."""
    return struct.calcsize("=" + form.offset)


def _offset(form: TiffEncoding, data: bytes, at: int = 0) -> int:
    return int(struct.unpack_from(form.order + form.offset, data, at)[0])


def _directory(data: bytes, form: TiffEncoding, at: int) -> Directory:
    (count,) = struct.unpack_from(form.order + form.count, data, at)
    if count > _MAX_TAGS:
        raise ValueError(f"a directory of {count} tags")
    start, layout = at + struct.calcsize("=" + form.count), struct.Struct(form.order + form.entry)
    end = start + count * layout.size
    entries: dict[int, Entry] = {}
    for values in layout.iter_unpack(data[start:end]):
        entries.setdefault(values[0], Entry(*values))
    if end > len(data):
        raise ValueError("a directory that ends outside of the file")
    return Directory(data, form, at, entries, end)
