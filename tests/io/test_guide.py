"""Guide images come as (H, W, C) in [0, 1], whatever they were stored as."""

import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io import read_guide

RNG = np.random.default_rng(3)
RGB8 = RNG.integers(0, 256, (6, 9, 3)).astype(np.uint8)
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png16(array, colour, interlaced=False):
    """A 16-bit PNG, written by hand because Pillow writes none in colour."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    rows = b""
    for x, y, dx, dy in passes:
        part = array[y::dy, x::dx].astype(">u2")
        rows += b"".join(b"\0" + row.tobytes() for row in part) if part.size else b""
    head = struct.pack(">IIBBBBB", array.shape[1], array.shape[0], 16, colour, 0, 0, int(interlaced))
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def expect(path, array, full):
    guide = read_guide(path)
    assert guide.dtype == np.float32
    expected = array[..., None] if array.ndim == 2 else array
    np.testing.assert_array_equal(guide, expected.astype(np.float32) / np.float32(full))


@pytest.mark.parametrize("extension", [".png", ".tif"])
@pytest.mark.parametrize("array", [RGB8, RGB8[..., 0]])
def test_8_bits(tmp_path, extension, array):
    Image.fromarray(array).save(tmp_path / f"a{extension}")
    expect(tmp_path / f"a{extension}", array, 255)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colour", "samples", "kept"), [(0, 1, 1), (2, 3, 3), (4, 2, 1), (6, 4, 3)])
def test_16_bit_png_keeps_every_bit(tmp_path, colour, samples, kept, interlaced):
    array = RNG.integers(0, 65536, (6, 9, samples)).astype(np.uint16)
    (tmp_path / "a.png").write_bytes(png16(array, colour, interlaced))
    expect(tmp_path / "a.png", array[..., :kept], 65535)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_16_bit_tiff(tmp_path, channels, planar):
    array = RNG.integers(0, 65536, (6, 9, channels)).astype(np.uint16)
    stored = array[..., 0] if channels == 1 else array if planar == "contig" else np.moveaxis(array, -1, 0)
    options = {} if channels == 1 else {"planarconfig": planar, "photometric": "rgb"}
    tifffile.imwrite(tmp_path / "a.tif", stored, **options)
    expect(tmp_path / "a.tif", array[..., :3], 65535)


@pytest.mark.parametrize("compression", ["tiff_lzw", "jpeg"])
def test_tiff_as_cameras_write_them(tmp_path, compression):
    Image.fromarray(RGB8).save(tmp_path / "a.tif", compression=compression)
    with Image.open(tmp_path / "a.tif") as image:
        expect(tmp_path / "a.tif", np.asarray(image), 255)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1"])
def test_alpha_is_dropped_and_a_palette_expanded(tmp_path, mode):
    image = Image.fromarray(RGB8).convert(mode)
    image.save(tmp_path / "a.png")
    plain = image.convert("L" if mode in ("LA", "1") else "RGB")
    expect(tmp_path / "a.png", np.asarray(plain), 255)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg(tmp_path, mode, progressive):
    Image.fromarray(RGB8).convert(mode).save(tmp_path / "a.jpg", progressive=progressive)
    with Image.open(tmp_path / "a.jpg") as image:
        expect(tmp_path / "a.jpg", np.asarray(image.convert("L" if mode == "L" else "RGB")), 255)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("extension", [".jpg", ".png", ".tif"])
def test_orientation(tmp_path, orientation, extension):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(RGB8).save(tmp_path / f"a{extension}", exif=exif)
    with Image.open(tmp_path / f"a{extension}") as image:
        expect(tmp_path / f"a{extension}", np.asarray(ImageOps.exif_transpose(image)), 255)


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate", "tiff_lzw"])
def test_tiff_for_printing(tmp_path, compression):
    image = Image.fromarray(RGB8).convert("CMYK")
    image.save(tmp_path / "a.tif", compression=compression)
    expect(tmp_path / "a.tif", np.asarray(image.convert("RGB")), 255)


def test_tiff_of_a_colour_space_that_is_not_known(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", RGB8, photometric="cielab")
    with pytest.raises(FileFormatError, match="export it as RGB"):
        read_guide(tmp_path / "a.tif")


def test_floats_are_taken_as_they_are(tmp_path):
    import OpenEXR

    array = RNG.random((6, 9, 3)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    expect(tmp_path / "a.npy", array, 1)
    OpenEXR.File({"type": OpenEXR.scanlineimage}, {"RGB": array}).write(str(tmp_path / "a.exr"))
    expect(tmp_path / "a.exr", array, 1)
    (tmp_path / "a.pfm").write_bytes(b"PF\n9 6\n-1\n" + array[::-1].tobytes())
    expect(tmp_path / "a.pfm", array, 1)
    tifffile.imwrite(tmp_path / "a.tif", array, photometric="rgb")
    expect(tmp_path / "a.tif", array, 1)


@pytest.mark.parametrize("full", [255, 65535])
def test_integer_arrays_are_scaled(tmp_path, full):
    array = RNG.integers(0, full + 1, (6, 9, 3)).astype(np.uint8 if full == 255 else np.uint16)
    np.save(tmp_path / "a.npy", array)
    expect(tmp_path / "a.npy", array, full)


@pytest.mark.parametrize(
    ("value", "advice"),
    [(np.nan, "NaN or infinite.*fill"), (np.inf, "NaN or infinite"), (1.5, "tone-map"), (-0.1, r"\[0, 1\]")],
)
def test_floats_that_are_no_guide(tmp_path, value, advice):
    array = np.full((3, 4), 0.5, np.float32)
    array[1, 1] = value
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(FileFormatError, match=rf"a\.npy.*{advice}"):
        read_guide(tmp_path / "a.npy")


@pytest.mark.parametrize("array", [np.ones((3, 4), np.int64), np.ones((3, 4, 2)), np.ones((3, 4, 7))])
def test_arrays_that_are_no_guide(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(FileFormatError, match=r"a\.npy.*guide"):
        read_guide(tmp_path / "a.npy")


def test_every_truncated_jpeg_is_an_error(tmp_path):
    Image.fromarray(RGB8).save(tmp_path / "a.jpg")
    data = (tmp_path / "a.jpg").read_bytes()
    for length in range(1, len(data) - 2, 7):
        (tmp_path / "cut.jpg").write_bytes(data[:length])
        with pytest.raises(InputError, match=r"cut\.jpg"):
            read_guide(tmp_path / "cut.jpg")


def test_jpeg_that_claims_more_than_it_can_hold(tmp_path):
    Image.fromarray(RGB8).save(tmp_path / "a.jpg")
    data = bytearray((tmp_path / "a.jpg").read_bytes())
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 16000, 16000)
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"claims 16000x16000.*cannot hold"):
        read_guide(tmp_path / "a.jpg")


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"restart_marker_blocks": 2}, {"subsampling": 0, "quality": 30}]
)
def test_a_jpeg_that_lacks_data_is_an_error_although_it_ends_well(tmp_path, options):
    """The decoder would fill the rest of the image with grey."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8))
    image.save(tmp_path / "a.jpg", **options)
    assert read_guide(tmp_path / "a.jpg").shape == (50, 70, 3)
    data = (tmp_path / "a.jpg").read_bytes()
    start = data.rindex(b"\xff\xda") + 20
    for length in np.linspace(start, len(data) - 8, 6).astype(int):
        (tmp_path / "cut.jpg").write_bytes(data[:length].rstrip(b"\xff") + b"\xff\xd9")
        with pytest.raises(FileFormatError, match=r"cut\.jpg: JPEG lacks a part of its image"):
            read_guide(tmp_path / "cut.jpg")


def test_filling_between_the_data_of_a_jpeg_and_its_markers_is_no_damage(tmp_path):
    Image.fromarray(RGB8).resize((40, 20)).save(tmp_path / "a.jpg", restart_marker_blocks=2)
    data, expected = (tmp_path / "a.jpg").read_bytes(), read_guide(tmp_path / "a.jpg")
    assert data.count(b"\xff\xd0") == 1
    filled = data.replace(b"\xff\xd0", b"\xff\xff\xff\xd0")[:-2] + b"\xff\xff\xff\xd9"
    (tmp_path / "a.jpg").write_bytes(filled)
    np.testing.assert_array_equal(read_guide(tmp_path / "a.jpg"), expected)
