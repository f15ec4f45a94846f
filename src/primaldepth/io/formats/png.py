"""PNG: 8- and 16-bit integers; 0 marks an invalid pixel.

Every chunk is checked, and only those that carry pixels reach Pillow. Metres cannot be meant by integers this
small, so writing takes mm, numbers per metre (16 bits) or disparity (8 bits where it fits, else 16).
"""

import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import (
    DEFLATE_RATIO,
    LEVEL,
    PIXELS_AT_ONCE,
    Codec,
    Pixels,
    Raster,
    Source,
    library_errors,
)
from primaldepth.io.formats.orientation import exif_orientation, upright

if TYPE_CHECKING:
    from PIL import Image

_MAGIC = b"\x89PNG\r\n\x1a\n"
_COLOURS = {0: "grey", 2: "3 channels (RGB)", 3: "a palette", 4: "grey and alpha", 6: "4 channels (RGBA)"}
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
        """Return the length of the inflated image data: every row has one filter byte before its samples."""
        passes = _ADAM7 if self.interlaced else ((0, 0, 1, 1),)
        total = 0
        for x, y, dx, dy in passes:
            columns, rows = -(-(self.width - x) // dx), -(-(self.height - y) // dy)
            if columns > 0 and rows > 0:
                total += rows * (1 + (columns * self.bits * _SAMPLES[self.colour] + 7) // 8)
        return total

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
        raise source.damaged("PNG does not begin with its header")
    if len(body) != 13:
        raise source.damaged("PNG header has a wrong length")
    width, height, bits, colour, method, filtering, interlace = struct.unpack(">IIBBBBB", body)
    if colour not in _SAMPLES or bits not in (1, 2, 4, 8, 16) or method or filtering or interlace > 1:
        raise source.damaged("PNG header holds values no PNG has")
    header = PngHeader(width, height, bits, colour, interlace == 1)
    source.check_size(height, width)
    decoded = height * (width * bits * _SAMPLES[colour] // 8)
    times = 2 if bits == 16 and colour in (2, 6) else 1  # Pillow keeps one byte of a sample
    source.check_size(height, width, stored_bytes=times * decoded, ratio=times * DEFLATE_RATIO)
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
            raise source.damaged(f"PNG has two chunks {name.decode()}")
        elif name in _ONCE:
            once[name] = bytes(body)
    _check_stream(source, pixels, header.raw_bytes())
    kept: list[tuple[bytes, Sequence[Buffer]]] = [(b"IHDR", [once[b"IHDR"]])]
    kept += [(b"PLTE", [once[b"PLTE"]])] if b"PLTE" in once else []
    kept += [(b"IDAT", pixels), (b"IEND", [])]
    return ScreenedPng(header, _join(kept), once.get(b"eXIf", b""))


def _join(chunks: Iterable[tuple[bytes, Sequence[Buffer]]]) -> bytes:
    """Return a PNG of these chunks, each a name and the parts of its body."""
    pieces: list[Buffer] = [_MAGIC]
    for name, parts in chunks:
        checksum = zlib.crc32(name)
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        pieces += [struct.pack(">I", sum(map(len, parts))), name, *parts, struct.pack(">I", checksum)]
    return b"".join(pieces)


def _chunks(source: Source) -> Iterator[tuple[bytes, memoryview]]:
    """Yield every chunk's name and body, checked by length and checksum, up to IEND."""
    data, at, count = memoryview(source.data), len(_MAGIC), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, end = bytes(data[at + 4 : at + 8]), at + 8 + length
        if end + 4 > len(data):
            break
        count += 1
        source.check_parts(count, "PNG chunks")
        if zlib.crc32(data[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise source.error(
                "PNG chunk {} fails its checksum", "the file is damaged, copy it again", repr(name)
            )
        yield name, data[at + 8 : end]
        if name == b"IEND":
            return
        at = end + 4
    raise source.damaged("PNG ends before its last chunk")


def _check_stream(source: Source, parts: Sequence[Buffer], expected: int) -> None:
    """Inflate the image data a piece at a time: it must end after exactly `expected` bytes."""
    if sum(map(len, parts)) > _MAX_CHUNK:
        raise source.error(f"PNG has more than {_MAX_CHUNK} bytes of packed pixels", "export it as TIFF")
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
        raise source.damaged(f"PNG holds {found} bytes of pixels, expected {expected}")


def _blocks(parts: Sequence[Buffer]) -> Iterator[Buffer]:
    for part in parts:
        for start in range(0, len(part), _IN):
            yield part[start : start + _IN]


def _read(source: Source) -> Raster:
    if source.role != "guide":
        _check_grey(source, read_header(source))
    with library_errors(source, "PNG"):
        screened = screen(source)
        return Raster(upright(_decode(source, screened), exif_orientation(screened.exif)))


def _check_grey(source: Source, header: PngHeader) -> None:
    if header.colour != 0:
        found = _COLOURS[header.colour]
        wanted = source.picture_hint(f"a {source.role} map has one grey channel, export it as such")
        raise source.error(f"PNG with {found}", wanted)
    if header.bits < 8:
        raise source.error(f"PNG of {header.bits} bit", f"a {source.role} map has 8 or 16, export it as such")


def _decode(source: Source, screened: ScreenedPng) -> Pixels:
    """Return (H, W) or (H, W, 3); alpha is dropped and a palette expanded."""
    if screened.header.bits == 16 and screened.header.colour != 0:
        return _decode_wide(source, screened)
    image = load(source, screened)
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode not in ("L", "RGB", "I;16"):
        image = image.convert("L" if image.mode == "LA" else "RGB")
    return np.asarray(image)


def _decode_wide(source: Source, screened: ScreenedPng) -> Pixels:
    """Return 16-bit colours. Pillow keeps one byte of a sample, so high and low bytes are read in turn.

    Grey with alpha has four bytes a pixel, just as 8-bit RGBA, and is unpacked as that.
    """
    colour = screened.header.colour
    if colour == 4:
        both = np.asarray(load(source, screened, "RGBA")).astype(np.uint16)
        return (both[..., 0] << 8) | both[..., 1]
    name = "RGB" if colour == 2 else "RGBA"
    pixels = np.asarray(load(source, screened, f"{name};16B")).astype(np.uint16)
    pixels <<= 8
    pixels |= np.asarray(load(source, screened, f"{name};16L"))
    return pixels[..., :3]


def load(source: Source, screened: ScreenedPng, packing: str | None = None) -> "Image.Image":
    """Decode with Pillow, unpacking the samples in another way if asked.

    How is a part of the tiles, a documented attribute of `ImageFile`. The size and mode that Pillow finds
    must be those of the header that was checked.
    """
    from PIL import PngImagePlugin

    header = screened.header
    image = PngImagePlugin.PngImageFile(io.BytesIO(screened.data))
    if (image.width, image.height, image.mode) != (header.width, header.height, header.mode):
        raise source.damaged("PNG is decoded to another size or kind than its header says")
    if packing is not None:
        image.tile = [tile._replace(args=packing) for tile in image.tile]
    image.load()
    return image


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    """Return the PNG of (H, W) grey or (H, W, 3) colours."""
    height, width = pixels.shape[:2]
    colours = 2 * (pixels.ndim == 3)
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, colours, 0, 0, 0)
    rows = _deflated(pixels.reshape(height, -1))
    return _join([(b"IHDR", [header]), (b"IDAT", rows), (b"IEND", [])])


def _deflated(pixels: Pixels) -> list[bytes]:
    """Return the rows, compressed, through the "up" filter, 2: each minus the one above."""
    deflate, parts = zlib.compressobj(LEVEL), []
    above = np.zeros((1, pixels.shape[1] * pixels.dtype.itemsize), np.uint8)
    for rows in np.array_split(pixels, min(len(pixels), -(-pixels.size // PIXELS_AT_ONCE))):
        block = rows.astype(">u2" if pixels.dtype.itemsize == 2 else "u1")
        samples = block.view("u1").reshape(len(block), -1)
        filtered = np.full((len(block), samples.shape[1] + 1), 2, np.uint8)
        filtered[:, 1:] = np.diff(samples, axis=0, prepend=above)
        parts.append(deflate.compress(filtered.tobytes()))
        above = samples[-1:]
    return [*parts, deflate.flush()]


CODEC = Codec("PNG", (".png",), lambda head: head[:8] == _MAGIC, _read, ("uint8", "uint16"), encode=_encode)
