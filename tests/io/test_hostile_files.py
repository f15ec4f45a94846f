"""Small files that ask for large work or memory are refused before it is done; none is misread."""

import io
import json
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError
from primaldepth.io import read_depth, read_guide

PROGRAM = Path(__file__).with_name("hostile.py")
PNG = b"\x89PNG\r\n\x1a\n"
PARTS = 2**18


def zeros(count):
    """A zlib stream of at least so many zeros, made of one block again and again, with a wrong checksum."""
    deflate, step = zlib.compressobj(9), 2**24
    head = deflate.compress(bytes(step)) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(step)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return head + block * (count // step) + deflate.flush()


# --- PNG


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(*between, width=4, height=3, pixels=None):
    """A grey 16-bit PNG, with further chunks after its header."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0))
    rows = zlib.compress((b"\0" + b"\0\1" * width) * height) if pixels is None else pixels
    return PNG + header + b"".join(between) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def png_that_never_ends():
    """The pixels end after 27 bytes, the stream after 2 GiB."""
    return png(pixels=zeros(2**31))


def png_with_two_headers():
    """The second one claims 537 million pixels."""
    return png(chunk(b"IHDR", struct.pack(">IIBBBBB", 23170, 23170, 8, 0, 0, 0, 0)))


def png_of_empty_chunks():
    return png(chunk(b"IDAT", b"") * (PARTS + 1))


def png_with_a_text_that_never_ends():
    return png(chunk(b"zTXt", b"a\0\0" + zeros(2**31)), chunk(b"iCCP", b"a\0\0" + zeros(2**31)))


def exif_bomb(room):
    """A directory of 2000 tags that all mean the same bytes, as many as `room`."""
    tags = range(0x9000, 0x9000 + 2000)
    entries = b"".join(struct.pack("<HHII", tag, 7, room, 8) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + bytes(room)


def png_with_an_exif_bomb():
    return png(chunk(b"eXIf", exif_bomb(2**20)))


# --- JPEG


def jpeg(**options):
    stream = io.BytesIO()
    Image.new("RGB", (4, 3)).save(stream, "JPEG", **options)
    return stream.getvalue()


def jpeg_of_many_scans():
    data = jpeg(progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * 20_000 + b"\xff\xd9"


def jpeg_with_an_exif_bomb():
    """Pillow joins the EXIF segments, of which each has at most 64 KiB."""
    block = exif_bomb(2**20)
    parts = [b"Exif\0\0" + block[at : at + 60_000] for at in range(0, len(block), 60_000)]
    data = jpeg()
    return data[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", 2 + len(p)) + p for p in parts) + data[2:]


def jpeg_of_many_segments():
    data = jpeg()
    return data[:2] + b"\xff\xfe\0\2" * (PARTS + 1) + data[2:]


# --- TIFF


def tiff(tags, data=b"", following=0):
    """A little-endian TIFF: `data` from byte 8 on, then values that do not fit a tag, then the directory."""
    body, entries = b"II*\0" + bytes(4) + data, b""
    for tag, values in sorted(tags.items()):
        packed = struct.pack(f"<{len(values)}I", *values)
        field = packed if len(packed) == 4 else struct.pack("<I", len(body))
        body += b"" if len(packed) == 4 else packed
        entries += struct.pack("<HHI", tag, 4, len(values)) + field
    start = struct.pack("<I", len(body))
    return body[:4] + start + body[8:] + struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)


def layout(width, height, rows, offsets, sizes, compression=8):
    values = {256: [width], 257: [height], 258: [16], 259: [compression], 262: [1], 277: [1]}
    return values | {278: [rows], 273: offsets, 279: sizes}


def tiff_whose_strips_overlap():
    strip = zlib.compress(b"\1\0" * 1000)
    return tiff(layout(1000, 1000, 1, [8] * 1000, [len(strip)] * 1000), strip)


def tiff_of_many_strips():
    count = PARTS + 1
    return tiff(layout(1, count, 1, [8] * count, [2] * count, 1), bytes(2 * count))


def tiff_whose_pages_share_a_table():
    """Sixty pages of a million strips each, all of them in one table."""
    size, count = 2 + 12 * 9 + 4, 2**20
    data = b"II*\0" + struct.pack("<I", 8 + 4 * count) + struct.pack("<I", 8) * count
    for page in range(60):
        places = {273: count, 279: count} if page else {273: 1, 279: 1}
        tags = {254: 1 if page else 0, 256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 278: 1, 279: 8}
        tags |= {} if page else {279: 1}
        data += struct.pack("<H", len(tags))
        data += b"".join(struct.pack("<HHII", t, 4, places.get(t, 1), v) for t, v in sorted(tags.items()))
        data += struct.pack("<I", len(data) + 4 if page < 59 else 0)
    assert len(data) == 8 + 4 * count + 60 * size
    return data


def tiff_of_runs_without_end():
    """Packbits: 128 times more pixels than the one strip has room for."""
    return tiff(layout(10, 10, 10, [8], [2**23], 32773), b"\x81\1" * 2**22)


# --- EXR


def attribute(name, kind, body):
    return f"{name}\0{kind}\0".encode() + struct.pack("<i", len(body)) + body


def exr(width, height, compression, *further, channels=("Z",), flags=2):
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    listed = b"".join(name.encode() + b"\0" + struct.pack("<iIii", 2, 0, 1, 1) for name in channels) + b"\0"
    attributes = [
        attribute("channels", "chlist", listed),
        attribute("compression", "compression", bytes([compression])),
        attribute("dataWindow", "box2i", window),
        attribute("displayWindow", "box2i", window),
        *further,
    ]
    return b"\x76\x2f\x31\x01" + struct.pack("<I", flags) + b"".join(attributes) + b"\0"


def exr_whose_chunks_overlap():
    """Chunks 8 bytes apart, each a whole row that is stored as it is."""
    head, count, row = exr(1024, 1024, 2), 1024, 4096
    start = len(head) + 8 * count
    table = struct.pack(f"<{count}Q", *(start + 8 * y for y in range(count)))
    return head + table + b"".join(struct.pack("<ii", y, row) for y in range(count)) + bytes(row)


def exr_of_many_channels():
    return exr(4, 4, 3, channels=[f"{index}" for index in range(1001)]) + bytes(100)


def exr_of_tiny_tiles():
    return exr(4000, 4000, 4, attribute("tiles", "tiledesc", struct.pack("<IIB", 1, 1, 0)), flags=0x202)


def exr_of_huge_metadata():
    return exr(4, 4, 4, attribute("words", "stringvector", bytes(2**24))) + bytes(100)


# --- numpy and MATLAB


def npz(*members):
    """An archive of arrays of zeros, each (name, shape, dtype)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, shape, dtype in members:
            with archive.open(name, "w") as file:
                np.lib.format.write_array(file, np.zeros(shape, dtype))
    return stream.getvalue()


def npz_of_many_channels():
    return npz(("depth.npy", (3000, 3000, 4), "f8"))


def npz_with_a_mask_of_another_size():
    return npz(("depth.npy", (3, 4), "f4"), ("valid.npy", (6000, 6000), "f8"))


def matlab_that_never_ends():
    """A variable of four numbers in a stream of 2 GiB."""
    return matlab_5(zeros(2**31), b"")


def matlab_5(*streams):
    """Version 5: one deflated variable depth of 2 x 2 numbers 1, 2, 3, 4, then whatever else is given."""

    def tagged(kind, body):
        return struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)

    parts = tagged(6, struct.pack("<II", 6, 0)) + tagged(5, struct.pack("<2i", 2, 2)) + tagged(1, b"depth")
    whole = tagged(14, parts + tagged(9, np.arange(1.0, 5.0).tobytes()))
    deflate = zlib.compressobj(0)
    packed = deflate.compress(whole) + deflate.flush(zlib.Z_FULL_FLUSH) + b"".join(s[2:] for s in streams)
    packed += b"" if streams else deflate.flush()
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(packed)) + packed


OUTCOMES = {
    "png": (png, r"\(3, 4\)"),
    "png-endless": (png_that_never_ends, "PNG holds .* bytes of pixels, expected 27"),
    "png-headers": (png_with_two_headers, "two chunks IHDR"),
    "png-empty-chunks": (png_of_empty_chunks, f"more than the limit of {PARTS}"),
    "guide-png-text": (png_with_a_text_that_never_ends, r"\(3, 4\)"),
    "guide-png-exif": (png_with_an_exif_bomb, r"\(3, 4\)"),
    "guide-jpeg": (jpeg, r"\(3, 4, 3\)"),
    "guide-jpeg-scans": (jpeg_of_many_scans, "scans, more than the limit of 100; save it as baseline"),
    "guide-jpeg-exif": (jpeg_with_an_exif_bomb, r"\(3, 4, 3\)"),
    "guide-jpeg-segments": (jpeg_of_many_segments, f"JPEG segments, more than the limit of {PARTS}"),
    "tiff-overlap": (tiff_whose_strips_overlap, "strips or tiles that overlap"),
    "tiff-strips": (tiff_of_many_strips, f"{PARTS + 1} (values|strips)"),
    "tiff-pages": (tiff_whose_pages_share_a_table, r"\(1, 1\)"),
    "tiff-runs": (tiff_of_runs_without_end, r"\(10, 10\)"),
    "exr-overlap": (exr_whose_chunks_overlap, "chunks of rows that overlap"),
    "exr-channels": (exr_of_many_channels, "more than 1000 channels"),
    "exr-tiles": (exr_of_tiny_tiles, "16000000 tiles, more than the limit"),
    "exr-metadata": (exr_of_huge_metadata, "a header of more than 16777216 bytes"),
    "npz-channels": (npz_of_many_channels, "4 channels; a depth map has one"),
    "npz-mask": (npz_with_a_mask_of_another_size, r"'valid' has shape \(6000, 6000\)"),
    "mat": (matlab_5, r"\(2, 2\)"),
    "mat-endless": (matlab_that_never_ends, "deflate stream does not end within"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name, (make, _) in OUTCOMES.items():
        (folder / name).write_bytes(make())
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="memory in use is read from /proc")
@pytest.mark.parametrize("name", OUTCOMES)
def test_with_300_mib_to_grow(outcomes, name):
    assert len(outcomes[name]) < 400
    assert re.search(OUTCOMES[name][1], outcomes[name])


def refused(path, advice, read=read_depth):
    with pytest.raises(FileFormatError, match=advice) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_matlab_stream_that_damage_made_longer(tmp_path):
    """The numbers are whole, but what follows them shows that the stream is not what was written."""
    path = tmp_path / "a.mat"
    more = zlib.compress(bytes(5000), 0)
    path.write_bytes(matlab_5(more))
    refused(path, "MATLAB.*does not end within|incorrect data check")
    path.write_bytes(matlab_5())
    assert read_depth(path).values.tolist() == [[1, 3], [2, 4]]


def exr_of_one_chunk(packed):
    head = exr(4, 3, 3)
    return head + struct.pack("<Qii", len(head) + 8, 0, len(packed)) + packed


@pytest.mark.parametrize(
    ("pixels", "made", "advice"),
    [
        ((b"\0" + b"\0\1" * 4) * 3, lambda packed: png(pixels=packed), "incorrect data check"),
        (
            b"\1\0" * 12,
            lambda packed: tiff(layout(4, 3, 3, [8], [len(packed)]), packed),
            "incorrect data check",
        ),
        (bytes([63] + [128] * 23 + [128] * 24), exr_of_one_chunk, "not readable .*copy it again"),
    ],
    ids=["png", "tiff", "exr"],
)
def test_a_deflate_stream_with_a_wrong_checksum(tmp_path, pixels, made, advice):
    packed, path = zlib.compress(pixels), tmp_path / "a.bin"
    path.write_bytes(made(packed))
    assert read_depth(path).values.shape == (3, 4)
    path.write_bytes(made(packed[:-1] + bytes([packed[-1] ^ 1])))
    refused(path, advice)


def test_a_palette_is_no_depth(tmp_path):
    Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).convert("P").save(tmp_path / "a.tif")
    refused(tmp_path / "a.tif", "TIFF with a palette; a depth map has one grey channel")
    assert read_guide(tmp_path / "a.tif").shape == (3, 4, 3)


def test_two_parts_of_an_exr_with_depth(tmp_path):
    import OpenEXR

    def part(name, channel, value):
        header = {"type": OpenEXR.scanlineimage, "name": name, "compression": OpenEXR.ZIP_COMPRESSION}
        return OpenEXR.Part(header, {channel: np.full((3, 4), value, "f4")}, name)

    OpenEXR.File([part("left", "Z", 1), part("right", "Z", 2)]).write(str(tmp_path / "two.exr"))
    refused(tmp_path / "two.exr", "EXR holds 'Z' in 2 parts; save the one part alone")
    OpenEXR.File([part("left", "Z", 1), part("mask", "A", 2)]).write(str(tmp_path / "one.exr"))
    assert (read_depth(tmp_path / "one.exr").values == 1).all()


def test_an_archive_with_two_arrays_of_one_name(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        data = npz(("depth.npy", (3, 4), "f4"), ("depth.npy", (3, 4), "f4"))
    (tmp_path / "a.npz").write_bytes(data)
    refused(tmp_path / "a.npz", "npz holds 'depth' twice")
