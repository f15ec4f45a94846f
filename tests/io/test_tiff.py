"""Strips and tiles as tifffile and Pillow write them; what is damaged is never filled with zeros."""

import io
import struct

import numpy as np
import pytest
import tifffile
from PIL import Image

from primaldepth.core.errors import FileFormatError
from primaldepth.io import read_depth, read_guide
from primaldepth.io.formats.base import Source
from primaldepth.io.formats.tiff import CODEC

RNG = np.random.default_rng(8)


def read(data, role="depth"):
    return CODEC.read(Source("a.tif", data, role)).pixels


def written(array, **options):
    stream = io.BytesIO()
    tifffile.imwrite(stream, array, metadata=None, **options)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byteorder": ">"},
        {"bigtiff": True, "rowsperstrip": 5},
        {"tile": (16, 32)},
        {"compression": "zlib", "rowsperstrip": 4},
        {"compression": "zlib", "tile": (16, 16), "byteorder": ">"},
    ],
)
def test_every_type_in_strips_and_tiles(dtype, options):
    array = (RNG.random((37, 53)) * 100 + 1).astype(dtype)
    pixels = read(written(array, photometric="minisblack", **options))
    assert pixels.dtype == array.dtype
    np.testing.assert_array_equal(pixels, array)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_differences_of_neighbours(dtype, planar, byteorder):
    array = RNG.integers(0, np.iinfo(dtype).max, (17, 23, 3), dtype=dtype)
    stored = array if planar == "contig" else np.moveaxis(array, -1, 0)
    options = {"photometric": "rgb", "planarconfig": planar, "compression": "zlib", "predictor": 2}
    np.testing.assert_array_equal(read(written(stored, byteorder=byteorder, **options), "guide"), array)


def test_differences_of_the_bytes_of_floats():
    array = RNG.random((17, 23)).astype(np.float32)
    stream = io.BytesIO()
    image = Image.fromarray(array)
    image.save(stream, "TIFF", compression="tiff_adobe_deflate", tiffinfo={317: 3})
    np.testing.assert_array_equal(read(stream.getvalue()), array)


@pytest.mark.parametrize("array", [RNG.integers(0, 4, (37, 300)).astype(np.uint8), RNG.random((9, 7)) < 2])
def test_run_lengths(array):
    stream = io.BytesIO()
    Image.fromarray(array.astype(np.uint8)).save(stream, "TIFF", compression="packbits")
    np.testing.assert_array_equal(read(stream.getvalue()), array)


def test_bits_from_the_lowest_on():
    array = RNG.integers(0, 256, (5, 7)).astype(np.uint8)
    unit, order = struct.pack("<HHIH", 296, 3, 1, 1), struct.pack("<HHIH", 266, 3, 1, 2)
    data = written(array)
    assert data.count(unit) == 1
    reversed_bits = np.packbits(np.unpackbits(array[..., None], axis=-1)[..., ::-1], axis=-1)[..., 0]
    np.testing.assert_array_equal(read(data.replace(unit, order)), reversed_bits)


def cut(data, tag, value):
    """The file with another number in a tag that holds one."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        at = file.pages[0].tags[tag].valueoffset
    return data[:at] + struct.pack("<H", value) + data[at + 2 :]


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_strip_that_is_too_short_is_refused(tmp_path, compression):
    data = written(np.arange(48, dtype=np.uint16).reshape(6, 8), compression=compression)
    (tmp_path / "a.tif").write_bytes(cut(data, 279, 20))
    with pytest.raises(FileFormatError, match=r"a\.tif.*(20 bytes, expected 96|does not end)"):
        read_depth(tmp_path / "a.tif")


def test_tags_that_pixels_do_not_need_never_reach_a_decoder(tmp_path, monkeypatch):
    """Whatever else a file says is cut out of the copy that the decoder of LZW is given."""
    given = []
    monkeypatch.setattr(
        "primaldepth.io.formats.isolated.read_array",
        lambda source, *_: given.append(source.data) or np.ones((1, 4, 5), np.uint8),
    )
    first = Image.new("L", (5, 4))
    details = {270: "a description", 305: "a program", 700: b"<xmp/>", 274: 3}
    first.save(
        tmp_path / "a.tif",
        compression="tiff_lzw",
        tiffinfo=details,
        save_all=True,
        append_images=[Image.new("L", (2, 2))],
    )
    read_guide(tmp_path / "a.tif")
    with Image.open(io.BytesIO(given[0])) as image:
        assert image.n_frames == 1
        assert not {270, 274, 305, 700} & set(image.tag_v2)
        assert image.size == (5, 4)


@pytest.mark.parametrize("predictor", [2, 3])
def test_a_predictor_without_compression_is_refused(predictor):
    """Some programs apply it and others do not: nothing says which values are meant."""
    values = RNG.integers(1, 900, (4, 5)).astype("u2")
    data = bytearray(written(values))
    assert (read(bytes(data)) == values).all()
    software = data.index(struct.pack("<HH", 305, 2))  # the name of the program gives its place to the tag
    data[software : software + 12] = struct.pack("<HHII", 317, 3, 1, predictor)
    with pytest.raises(FileFormatError, match="without compression, but with a predictor"):
        read(bytes(data))
