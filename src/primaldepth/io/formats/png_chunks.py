"""The chunks of a PNG: every one is checked, and only those that carry pixels are kept."""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from primaldepth.io.formats.base import DEFLATE_RATIO, Source

MAGIC = b"\x89PNG\r\n\x1a\n"
COLOURS = {0: "grey", 2: "3 channels (RGB)", 3: "a palette", 4: "grey and alpha", 6: "4 channels (RGBA)"}
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # colour type -> samples per pixel
_ONCE = (b"IHDR", b"PLTE", b"eXIf")
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_MAX_CHUNK = 2**31 - 1
_IN, _OUT = 1 << 16, 1 << 20  # bytes that are inflated at a time, before and after


Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class PngHeader:
    """What IHDR says."""

    width: int
    height: int
    bits: int
    colour: int
    interlaced: bool

    def raw_bytes(self) -> int:
        """Length of the inflated image data: every row has one filter byte before its samples."""
        passes = _ADAM7 if self.interlaced else ((0, 0, 1, 1),)
        total = 0
        for x, y, dx, dy in passes:
            columns, rows = -(-(self.width - x) // dx), -(-(self.height - y) // dy)
            if columns > 0 and rows > 0:
                total += rows * (1 + (columns * self.bits * _SAMPLES[self.colour] + 7) // 8)
        return total

    def sample_bytes(self) -> int:
        """Length of the samples without filter bytes."""
        return self.height * (self.width * self.bits * _SAMPLES[self.colour] // 8)

    def times_decoded(self) -> int:
        """How often the image is decoded: twice for 16 bits in colour, of which Pillow keeps one byte."""
        return 2 if self.bits == 16 and self.colour in (2, 6) else 1

    @property
    def mode(self) -> str:
        """The mode in which Pillow holds such an image."""
        if self.colour == 0:
            return {1: "1", 16: "I;16"}.get(self.bits, "L")
        return {2: "RGB", 3: "P", 4: "RGBA" if self.bits == 16 else "LA", 6: "RGBA"}[self.colour]


@dataclass(frozen=True, slots=True)
class ScreenedPng:
    """A PNG whose every claim was checked.

    Args:
        header: its one header.
        data: the same image as a file of its header, its palette and one chunk of pixels.
        exif: body of the chunk eXIf, empty if there is none.
    """

    header: PngHeader
    data: bytes
    exif: bytes


def read_header(source: Source) -> PngHeader:
    """Read the first chunk, which must be IHDR, and check the size it claims."""
    name, body = next(_chunks(source))
    if name != b"IHDR":
        raise source.error("PNG does not begin with its header; export it again")
    if len(body) != 13:
        raise source.error("PNG header has a wrong length; export it again")
    width, height, bits, colour, method, filtering, interlace = struct.unpack(">IIBBBBB", body)
    if colour not in _SAMPLES or bits not in (1, 2, 4, 8, 16) or method or filtering or interlace > 1:
        raise source.error("PNG header holds values no PNG has; export it again")
    header = PngHeader(width, height, bits, colour, interlace == 1)
    source.check_size(height, width)
    times = header.times_decoded()
    source.check_size(height, width, stored_bytes=times * header.sample_bytes(), ratio=times * DEFLATE_RATIO)
    return header


def screen(source: Source) -> ScreenedPng:
    """Check all chunks and the deflate stream, and keep what carries pixels.

    Pillow takes the last of two headers, fills missing pixels with zeros and inflates texts and profiles, so
    it is only given a file that leaves it no choice.
    """
    header = read_header(source)
    once: dict[bytes, bytes] = {}
    pixels: list[Buffer] = []
    for name, body in _chunks(source):
        if name == b"IDAT":
            pixels.append(body)
        elif name in once:
            raise source.error(f"PNG has two chunks {name.decode()}; it is damaged, export it again")
        elif name in _ONCE:
            once[name] = bytes(body)
    _check_stream(source, pixels, header.raw_bytes())
    kept: list[tuple[bytes, Sequence[Buffer]]] = [(b"IHDR", [once[b"IHDR"]])]
    kept += [(b"PLTE", [once[b"PLTE"]])] if b"PLTE" in once else []
    kept += [(b"IDAT", pixels), (b"IEND", [])]
    return ScreenedPng(header, join(kept), once.get(b"eXIf", b""))


def join(chunks: Iterable[tuple[bytes, Sequence[Buffer]]]) -> bytes:
    """Return a PNG of these chunks, each a name and the parts of its body."""
    pieces: list[Buffer] = [MAGIC]
    for name, parts in chunks:
        checksum = zlib.crc32(name)
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        pieces += [struct.pack(">I", sum(map(len, parts))), name, *parts, struct.pack(">I", checksum)]
    return b"".join(pieces)


def _chunks(source: Source) -> Iterator[tuple[bytes, memoryview]]:
    """Every chunk's name and body, checked by length and checksum, up to IEND."""
    data, at, count = memoryview(source.data), len(MAGIC), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, end = bytes(data[at + 4 : at + 8]), at + 8 + length
        if end + 4 > len(data):
            break
        count += 1
        source.check_parts(count, "PNG chunks")
        if zlib.crc32(data[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise source.error(
                "PNG chunk {} fails its checksum; the file is damaged, copy it again", repr(name)
            )
        yield name, data[at + 8 : end]
        if name == b"IEND":
            return
        at = end + 4
    raise source.error("PNG ends before its last chunk; the file is truncated, copy it again")


def _check_stream(source: Source, parts: Sequence[Buffer], expected: int) -> None:
    """Inflate the image data a piece at a time: it must end after exactly `expected` bytes."""
    if sum(map(len, parts)) > _MAX_CHUNK:
        raise source.error(f"PNG has more than {_MAX_CHUNK} bytes of packed pixels; export it as TIFF")
    inflate, found = zlib.decompressobj(), 0
    for block in _blocks(parts):
        rest: Buffer = block
        while rest and not inflate.eof and found <= expected:
            found += len(inflate.decompress(rest, _OUT))
            rest = inflate.unconsumed_tail
        if inflate.eof or found > expected:
            break
    else:
        found += len(inflate.decompress(b"", _OUT))  # what it holds of the input that it has taken
    if found != expected or not inflate.eof:
        raise source.error(f"PNG holds {found} bytes of pixels, expected {expected}; copy or export it again")


def _blocks(parts: Sequence[Buffer]) -> Iterator[Buffer]:
    for part in parts:
        for start in range(0, len(part), _IN):
            yield part[start : start + _IN]
