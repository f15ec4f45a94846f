"""Whatever is wrong with a file, the error is one line: which file, what was found, what to do."""

import io
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
import tifffile
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError, MissingDependencyError
from primaldepth.io import DepthMap, output_unit, read_depth, read_guide, write_depth

EXTENSIONS = (".png", ".exr", ".pfm", ".npy", ".npz", ".tiff", ".mat")
U16 = np.arange(1, 13, dtype=np.uint16).reshape(3, 4)


def refused(path, advice, error=FileFormatError, **options):
    """Reading fails with one line that names the file and holds `advice`."""
    with pytest.raises(error, match=advice) as caught:
        read_depth(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert os.path.basename(path) in message
    return message


def depth_map(values=((1.0, 0.0), (2.0, 3.0)), unit="m"):
    return DepthMap.from_array(values, unit=unit)


# --- the file itself


def test_missing_file(tmp_path):
    refused(tmp_path / "no.png", "no such file", InputError)


def test_directory(tmp_path):
    refused(tmp_path, "is a directory", InputError)


def test_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    refused(tmp_path / "pipe.png", "not a regular file", InputError)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_empty_file(tmp_path, extension):
    (tmp_path / f"a{extension}").write_bytes(b"")
    refused(tmp_path / f"a{extension}", r"empty \(0 bytes\).*again")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_not_an_image(tmp_path, extension):
    (tmp_path / f"a{extension}").write_bytes(b"hello, this is only text\n" * 20)
    refused(tmp_path / f"a{extension}", "not a format.*use one of PNG, EXR, PFM")


def test_jpeg_is_no_depth(tmp_path):
    Image.new("L", (4, 4), 9).save(tmp_path / "a.jpg")
    refused(tmp_path / "a.jpg", "JPEG.*use PNG")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_every_truncation(tmp_path, extension):
    write_depth(tmp_path / f"a{extension}", depth_map(np.random.default_rng(0).random((6, 5)) + 1, "mm"))
    data = (tmp_path / f"a{extension}").read_bytes()
    for length in range(1, len(data)):
        (tmp_path / f"cut{extension}").write_bytes(data[:length])
        refused(tmp_path / f"cut{extension}", "again|use one of")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_all_invalid(tmp_path, extension):
    path = tmp_path / f"a{extension}"
    zeros = np.zeros((2, 3), np.float32)
    if extension == ".png":
        Image.fromarray(zeros.astype(np.uint16)).save(path)
    elif extension == ".exr":
        import OpenEXR

        OpenEXR.File({"type": OpenEXR.scanlineimage}, {"Z": zeros}).write(str(path))
    elif extension == ".pfm":
        path.write_bytes(b"Pf\n3 2\n-1\n" + (zeros + np.inf).tobytes())
    elif extension == ".npy":
        np.save(path, zeros - 1)
    elif extension == ".npz":
        np.savez(path, depth=zeros + 1, valid=zeros)
    elif extension == ".tiff":
        tifffile.imwrite(path, zeros + np.nan)
    else:
        scipy.io.savemat(path, {"depth": zeros})
    refused(path, "no valid pixel.*check")


# --- more than one channel, wrong number types


def test_three_channels(tmp_path):
    grey = np.full((3, 4, 3), 7, np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    refused(tmp_path / "a.png", "3 channels.*one grey channel")
    tifffile.imwrite(tmp_path / "a.tif", grey, photometric="rgb")
    refused(tmp_path / "a.tif", "3 channels.*has one")
    np.save(tmp_path / "a.npy", grey)
    refused(tmp_path / "a.npy", "3 channels.*has one")
    (tmp_path / "a.pfm").write_bytes(b"PF\n2 2\n-1\n" + np.ones(12, "<f4").tobytes())
    refused(tmp_path / "a.pfm", "3 channels.*has one")


def write_pages(path, pages):
    """Pages of (pixels, kind), kind as in the tag NewSubfileType."""
    with tifffile.TiffWriter(path) as writer:
        for pixels, kind in pages:
            writer.write(pixels, subfiletype=kind, metadata=None, photometric="minisblack")


@pytest.mark.parametrize(("count", "told"), [(2, "2"), (3, "3"), (5000, "64 or more")])
def test_tiff_of_several_pages(tmp_path, count, told):
    write_pages(tmp_path / "a.tif", [(U16, 0)] * count)
    refused(tmp_path / "a.tif", f"TIFF holds {told} pages; save the one map alone")
    with pytest.raises(FileFormatError, match=f"TIFF holds {told} pages; save the one image alone"):
        read_guide(tmp_path / "a.tif")


def test_tiff_of_several_pages_in_lzw(tmp_path):
    page = Image.fromarray(U16)
    page.save(tmp_path / "a.tif", compression="tiff_lzw", save_all=True, append_images=[page])
    refused(tmp_path / "a.tif", "TIFF holds 2 pages")


@pytest.mark.parametrize(
    "further", [(U16, 1), (U16[:1], 0), (U16 > 3, 4)], ids=["preview", "smaller", "mask"]
)
def test_tiff_with_a_small_copy_or_a_mask(tmp_path, further):
    write_pages(tmp_path / "a.tif", [(U16, 0), further, further])
    np.testing.assert_array_equal(read_depth(tmp_path / "a.tif", unit="mm").values * 1000, U16)


def test_tiff_whose_pages_lead_back_to_the_first(tmp_path):
    write_pages(tmp_path / "a.tif", [(U16, 0)])
    data = bytearray((tmp_path / "a.tif").read_bytes())
    (first,) = struct.unpack_from("<I", data, 4)
    (tags,) = struct.unpack_from("<H", data, first)
    struct.pack_into("<I", data, first + 2 + 12 * tags, first)
    (tmp_path / "a.tif").write_bytes(data)
    np.testing.assert_array_equal(read_depth(tmp_path / "a.tif", unit="mm").values * 1000, U16)


def test_exr_without_a_depth_channel(tmp_path):
    import OpenEXR

    header = {"type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"RGB": np.ones((2, 3, 3), "f4")}).write(str(tmp_path / "a.exr"))
    refused(tmp_path / "a.exr", "'B', 'G', 'R'; name the wanted one Z")


@pytest.mark.parametrize(
    ("image", "found"),
    [
        (Image.new("RGBA", (3, 3)), "4 channels"),
        (Image.new("LA", (3, 3)), "grey and alpha"),
        (Image.new("P", (3, 3)), "palette"),
        (Image.new("1", (3, 3)), "1 bit"),
    ],
)
def test_png_of_another_colour_type(tmp_path, image, found):
    image.save(tmp_path / "a.png")
    refused(tmp_path / "a.png", f"{found}.*export it as such")


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 2), complex),
        np.array([[object()]]),
        np.ones((2, 2), [("z", "f4")]),
        np.array([["a"]]),
        np.zeros((2, 2), "datetime64[s]"),
        np.ones((2, 2), bool),
    ],
)
def test_npy_of_something_else_than_real_numbers(tmp_path, array):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    refused(tmp_path / "a.npy", "type.*float32 or an integer type")


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 2, 2, 2), (2, 3, 5)])
def test_npy_of_another_shape(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.ones(shape))
    refused(tmp_path / "a.npy", "shape|channels")


def test_npz_with_several_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", left=U16, right=U16)
    refused(tmp_path / "a.npz", "'left', 'right' but no 'depth'; save the map under that name")


def test_npz_with_a_mask_of_another_size(tmp_path):
    np.savez(tmp_path / "a.npz", depth=U16, valid=np.ones((2, 2), bool))
    refused(tmp_path / "a.npz", "'valid' has shape.*one size")


def test_mat_with_several_variables(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"left": U16, "right": U16, "text": "hello"})
    refused(tmp_path / "a.mat", r"'left \(3x4\)', 'right \(3x4\)', 'text.*save it alone")


@pytest.mark.parametrize(
    "value", ["text", np.ones((2, 2), complex), {"a": 1}, np.ones((2, 2, 2)), np.ones((2, 2), bool)]
)
def test_mat_of_something_else(tmp_path, value):
    scipy.io.savemat(tmp_path / "a.mat", {"depth": value})
    refused(tmp_path / "a.mat", "holds 'depth.*expected one plain numeric map")


def test_mat_7_3_without_h5py(tmp_path, monkeypatch):
    monkeypatch.setattr("primaldepth.io.formats.isolated._PROGRAM", tmp_path / "program.py")
    (tmp_path / "program.py").write_text("raise SystemExit(3)")
    (tmp_path / "a.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(MissingDependencyError, match=r"a\.mat.*pip install h5py"):
        read_depth(tmp_path / "a.mat")


@pytest.mark.parametrize(
    "death", ["import os; os.abort()", "x = bytes(1 << 40)", "import time; time.sleep(60)"]
)
def test_a_decoder_that_dies_is_an_error(tmp_path, monkeypatch, death):
    monkeypatch.setattr("primaldepth.io.formats.isolated._PROGRAM", tmp_path / "program.py")
    monkeypatch.setattr("primaldepth.io.formats.isolated._SECONDS", 1)
    (tmp_path / "program.py").write_text(death)
    (tmp_path / "a.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    refused(tmp_path / "a.mat", "again")


# --- claimed sizes


def png_bytes(width, height, bits=16, rows=b"\0\0\0"):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def npy_bytes(shape, descr="<f4"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def exr_bytes(width, height):
    stream = io.BytesIO()
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    channels = b"Z\0" + struct.pack("<iIii", 2, 0, 1, 1) + b"\0"
    stream.write(b"\x76\x2f\x31\x01" + struct.pack("<I", 2))
    for name, body in (
        ("channels", channels),
        ("compression", b"\3"),
        ("dataWindow", window),
        ("displayWindow", window),
    ):
        stream.write(name.encode() + b"\0x\0" + struct.pack("<i", len(body)) + body)
    return stream.getvalue() + bytes(64)


@pytest.mark.parametrize("body", [b"", b"\x0e", b"\x64", b"\xff", b"\3\0"])
def test_an_exr_of_an_unknown_compression_is_refused(tmp_path, body):
    """The library would read some of them: rows that do not shrink are stored as they are."""
    path = tmp_path / "a.exr"
    write_depth(path, depth_map(np.linspace(1.0, 2.0, 48).reshape(6, 8)))
    name = b"compression\0compression\0"
    before, _, after = path.read_bytes().partition(name + struct.pack("<i", 1) + b"\3")
    assert after
    path.write_bytes(before + name + struct.pack("<i", len(body)) + body + after)
    refused(path, "EXR has an unknown compression")


def mat_bytes(height, width):
    def tagged(kind, body):
        return struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)

    parts = (struct.pack("<II", 6, 0), struct.pack("<2i", height, width), b"depth", bytes(64))
    body = b"".join(tagged(kind, part) for kind, part in zip((6, 5, 1, 9), parts, strict=True))
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + tagged(14, body)


def tiff_bytes(width, height):
    stream = io.BytesIO()
    tifffile.imwrite(stream, U16, metadata=None)
    data = bytearray(stream.getvalue())
    for tag, value in ((256, width), (257, height), (278, height)):
        at = data.find(struct.pack("<HH", tag, 4)) if data.find(struct.pack("<HH", tag, 4)) >= 0 else None
        at = data.find(struct.pack("<HH", tag, 3)) if at is None else at
        data[at + 2 : at + 12] = struct.pack("<HII", 4, 1, value)
    return bytes(data)


def pfm_bytes(width, height):
    return f"Pf\n{width} {height}\n-1.0\n".encode() + bytes(64)


def npz_bytes(shape):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("depth.npy", npy_bytes(shape) + bytes(1 << 20))
    return stream.getvalue()


HUGE = [(2**31 - 1, 2**31 - 1), (100_000, 100_000), (16_384, 16_384), (2**28, 1), (1, 2**28)]


@pytest.mark.parametrize(("height", "width"), HUGE)
@pytest.mark.parametrize("make", [png_bytes, exr_bytes, pfm_bytes, tiff_bytes, mat_bytes])
def test_claimed_size_is_refused_before_it_is_allocated(tmp_path, make, height, width):
    (tmp_path / "bomb.bin").write_bytes(make(width, height))
    assert allocated_at_most(tmp_path / "bomb.bin") < 2**25


@pytest.mark.parametrize("make", [npy_bytes, npz_bytes])
@pytest.mark.parametrize("shape", [*HUGE, (2**40, 2**40), (-1, 5), (2, 2, 10**9)])
def test_claimed_array_is_refused_before_it_is_allocated(tmp_path, make, shape):
    (tmp_path / "bomb.npy").write_bytes(make(shape))
    assert allocated_at_most(tmp_path / "bomb.npy") < 2**25


def allocated_at_most(path):
    """The error of reading, and the most bytes that were held on the way."""
    tracemalloc.start()
    try:
        refused(path, "claims|needs|shape|channels|truncated|damaged")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_png_with_too_few_rows(tmp_path):
    (tmp_path / "a.png").write_bytes(png_bytes(3, 4, rows=(b"\0" + b"\0\1" * 3) * 2))
    refused(tmp_path / "a.png", "holds 14 bytes of pixels, expected 28")


def test_png_with_a_wrong_checksum(tmp_path):
    data = bytearray(png_bytes(1, 1, rows=b"\0\1\2"))
    data[-20] ^= 1
    (tmp_path / "a.png").write_bytes(data)
    refused(tmp_path / "a.png", "checksum.*copy it again")


def test_exr_that_is_cropped(tmp_path):
    data = exr_bytes(3, 2)
    at = data.index(b"displayWindow") + len(b"displayWindow\0x\0") + 4
    (tmp_path / "a.exr").write_bytes(data[:at] + struct.pack("<4i", 0, 0, 9, 9) + data[at + 16 :])
    refused(tmp_path / "a.exr", "cropped or has overscan; export")


# --- units and kinds


def test_unknown_unit_and_kind(tmp_path):
    write_depth(tmp_path / "a.pfm", depth_map())
    for unit in ("cm", "1e3", "-4000", "nan", "4 000", "", 4000, "9" * 99):
        with pytest.raises(
            InputError, match="is not known; use mm, m, disparity, or the stored numbers per metre"
        ):
            read_depth(tmp_path / "a.pfm", unit=unit)
    with pytest.raises(
        InputError, match=r"'0\.00025' is below 1; .* per metre; 4000 if one .* is 0\.00025 m"
    ):
        read_depth(tmp_path / "a.pfm", unit="0.00025")
    with pytest.raises(InputError, match=r"'0' is below 1; give the stored numbers per metre$"):
        read_depth(tmp_path / "a.pfm", unit="0")
    with pytest.raises(InputError, match="'polar' is not known; use one of z, radial, disparity"):
        read_depth(tmp_path / "a.pfm", kind="polar")


@pytest.mark.parametrize(("unit", "kind"), [("disparity", "z"), ("mm", "disparity"), ("m", "disparity")])
def test_unit_and_kind_that_contradict(tmp_path, unit, kind):
    write_depth(tmp_path / "a.pfm", depth_map())
    with pytest.raises(InputError, match="contradicts"):
        read_depth(tmp_path / "a.pfm", unit=unit, kind=kind)


def test_8_bits_as_z_need_their_unit(tmp_path):
    Image.fromarray(U16.astype(np.uint8)).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", U16.astype(np.uint8))
    for path in (tmp_path / "a.png", tmp_path / "a.npy"):
        refused(path, "8-bit numbers.*give their unit", InputError, kind="z")
        assert read_depth(path, kind="z", unit="256").kind == "z"


# --- writing


def unwritten(path, depth, advice):
    with pytest.raises(InputError, match=advice) as caught:
        write_depth(path, depth)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not path.exists()


def test_unknown_extension(tmp_path):
    unwritten(
        tmp_path / "a.xyz", depth_map(), r"cannot write depth as '\.xyz'; use one of \.png, \.exr, \.pfm"
    )
    unwritten(tmp_path / "a.jpg", depth_map(), r"cannot write depth as '\.jpg'")
    with pytest.raises(InputError, match="use one of"):
        output_unit("a", "m")


def test_metres_in_png(tmp_path):
    unwritten(tmp_path / "a.png", depth_map(), "cannot hold metres; use mm or 5000")


@pytest.mark.parametrize(
    ("unit", "value"), [("mm", 65.536), ("5000", 13.2), ("256", 256.0), ("disparity", 65536)]
)
def test_too_far_for_png(tmp_path, unit, value):
    unwritten(
        tmp_path / "a.png",
        depth_map([[1.0, value]], unit),
        f"does not fit PNG in unit '{unit}'.*coarser unit",
    )


@pytest.mark.parametrize(("unit", "value"), [("mm", 0.0004), ("256", 0.001), ("disparity", 0.4)])
def test_too_near_for_png(tmp_path, unit, value):
    unwritten(tmp_path / "a.png", depth_map([[1.0, value]], unit), "round to 0.*finer unit")


@pytest.mark.parametrize("value", [1e300, 1e-300])
@pytest.mark.parametrize("extension", [".exr", ".pfm"])
def test_out_of_reach_for_single_precision(tmp_path, extension, value):
    unwritten(tmp_path / f"a{extension}", depth_map([[1.0, value]]), "does not fit float32")


def test_nothing_valid_to_write(tmp_path):
    unwritten(tmp_path / "a.npy", depth_map([[0.0]]), "no valid pixel")


@pytest.mark.parametrize(
    ("values", "valid"),
    [
        (np.ones((2, 2, 1)), np.ones((2, 2, 1), bool)),
        (np.ones((2, 2), np.float32), np.ones((2, 2), bool)),
        (np.ones((2, 2)), np.ones((2, 3), bool)),
        (np.ones((2, 2)), np.ones((2, 2))),
        (np.full((2, 2), np.nan), np.ones((2, 2), bool)),
        (np.zeros((2, 2)), np.ones((2, 2), bool)),
        (np.ones((2, 2)), np.zeros((2, 2), bool)),
        (np.ones((0, 2)), np.ones((0, 2), bool)),
    ],
)
def test_depth_map_that_breaks_its_promise(values, valid):
    with pytest.raises(InputError, match=r"depth|valid"):
        DepthMap(values, valid, "m", "z")


def test_importing_loads_nothing_heavy():
    heavy = "OpenEXR", "tifffile", "scipy", "h5py", "PIL", "imageio"
    code = f"import sys, primaldepth.io.depth_writing; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
