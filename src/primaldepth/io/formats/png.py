"""PNG: 8- and 16-bit integers; 0 marks an invalid pixel.

The chunks are walked and checked here; only those that carry pixels reach Pillow. Metres cannot be meant by
integers this small, so writing takes mm, numbers per metre (16 bits) or disparity (8 bits where it fits,
else 16).
"""

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import LEVEL, Codec, Pixels, Raster, Source, library_errors
from primaldepth.io.row_blocks import row_blocks

if TYPE_CHECKING:
    from PIL import Image

_MAGIC = b"\x89PNG\r\n\x1a\n"
_KEPT = (b"IHDR", b"PLTE", b"IDAT", b"eXIf", b"IEND")
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # colour type -> samples per pixel
_COLOURS = {2: "3 channels (RGB)", 3: "a palette", 4: "grey and alpha", 6: "4 channels (RGBA)"}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


@dataclass(frozen=True, slots=True)
class _Header:
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


def _chunks(source: Source) -> Iterator[tuple[bytes, bytes]]:
    """Every chunk's name and body, checked by length and checksum, up to IEND."""
    data, at = source.data, len(_MAGIC)
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, end = data[at + 4 : at + 8], at + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(data[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise source.error(f"PNG chunk {name!r} fails its checksum; the file is damaged, copy it again")
        yield name, data[at + 8 : end]
        if name == b"IEND":
            return
        at = end + 4
    raise source.error("PNG ends before its last chunk; the file is truncated, copy it again")


def _header(source: Source, body: bytes) -> _Header:
    if len(body) != 13:
        raise source.error("PNG header has a wrong length; export it again")
    width, height, bits, colour, method, filtering, interlace = struct.unpack(">IIBBBBB", body)
    if colour not in _SAMPLES or bits not in (1, 2, 4, 8, 16) or method or filtering or interlace > 1:
        raise source.error("PNG header holds values no PNG has; export it again")
    header = _Header(width, height, bits, colour, interlace == 1)
    source.check_size(height, width)
    source.check_size(height, width, stored_bytes=header.raw_bytes())
    return header


def _check_stream(source: Source, parts: list[bytes], expected: int) -> None:
    """The deflate stream must hold exactly the image; Pillow fills what is missing with zeros."""
    inflate, found = zlib.decompressobj(), 0
    for part in parts:
        while part and not inflate.eof and found <= expected:
            found += len(inflate.decompress(part, 1 << 20))
            part = inflate.unconsumed_tail
    found += len(inflate.flush())
    if found != expected or not inflate.eof:
        raise source.error(f"PNG holds {found} bytes of pixels, expected {expected}; copy or export it again")


def _read(source: Source) -> Raster:
    chunks = [(name, body) for name, body in _chunks(source) if name in _KEPT]
    if not chunks or chunks[0][0] != b"IHDR":
        raise source.error("PNG does not begin with its header; export it again")
    header = _header(source, chunks[0][1])
    if source.role != "guide":
        _check_grey(source, header)
    with library_errors(source, "PNG"):
        _check_stream(source, [body for name, body in chunks if name == b"IDAT"], header.raw_bytes())
        pixels = _decode(_file([(name, [body]) for name, body in chunks]), header)
    return Raster(pixels)


def _check_grey(source: Source, header: _Header) -> None:
    if header.colour != 0:
        found = _COLOURS[header.colour]
        wanted = f"a {source.role} map has one grey channel, export it as such{source.order_hint}"
        raise source.error(f"PNG with {found}; {wanted}")
    if header.bits < 8:
        raise source.error(f"PNG of {header.bits} bit; a {source.role} map has 8 or 16, export it as such")


def _decode(data: bytes, header: _Header) -> Pixels:
    """(H, W) or (H, W, 3); alpha is dropped, a palette expanded, the EXIF orientation applied."""
    if header.bits == 16 and header.colour != 0:
        return _decode_wide(data, header.colour)
    image = _open(data)
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode not in ("L", "I;16"):
        image = image.convert("L" if header.colour == 4 else "RGB")
    return _upright(data, np.array(image))


def _decode_wide(data: bytes, colour: int) -> Pixels:
    """16 bits in colour: Pillow keeps one byte of a sample, so high and low bytes are read in turn.

    Grey with alpha has four bytes a pixel, just as 8-bit RGBA, and is unpacked as that.
    """
    if colour == 4:
        both = np.array(_open(data, "RGBA", mode="RGBA")).astype(np.uint16)
        return _upright(data, (both[..., 0] << 8) | both[..., 1])
    name = "RGB" if colour == 2 else "RGBA"
    pixels = np.array(_open(data, f"{name};16B")).astype(np.uint16)
    pixels <<= 8
    pixels |= np.array(_open(data, f"{name};16L"))
    return _upright(data, pixels[..., :3])


def _open(data: bytes, packing: str | None = None, mode: str | None = None) -> "Image.Image":
    """Load with Pillow, unpacking the samples in another way if asked."""
    from PIL import PngImagePlugin

    image = PngImagePlugin.PngImageFile(io.BytesIO(data))
    if mode is not None:
        image._mode = mode
    if packing is not None:
        image.tile = [tile._replace(args=packing) for tile in image.tile]
    image.load()
    return image


def _upright(data: bytes, pixels: Pixels) -> Pixels:
    from PIL import PngImagePlugin

    from primaldepth.io.formats.orientation import exif_orientation, upright

    if b"eXIf" not in data:
        return pixels
    return upright(pixels, exif_orientation(PngImagePlugin.PngImageFile(io.BytesIO(data))))


def _file(chunks: list[tuple[bytes, list[bytes]]]) -> bytes:
    """All chunks, each a name and the parts of its body; the parts are joined once."""
    pieces = [_MAGIC]
    for name, parts in chunks:
        checksum = zlib.crc32(name)
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        pieces += [struct.pack(">I", sum(map(len, parts))), name, *parts, struct.pack(">I", checksum)]
    return b"".join(pieces)


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, 0, 0, 0, 0)
    return _file([(b"IHDR", [header]), (b"IDAT", _deflated(pixels)), (b"IEND", [])])


def _deflated(pixels: Pixels) -> list[bytes]:
    """The rows through the "up" filter, 2: each minus the one above."""
    deflate, parts = zlib.compressobj(LEVEL), []
    above = np.zeros((1, pixels.shape[1] * pixels.dtype.itemsize), np.uint8)
    for rows in row_blocks(*pixels.shape):
        block = pixels[rows].astype(">u2" if pixels.dtype.itemsize == 2 else "u1")
        samples = block.view("u1").reshape(len(block), -1)
        filtered = np.full((len(block), samples.shape[1] + 1), 2, np.uint8)
        filtered[:, 1:] = np.diff(samples, axis=0, prepend=above)
        parts.append(deflate.compress(filtered.tobytes()))
        above = samples[-1:]
    return [*parts, deflate.flush()]


CODEC = Codec(
    name="PNG",
    extensions=(".png",),
    recognises=lambda head: head[:8] == _MAGIC,
    read=_read,
    dtypes=("uint8", "uint16"),
    encode=_encode,
)
