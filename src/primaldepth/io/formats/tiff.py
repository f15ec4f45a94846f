"""TIFF: integers or floats; invalid pixels are 0 in integers and NaN in floats (as in GIS tools and ImageJ).

tifffile decodes what it can by itself. LZW and JPEG go to Pillow in a process of its own: the library below
it reports damage straight to standard error.
"""

import io
import logging
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import Codec, Pixels, Raster, Source, library_errors, native

_HEADS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_UNCOMPRESSED, _LZW, _JPEG = 1, 5, 7
_DEFLATE = (8, 32946)
_BY_TIFFFILE = (_UNCOMPRESSED, *_DEFLATE, 32773)  # and packbits
_PAGES = 64  # that are looked at
_RATIO = {_UNCOMPRESSED: 1}
_ALPHA_SAMPLES = (2, 4)
_PLAIN = (0, 1, 2, 3)  # kinds of colour: grey, RGB, palette
_BY_PILLOW = (5, 6)  # CMYK, YCbCr


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logger that hears of damaged tags; what matters comes back as an exception."""
    logger = logging.getLogger("tifffile")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _read(source: Source) -> Raster:
    import tifffile

    with library_errors(source, "TIFF"), _quiet(), tifffile.TiffFile(io.BytesIO(source.data)) as file:
        page: Any = file.pages[0]
        _check(source, page)
        _check_alone(source, file.pages)
        photometric = int(page.photometric)
        if source.role == "guide" and photometric not in (*_PLAIN, *_BY_PILLOW):
            raise source.error(f"TIFF of colour space {photometric}; export it as RGB")
        if page.compression in _BY_TIFFFILE and (source.role != "guide" or photometric in _PLAIN):
            pixels = _arranged(source, page, _segments(source, page))
        elif page.compression in (*_BY_TIFFFILE, _LZW, _JPEG):
            pixels = _read_apart(source, page)
        else:
            raise source.error(
                f"TIFF with compression {int(page.compression)}; export it with deflate or none"
            )
    if pixels.dtype.kind not in "uif" or pixels.dtype.itemsize > 8:
        raise source.error(f"TIFF with samples of type {pixels.dtype}; export it as uint16 or float32")
    return Raster(native(pixels))


def _check(source: Source, page: Any) -> None:
    """Refuse sizes the file cannot hold, before anything is allocated."""
    height, width, samples = int(page.imagelength), int(page.imagewidth), int(page.samplesperpixel)
    if page.dtype is None or page.imagedepth != 1 or not 1 <= samples <= 4:
        raise source.error(
            f"TIFF with {samples} samples of {page.bitspersample} bits; export it as uint16 or float32"
        )
    stored = height * width * samples * page.dtype.itemsize
    source.check_size(height, width)
    source.check_size(height, width, stored_bytes=stored, ratio=_RATIO.get(int(page.compression), 4096))
    if page.is_tiled and page.tilelength * page.tilewidth > 4 * max(height * width, 2**16):
        raise source.error("TIFF with tiles far larger than the image; the file is damaged, export it again")


def _check_alone(source: Source, pages: Any) -> None:
    """Refuse further images as large as the first; smaller ones, previews and masks may follow."""
    looked = list(_first_pages(pages))
    height, width = looked[0].imagelength, looked[0].imagewidth
    others = [page for page in looked[1:] if not (page.is_reduced or page.is_mask)]
    count = 1 + sum(page.imagelength >= height and page.imagewidth >= width for page in others)
    if count > 1:
        more = " or more" if len(looked) == _PAGES else ""
        what = "image" if source.role == "guide" else "map"
        raise source.error(f"TIFF holds {count}{more} pages; save the one {what} alone")


def _first_pages(pages: Any) -> Iterator[Any]:
    """Headers, as many as are looked at; a damaged chain that leads back ends where it does."""
    seen: set[int] = set()
    for index in range(_PAGES):
        try:
            page = pages[index]
        except IndexError:
            return
        if page.offset in seen:
            return
        seen.add(page.offset)
        yield page


def _segments(source: Source, page: Any) -> Pixels:
    """Every strip or tile must lie in the file: tifffile would leave holes for the others."""
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        if offset < 8 or size < 1 or offset + size > len(source.data):
            raise source.error(
                "TIFF has pixels outside of the file; it is truncated, copy or export it again"
            )
    expected = math.prod(page.chunked)
    if len(page.dataoffsets) != expected:
        raise source.error(f"TIFF has {len(page.dataoffsets)} strips, expected {expected}; export it again")
    if int(page.compression) in _DEFLATE:
        _check_streams(source, page)
    return np.asarray(page.asarray())


def _check_streams(source: Source, page: Any) -> None:
    """No strip or tile may inflate to more than it claims: tifffile would follow it to any length."""
    most = math.prod(page.chunks) * page.dtype.itemsize
    for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
        inflate, part, found = zlib.decompressobj(), source.data[offset : offset + size], 0
        while part and not inflate.eof and found <= most:
            found += len(inflate.decompress(part, 1 << 20))
            part = inflate.unconsumed_tail
        if found > most:
            raise source.error(f"TIFF has a strip of more than the {most} bytes it claims; export it again")


def _arranged(source: Source, page: Any, pixels: Pixels) -> Pixels:
    """Channels last, upright; for a guide also colours and alpha as they are meant to be seen."""
    from primaldepth.io.formats.orientation import upright

    samples = int(page.samplesperpixel)
    if samples > 1 and int(page.planarconfig) == 2:
        pixels = np.moveaxis(pixels, 0, -1)
    tag = page.tags.get(274)
    pixels = upright(pixels, tag.value if tag is not None and isinstance(tag.value, int) else 1)
    if source.role != "guide":
        return pixels
    if page.colormap is not None and pixels.ndim == 2:
        pixels = np.moveaxis(page.colormap[:, pixels], 0, -1)
    elif int(page.photometric) == 0 and pixels.dtype.kind == "u":  # white is zero
        pixels = np.iinfo(pixels.dtype).max - pixels
    if samples in _ALPHA_SAMPLES:
        pixels = pixels[..., 0] if samples == 2 else pixels[..., :3]
    return pixels


def _read_apart(source: Source, page: Any) -> Pixels:
    from primaldepth.io.formats.isolated import read_array

    if page.dtype.itemsize > 1 and page.samplesperpixel > 1:
        raise source.error("TIFF in 16-bit colour with LZW, JPEG or CMYK; export it as RGB with deflate")
    pixels: Pixels = read_array(source, "tiff", source.role)[0]
    if sorted(pixels.shape[:2]) != sorted((int(page.imagelength), int(page.imagewidth))):
        raise source.error("TIFF has two sizes that disagree; export it again")
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
    recognises=lambda head: head[:4] in _HEADS,
    read=_read,
    dtypes=("uint16", "uint32", "float32", "float64"),
    missing=math.nan,
    encode=_encode,
)
