"""TIFF: integers or floats; invalid pixels are 0 in integers and NaN in floats (as in GIS tools and ImageJ).

What is not compressed, or with deflate or packbits, is read here. LZW, JPEG and the colours of print and
video go to Pillow in a process of its own, in a file of nothing but the tags that say how pixels are stored.
Neither Pillow nor tifffile alone reads all types, tiles and predictors that depth maps come in.
"""

import io
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import Codec, Pixels, Raster, Source, library_errors, native
from primaldepth.io.formats.orientation import UPRIGHT, upright
from primaldepth.io.formats.tiff_directory import (
    FORMS,
    MAX_DIRECTORIES,
    Directory,
    Tag,
    directories,
    screened,
)
from primaldepth.io.formats.tiff_segments import (
    JPEG,
    LZW,
    UNPACKED_HERE,
    TiffLayout,
    read_layout,
    read_pixels,
)

_PALETTE = 3
_PLAIN = (0, 1, 2, _PALETTE)  # kinds of colour: grey (white or black is 0), RGB, palette
_BY_PILLOW = (5, 6)  # CMYK, YCbCr
# whatever says how pixels are stored; the orientation is applied here
_STORAGE_TAGS = frozenset(Tag) - {Tag.PURPOSE, Tag.OLD_PURPOSE, Tag.ORIENTATION, Tag.IMAGE_DEPTH}
_REDUCED, _MASK = 1, 4  # bits of the tag that says what an image is for


def _read(source: Source) -> Raster:
    with library_errors(source, "TIFF"):
        pages = list(directories(source.data))
        layout = read_layout(source, pages[0])
        _check_alone(source, pages)
        photometric = pages[0].number(Tag.PHOTOMETRIC, 0)
        _check_colours(source, layout, photometric)
        plain = source.role != "guide" or photometric in _PLAIN
        if plain and layout.compression in UNPACKED_HERE:
            pixels = _as_seen(source, pages[0], read_pixels(source, layout))
        elif layout.compression in (*UNPACKED_HERE, LZW, JPEG):
            pixels = _read_apart(source, pages[0], layout)
        else:
            raise source.error(
                f"TIFF with compression {layout.compression}", "export it with deflate or none"
            )
        return Raster(native(upright(pixels, pages[0].number(Tag.ORIENTATION, UPRIGHT))))


def _check_alone(source: Source, pages: list[Directory]) -> None:
    """Refuse further images as large as the first; smaller ones, previews and masks may follow."""
    height, width = _size(pages[0])
    others = [_size(page) for page in pages[1:] if not _is_extra(page)]
    count = 1 + sum(h >= height and w >= width for h, w in others)
    if count > 1:
        more = " or more" if len(pages) == MAX_DIRECTORIES else ""
        what = "image" if source.role == "guide" else "map"
        raise source.error(f"TIFF holds {count}{more} pages", f"save the one {what} alone")


def _size(page: Directory) -> tuple[int, int]:
    return page.number(Tag.HEIGHT, 0), page.number(Tag.WIDTH, 0)


def _is_extra(page: Directory) -> bool:
    """Whether it is a preview or a mask of another image, as the new or the old tag for that says."""
    return bool(page.number(Tag.PURPOSE, 0) & (_REDUCED | _MASK)) or page.number(Tag.OLD_PURPOSE, 0) == 2


def _check_colours(source: Source, layout: TiffLayout, photometric: int) -> None:
    if source.role == "guide":
        if photometric not in (*_PLAIN, *_BY_PILLOW):
            raise source.error(f"TIFF of colour space {photometric}", "export it as RGB")
    elif layout.samples != 1 or photometric == _PALETTE:
        found = "a palette" if layout.samples == 1 else f"{layout.samples} channels"
        wanted = source.picture_hint(f"a {source.role} map has one grey channel, export it as such")
        raise source.error(f"TIFF with {found}", wanted)


def _as_seen(source: Source, page: Directory, pixels: Pixels) -> Pixels:
    """Return the colours of a guide as they are meant to be seen, without alpha."""
    if source.role != "guide":
        return pixels
    colours = page.numbers(Tag.PALETTE)
    if colours and pixels.ndim == 2:
        table = np.array(colours, np.uint16).reshape(3, -1)
        return np.stack([channel[pixels] for channel in table], axis=-1)
    if page.number(Tag.PHOTOMETRIC, 0) == 0 and pixels.dtype.kind == "u":  # white is zero
        pixels = np.iinfo(pixels.dtype).max - pixels
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        pixels = pixels[..., 0] if pixels.shape[2] == 2 else pixels[..., :3]
    return pixels


def _read_apart(source: Source, page: Directory, layout: TiffLayout) -> Pixels:
    from primaldepth.io.formats.isolated import read_array

    if layout.dtype.itemsize > 1 and layout.samples > 1:
        raise source.error("TIFF in 16-bit colour with LZW, JPEG or CMYK", "export it as RGB with deflate")
    apart = replace(source, data=screened(page, _STORAGE_TAGS))
    pixels: Pixels = read_array(apart, "tiff", layout.height * layout.width * layout.pixel_bytes)[0]
    if pixels.shape[:2] != (layout.height, layout.width):
        raise source.damaged("TIFF has two sizes that disagree")
    return pixels


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    import tifffile

    stream = io.BytesIO()
    tifffile.imwrite(
        stream, pixels, photometric="minisblack", compression="zlib", metadata=None, software=False
    )
    return stream.getvalue()


CODEC = Codec(
    name="TIFF",
    extensions=(".tif", ".tiff"),
    recognises=lambda head: head[:4] in FORMS,
    read=_read,
    dtypes=("uint16", "uint32", "float32", "float64"),
    missing=math.nan,
    encode=_encode,
)
