"""PNG: 8- and 16-bit integers; 0 marks an invalid pixel.

The chunks are walked and checked by `png_chunks`; only those that carry pixels reach Pillow. Metres cannot be
meant by integers this small, so writing takes mm, numbers per metre (16 bits) or disparity (8 bits where it
fits, else 16).
"""

import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import LEVEL, Codec, Pixels, Raster, Source, library_errors
from primaldepth.io.formats.orientation import exif_orientation, upright
from primaldepth.io.formats.png_chunks import (
    COLOURS,
    MAGIC,
    PngHeader,
    ScreenedPng,
    join,
    read_header,
    screen,
)
from primaldepth.io.row_blocks import row_blocks

if TYPE_CHECKING:
    from PIL import Image


def _read(source: Source) -> Raster:
    if source.role != "guide":
        _check_grey(source, read_header(source))
    with library_errors(source, "PNG"):
        screened = screen(source)
        return Raster(upright(_decode(source, screened), exif_orientation(screened.exif)))


def _check_grey(source: Source, header: PngHeader) -> None:
    if header.colour != 0:
        found = COLOURS[header.colour]
        wanted = source.picture_hint(f"a {source.role} map has one grey channel, export it as such")
        raise source.error(f"PNG with {found}", hint=wanted)
    if header.bits < 8:
        raise source.error(f"PNG of {header.bits} bit; a {source.role} map has 8 or 16, export it as such")


def _decode(source: Source, screened: ScreenedPng) -> Pixels:
    """(H, W) or (H, W, 3); alpha is dropped, a palette expanded."""
    if screened.header.bits == 16 and screened.header.colour != 0:
        return _decode_wide(source, screened)
    image = load(source, screened)
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode not in ("L", "RGB", "I;16"):
        image = image.convert("L" if image.mode == "LA" else "RGB")
    return np.asarray(image)


def _decode_wide(source: Source, screened: ScreenedPng) -> Pixels:
    """16 bits in colour: Pillow keeps one byte of a sample, so high and low bytes are read in turn.

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

    The size and mode that Pillow finds must be those of the header that was checked.
    """
    from PIL import PngImagePlugin

    header = screened.header
    image = PngImagePlugin.PngImageFile(io.BytesIO(screened.data))
    if (image.width, image.height, image.mode) != (header.width, header.height, header.mode):
        raise source.error("PNG is decoded to another size or kind than its header says; export it again")
    if packing is not None:
        image.tile = [tile._replace(args=packing) for tile in image.tile]
    image.load()
    return image


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    """Of (H, W) grey or (H, W, 3) colours."""
    height, width = pixels.shape[:2]
    colours = 2 * (pixels.ndim == 3)
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, colours, 0, 0, 0)
    rows = _deflated(pixels.reshape(height, -1))
    return join([(b"IHDR", [header]), (b"IDAT", rows), (b"IEND", [])])


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
    recognises=lambda head: head[:8] == MAGIC,
    read=_read,
    dtypes=("uint8", "uint16"),
    encode=_encode,
)
