"""One function opens pictures: only the formats that are meant; every failure is an error about the file."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import InputError, TooLargeError
from primaldepth.io.formats.base import size_limit
from primaldepth.io.picture_files import open_picture, picture_size

RGB = np.random.default_rng(5).integers(0, 256, (40, 50, 3)).astype(np.uint8)


def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def png_chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "LA", "I;16"])
def test_png_as_pillow_reads_it(mode):
    image = Image.fromarray(np.arange(2000, dtype=np.uint16).reshape(40, 50))
    image = image if mode == "I;16" else Image.fromarray(RGB).convert(mode)
    data = saved(image, "PNG")
    with Image.open(io.BytesIO(data)) as expected:
        found = open_picture(data, "a.png")
        assert (found.mode, found.size) == (expected.mode, expected.size)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert picture_size(io.BytesIO(data), "a.png") == (50, 40)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_as_pillow_reads_it(mode):
    data = saved(Image.fromarray(RGB).convert(mode), "JPEG", exif=b"Exif\0\0" + bytes(40), comment=b"hello")
    with Image.open(io.BytesIO(data)) as expected:
        np.testing.assert_array_equal(np.asarray(open_picture(data, "a.jpg")), np.asarray(expected))
    assert picture_size(data, "a.jpg") == (50, 40)


def test_jpeg_at_a_fraction_of_its_size():
    data = saved(Image.fromarray(RGB).resize((400, 320)), "JPEG")
    assert open_picture(data, "a.jpg", at_least=(90, 70)).size == (100, 80)


@pytest.mark.parametrize("kind", ["GIF", "BMP", "WEBP", "TIFF", "PPM", "ICO", "EPS"])
def test_other_formats_are_refused_unless_they_are_meant(kind):
    data = saved(Image.fromarray(RGB), kind)
    for reads in (open_picture, picture_size):
        with pytest.raises(InputError, match=r"^frame\.bin: not a .*PNG or JPEG"):
            reads(data, "frame.bin")
    if kind in ("BMP", "WEBP", "TIFF"):
        assert open_picture(data, "a.bin", formats=("PNG", kind)).size == (50, 40)


def test_every_truncation_is_an_input_error():
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "TIFF"):
        data = saved(Image.fromarray(RGB[:9, :7]), kind)
        for length in range(0, len(data) - 3, 5):
            with pytest.raises(InputError, match=r"^cut\.bin: .*"):
                open_picture(data[:length], "cut.bin", formats=(kind,))


def test_the_size_is_checked_before_anything_is_decoded():
    png = saved(Image.fromarray(RGB), "PNG")
    huge = png[:8] + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)) + png[33:]
    for data in (huge, saved(Image.fromarray(RGB), "JPEG").replace(b"\0\x28\0\x32", b"\xff\0\xff\0")):
        for reads in (open_picture, picture_size):
            with pytest.raises(TooLargeError, match=r"a\.bin: claims"):
                reads(data, "a.bin")
    with size_limit(1999, 1999), pytest.raises(TooLargeError, match="claims 50x40 pixels"):
        open_picture(png, "a.png")


def test_run_lengths_of_a_bmp_are_refused():
    data = bytearray(saved(Image.fromarray(RGB).convert("P"), "BMP"))
    struct.pack_into("<I", data, 30, 1)
    with pytest.raises(InputError, match="run-lengths"):
        open_picture(bytes(data), "a.bmp", formats=("BMP",))
