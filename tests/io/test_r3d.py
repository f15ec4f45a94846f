"""Record3D's .r3d files."""

import sys
import zipfile

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError, MissingDependencyError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io.sequences import read_recording
from recording_files import COUNT, LOW, depth_of, image_of, write_r3d


@pytest.fixture
def file(tmp_path):
    pytest.importorskip("lzfse")
    write_r3d(tmp_path / "a.r3d")
    return tmp_path / "a.r3d"


def test_depth_image_confidence_and_camera(file):
    recording = read_recording(file)
    assert (recording.layout, len(recording), recording.unit) == ("Record3D file", COUNT, None)
    found = recording.shots[1].read()
    expected = depth_of(1)
    expected[0, 0] = np.nan
    np.testing.assert_allclose(found.depth, expected, atol=1e-6)
    np.testing.assert_allclose(found.guide, image_of(1), atol=8)
    np.testing.assert_array_equal(found.confidence, np.full(LOW, 0.5))
    # scaled from 64x48, centres at half-integers
    assert found.cameras.guide == Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)


def test_it_is_upsampled_like_any_recording(file, tmp_path):
    from primaldepth.pipeline.load import load
    from primaldepth.pipeline.pairing import NamedFiles, list_items
    from primaldepth.pipeline.request import Request

    items, _ = list_items(NamedFiles(str(file), None, {}))
    inputs = load(items[0], Request("bilinear"))
    assert inputs.frame.depth.shape == (1, 1, *LOW)
    assert int((~inputs.frame.valid).sum()) == 1
    assert inputs.frame.confidence.unique().tolist() == [0.5]
    assert inputs.cameras.guide.fx == 30.0


def test_a_size_that_does_not_fit_is_an_error(tmp_path):
    pytest.importorskip("lzfse")
    write_r3d(tmp_path / "a.r3d", dw=5)
    with pytest.raises(FileFormatError, match="192 bytes, which is no size"):
        read_recording(tmp_path / "a.r3d").shots[0].read()
    write_r3d(tmp_path / "b.r3d", dw="wide")
    with pytest.raises(FileFormatError, match="'dw' and 'dh' are"):
        read_recording(tmp_path / "b.r3d").shots[0].read()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_size_of_older_files_is_told_by_their_bytes(tmp_path):
    lzfse = pytest.importorskip("lzfse")
    write_r3d(tmp_path / "a.r3d", dw=None, dh=None)
    metres = np.arange(192 * 256, dtype="<f4").reshape(192, 256)
    with zipfile.ZipFile(tmp_path / "a.r3d", "a") as archive:
        for name, values in (("depth", metres), ("conf", np.ones((192, 256), np.uint8))):
            archive.writestr(f"rgbd/0.{name}", lzfse.compress(values.tobytes()))
    found = read_recording(tmp_path / "a.r3d").shots[0].read()
    np.testing.assert_array_equal(found.depth, metres)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_damage_is_an_error(file, keep):
    data = file.read_bytes()
    file.write_bytes(data[: int(keep * len(data))])
    with pytest.raises(FileFormatError, match="copy it again"):
        read_recording(file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_packed_map_that_is_damaged_is_an_error(file):
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("rgbd/0.depth", b"bvx2" + bytes(40))
    with pytest.raises(FileFormatError, match=r"a\.r3d"):
        read_recording(file).shots[0].read()


def test_a_list_too_long_to_be_read_is_refused(file):
    data = bytearray(file.read_bytes())
    place = data.rfind(b"PK\x05\x06")
    data[place + 12 : place + 16] = (2**30).to_bytes(4, "little")
    file.write_bytes(data)
    with pytest.raises(FileFormatError, match="too many files"):
        read_recording(file)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.r3d", "w") as archive:
        archive.writestr("metadata", "{}")
    monkeypatch.setitem(sys.modules, "lzfse", None)
    with pytest.raises(MissingDependencyError, match=r"primaldepth\[record3d\]"):
        read_recording(tmp_path / "a.r3d")
