"""Raw data of Polycam and 3D Scanner App."""

import json

import numpy as np
import pytest

import recording_files
from primaldepth.core.errors import FileFormatError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io import read_depth
from primaldepth.io.sequences import read_recording

WRITERS = {"Polycam": recording_files.write_polycam, "3D Scanner App": recording_files.write_scanner_app}


@pytest.mark.parametrize("layout", list(WRITERS))
def test_depth_image_confidence_and_camera(tmp_path, layout):
    WRITERS[layout](tmp_path)
    recording = read_recording(tmp_path)
    assert (recording.layout, recording.unit, len(recording)) == (layout, "mm", recording_files.COUNT)
    for shot, each in enumerate(recording):
        content = each.read()
        assert np.allclose(read_depth(content.depth).values, recording_files.depth_of(shot))
        assert content.guide.suffix == ".jpg"
        assert content.confidence is not None
        assert content.cameras.guide == Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)


def test_images_that_polycam_has_not_corrected(tmp_path):
    recording_files.write_polycam(tmp_path, corrected=False)
    content = next(iter(read_recording(tmp_path))).read()
    assert content.guide.parent.name == "images"


def test_a_camera_without_numbers_is_an_error(tmp_path):
    recording_files.write_polycam(tmp_path)
    file = tmp_path / "keyframes/corrected_cameras/1000.json"
    file.write_text(json.dumps({"fx": "wide"}))
    with pytest.raises(FileFormatError, match="expected numbers for fx, fy, cx, cy, width, height"):
        next(iter(read_recording(tmp_path))).read()


def test_a_matrix_of_another_resolution_is_an_error(tmp_path):
    recording_files.write_scanner_app(tmp_path)
    (tmp_path / "frame_00000.json").write_text(json.dumps({"intrinsics": [60, 0, 31, 0, 60, 23, 0, 0, 1]}))
    with pytest.raises(FileFormatError, match="of another resolution"):
        next(iter(read_recording(tmp_path))).read()
