"""PGM and PPM, by hand and as Pillow writes them."""

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError
from primaldepth.io import read_depth, read_guide

NUMBERS = np.array([[1000, 2000, 0], [3000, 4000, 65535]], np.uint16)


@pytest.mark.parametrize("magic", [b"P5", b"P2"])
def test_depth_of_sixteen_bits(tmp_path, magic):
    body = NUMBERS.astype(">u2").tobytes() if magic == b"P5" else b" ".join(b"%d" % n for n in NUMBERS.flat)
    path = tmp_path / "d.pgm"
    path.write_bytes(magic + b" # a comment\n3 2\n65535\n" + body)
    depth = read_depth(path, invalid=65535)
    assert np.array_equal(depth.values * 1000, np.where(NUMBERS == 65535, 0, NUMBERS))
    assert read_depth(path).valid.sum() == 5
    assert depth.valid.sum() == 4


def test_images_as_pillow_writes_them(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.ppm")
    assert np.array_equal(np.rint(read_guide(tmp_path / "a.ppm") * 255), pixels)


def test_a_guide_is_scaled_by_its_largest_value(tmp_path):
    (tmp_path / "a.pgm").write_bytes(b"P5 2 1 100\n" + bytes([0, 100]))
    assert read_guide(tmp_path / "a.pgm").ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"P5 3 2 65535\n\0\0", "needs 12 bytes after the header, found 2"),
        (b"P5 3000000 3000000 255\n", "more than the limit"),
        (b"P2 3 2 255\n1 2", "do not fit into the file"),
        (b"P2 2 1 255\n1 300", "more than its header allows"),
        (b"P2 2 1 255\n1 -3", "expected 2 whole numbers"),
        (b"P5 2 1 70000\n1234", "the largest value is 70000"),
        (b"P5 2 1 9\n" + bytes([4, 10]), "more than its largest value 9"),
        (b"P5 x", "header not understood"),
    ],
)
def test_damage_is_an_error(tmp_path, data, message):
    (tmp_path / "a.pgm").write_bytes(data)
    with pytest.raises(FileFormatError, match=message):
        read_depth(tmp_path / "a.pgm")
