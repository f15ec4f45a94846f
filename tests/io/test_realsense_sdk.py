"""Bags that the RealSense SDK records: own cameras, places, units and time stamps."""

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="the extra 'bags' is not installed")

import recording_files
from primaldepth.api import load_inputs
from primaldepth.core.errors import FileFormatError
from primaldepth.io.sequences import read_recording


@pytest.mark.parametrize("own_units", [True, False])
def test_shots_have_depth_image_and_cameras(tmp_path, own_units):
    recording_files.write_sdk_bag(tmp_path / "a.bag", units=0.0005, own_units=own_units)
    recording = read_recording(tmp_path / "a.bag")
    assert (recording.layout, len(recording)) == ("RealSense SDK bag", recording_files.COUNT)
    for shot, each in enumerate(recording):
        content = each.read()
        assert np.allclose(content.depth, recording_files.depth_of(shot), atol=1e-6)
        assert np.array_equal(content.guide, recording_files.image_of(shot))
        cameras = content.cameras
        assert (cameras.guide.fx, cameras.guide.cx, cameras.depth.fx) == (32.0, 16.0, 8.0)
        assert cameras.translation == (-0.05, 0.0, 0.0)


def test_depth_is_registered_by_the_cameras_of_the_bag(tmp_path):
    recording_files.write_sdk_bag(tmp_path / "a.bag")
    content = next(iter(read_recording(tmp_path / "a.bag"))).read()
    inputs = load_inputs(content.depth, content.guide, unit="m", cameras=content.cameras)
    assert inputs.frame.registered
    assert "|t| = 0.05" in inputs.note


def test_pairs_follow_the_time_stamps_of_the_device_within_a_limit(tmp_path):
    recording_files.write_sdk_bag(tmp_path / "a.bag", late=0.3)
    with pytest.raises(
        FileFormatError, match=r"none within 0.05 s .* the nearest 0.300 s; give --time-apart"
    ):
        read_recording(tmp_path / "a.bag")
    assert len(read_recording(tmp_path / "a.bag", 0.31)) == recording_files.COUNT


def test_a_bag_without_places_is_taken_as_aligned_and_says_so(tmp_path):
    recording_files.write_sdk_bag(tmp_path / "a.bag", tf=False, units=None, own_units=False)
    recording = read_recording(tmp_path / "a.bag")
    assert next(iter(recording)).read().cameras.depth is None
    assert any("taken as aligned" in note for note in recording.notes)


def test_a_step_of_depth_that_no_camera_has_is_refused(tmp_path):
    recording_files.write_sdk_bag(tmp_path / "a.bag", units=50.0, own_units=False)
    with pytest.raises(FileFormatError, match="a step of depth of 50 m"):
        read_recording(tmp_path / "a.bag")
