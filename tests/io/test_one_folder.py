"""Depth maps and images in one folder."""

import numpy as np
import pytest

import recording_files
from primaldepth.core.errors import InputError
from primaldepth.io.sequences import is_recording, read_recording
from primaldepth.pipeline.pairing import NamedFiles, list_items


def test_seven_scenes(tmp_path):
    recording_files.write_seven_scenes(tmp_path)
    recording = read_recording(tmp_path)
    assert [shot.name for shot in recording] == ["frame_000000", "frame_000001", "frame_000002"]
    content = list(recording)[1].read()
    assert (content.depth.name, content.guide.name) == ("frame-000001.depth.png", "frame-000001.color.png")


def test_the_same_folder_twice_is_no_pair_of_files_with_themselves(tmp_path):
    recording_files.write_seven_scenes(tmp_path / "seq")
    named = NamedFiles(
        str(tmp_path / "seq"), str(tmp_path / "seq"), {"out": tmp_path / "out"}, note=lambda text: None
    )
    items, many = list_items(named)
    assert many
    assert len(items) == recording_files.COUNT
    assert all(item.depth != item.guide for item in items)


def test_a_folder_without_such_names_is_an_error(tmp_path):
    recording_files.save_image(tmp_path / "a.png", 0)
    assert not is_recording(tmp_path)
    with pytest.raises(InputError, match="no pair that is named alike"):
        list_items(NamedFiles(str(tmp_path), str(tmp_path), {"out": tmp_path / "out"}))


def test_units_and_other_words_in_names(tmp_path):
    for name in ("a", "b"):
        recording_files.save_depth(tmp_path / f"{name}_depth_mm.png", 0)
        recording_files.save_image(tmp_path / f"{name}_rgb.png", 0)
    recording_files.save_image(tmp_path / "c_rgb.png", 0)
    recording = read_recording(tmp_path)
    assert (len(recording), recording.unit) == (2, "mm")
    assert recording.notes == ["1 files have no partner that is named alike and are left out"]
    assert np.all([shot.name in "ab" for shot in recording])
