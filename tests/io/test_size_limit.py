"""A limit on pixels holds before anything is decoded, and no file expands past what it claims."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
import tifffile

from primaldepth.core.errors import FileFormatError, TooLargeError
from primaldepth.io import DepthMap, read_depth, read_guide, write_depth
from primaldepth.io.formats.base import MAX_PIXELS, size_limit


@pytest.mark.parametrize("suffix", [".png", ".exr", ".pfm", ".npy", ".npz", ".tiff", ".mat"])
def test_within_the_block_larger_maps_are_refused(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_depth(path, DepthMap.from_array(np.full((20, 30), 2.0), unit="mm"))
    with size_limit(600, 30):
        assert read_depth(path).values.shape == (20, 30)
    for limit in ((599, 30), (600, 29)):
        with size_limit(*limit), pytest.raises(TooLargeError, match="claims 30x20 pixels"):
            read_depth(path)
    assert read_depth(path).values.shape == (20, 30)


def test_a_limit_is_never_wider_than_the_package_s_own(tmp_path):
    path = tmp_path / "a.pfm"
    path.write_bytes(b"Pf\n65536 65536\n-1.0\n" + bytes(8))
    with size_limit(2**40, 2**40), pytest.raises(TooLargeError, match=str(MAX_PIXELS)):
        read_depth(path)


def test_a_strip_that_inflates_past_its_claim_is_refused(tmp_path):
    path = tmp_path / "a.tiff"
    tifffile.imwrite(path, np.ones((8, 8), np.uint16), compression="zlib", metadata=None)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        at, size = tags["StripOffsets"].valueoffset, tags["StripByteCounts"].valueoffset
    bomb = zlib.compress(bytes(5_000_000), 9)
    struct.pack_into("<I", data, at, len(data))
    struct.pack_into("<I", data, size, len(bomb))
    path.write_bytes(bytes(data) + bomb)
    with pytest.raises(FileFormatError, match="does not end within 128 bytes"):
        read_depth(path)


def test_an_archive_of_thousands_of_arrays_is_refused(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for index in range(1001):
            archive.writestr(f"{index}.npy", b"")
    path = tmp_path / "a.npz"
    path.write_bytes(stream.getvalue())
    with pytest.raises(FileFormatError, match="more than 1000 arrays"):
        read_depth(path)


def test_an_array_of_many_channels_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((4, 4, 5), np.float32))
    with pytest.raises(FileFormatError, match="at most 4 channels"):
        read_guide(path)
