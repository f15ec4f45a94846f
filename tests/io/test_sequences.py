"""Recordings as people have them: told by their content, paired, with unit, camera and confidence."""

import importlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import recording_files as layouts
from primaldepth.core.errors import FileFormatError, InputError, MissingDependencyError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.io import read_depth
from primaldepth.io.sequences import is_recording, read_recording
from primaldepth.io.sequences.base import nearest_in_time, numbered, time_stamp
from primaldepth.io.sequences.video import Video, with_depths

CAMERA = Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)


def metres(content, unit):
    if isinstance(content.depth, Path):
        return read_depth(content.depth, unit=unit).values
    return content.depth


def check_depths(recording):
    assert len(recording) == layouts.COUNT
    assert len({shot.name for shot in recording}) == layouts.COUNT
    for index, shot in enumerate(recording):
        np.testing.assert_allclose(metres(shot.read(), recording.unit), layouts.depth_of(index), rtol=1e-6)


def test_tum_pairs_by_time_and_says_what_is_left_out(tmp_path):
    layouts.write_tum(tmp_path)
    recording = read_recording(tmp_path)
    assert (recording.layout, recording.unit) == ("TUM RGB-D", "5000")
    check_depths(recording)
    assert [shot.files[1].name for shot in recording] == [f"{100.005 + i / 30:.6f}.png" for i in range(3)]
    assert recording.notes == ["1 of 4 depth maps have no image within 0.02 s"]


def test_stray_scanner_brings_confidence_and_camera(tmp_path):
    layouts.write_stray_scanner(tmp_path)
    recording = read_recording(tmp_path)
    assert (recording.layout, recording.unit) == ("StrayScanner", "mm")
    check_depths(recording)
    content = recording.shots[1].read()
    assert content.confidence == tmp_path / "confidence" / "000001.png"
    assert content.guide == tmp_path / "rgb" / "000001.jpg"
    assert content.cameras == Cameras(CAMERA)


@pytest.mark.parametrize("inside", ["", "EXR_RGBD"])
def test_record3d_scales_the_camera_to_the_image(tmp_path, inside):
    layouts.write_record3d(tmp_path / inside)
    recording = read_recording(tmp_path)
    assert (recording.layout, recording.unit) == ("Record3D", "m")
    check_depths(recording)
    assert recording.shots[2].read().cameras == Cameras(CAMERA)


def test_record3d_prefers_the_camera_of_each_frame(tmp_path):
    layouts.write_record3d(tmp_path)
    (tmp_path / "metadata.json").write_text(
        '{"w": 32, "h": 24, "perFrameIntrinsicCoeffs": [[30, 30, 15.5, 11.5], [40, 41, 15.5, 11.5]]}'
    )
    cameras = [shot.read().cameras for shot in read_recording(tmp_path)]
    assert cameras[:2] == [Cameras(CAMERA), Cameras(replace(CAMERA, fx=40.0, fy=41.0))]
    assert cameras[2] is None


@pytest.mark.parametrize("ros", [1, 2])
def test_bags_choose_registered_depth_and_the_colour_s_camera(tmp_path, ros):
    pytest.importorskip("rosbags")
    place = tmp_path / ("a.bag" if ros == 1 else "a")
    layouts.write_bag(place, ros=ros)
    recording = read_recording(place)
    assert (recording.layout, recording.unit) == ("ROS bag", None)
    assert recording.notes == [
        "depth from /camera/aligned_depth_to_color/image_raw, images from /camera/color/image_raw"
    ]
    check_depths(recording)
    content = recording.shots[2].read()
    np.testing.assert_array_equal(content.guide, layouts.image_of(2))
    assert content.cameras == Cameras(CAMERA)


INFRARED = {
    "shorter name": {"/depth/image_raw": "16UC1", "/ir/image_raw": "16UC1"},
    "same folder": {"/camera/image_depth": "16UC1", "/camera/image_ir": "16UC1"},
    "grey": {"/depth/image_raw": "16UC1", "/a": "mono16"},
    "both grey": {"/Depth/image_raw": "mono16", "/ir/image_raw": "mono16"},
}


@pytest.mark.parametrize("depths", INFRARED.values(), ids=INFRARED)
def test_infrared_is_not_taken_for_depth(tmp_path, depths):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a", depths=depths, color="/some/image")
    recording = read_recording(tmp_path / "a")
    assert recording.notes == [f"depth from {next(iter(depths))}, images from /some/image"]
    check_depths(recording)


def test_grey_images_alone_are_no_depth(tmp_path):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a", depths={"/ir/image_raw": "mono16"})
    with pytest.raises(FileFormatError, match="needs a topic of depth images"):
        read_recording(tmp_path / "a")


LENSES = {
    "plumb_bob": Distortion("plumb_bob", (-0.1, 0.02, 0.001, -0.002, 0.0)),
    "rational_polynomial": Distortion("rational", (0.1, 0.02, 0.001, -0.002, 0.0, 0.1, 0.0, 0.0)),
    "equidistant": Distortion("fisheye", (-0.02, 0.007, -0.006, 0.001)),
}


@pytest.mark.parametrize("ros", [1, 2])
@pytest.mark.parametrize("model", LENSES)
def test_bags_bring_the_lens(tmp_path, model, ros):
    pytest.importorskip("rosbags")
    place = tmp_path / ("a.bag" if ros == 1 else "a")
    layouts.write_bag(place, ros=ros, lens=(model, LENSES[model].coefficients))
    recording = read_recording(place)
    assert recording.shots[0].read().cameras == Cameras(replace(CAMERA, distortion=LENSES[model]))
    assert len(recording.notes) == 1


@pytest.mark.parametrize("lens", [("inverse_brown", (0.1,) * 5), ("plumb_bob", (0.1,) * 3)])
def test_a_lens_that_is_not_known_is_told(tmp_path, lens):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a", lens=lens)
    recording = read_recording(tmp_path / "a")
    assert recording.shots[0].read().cameras == Cameras(CAMERA)
    assert f"lens ('{lens[0]}' with {len(lens[1])} coefficients) is not known" in recording.notes[1]


@pytest.mark.parametrize("ros", [1, 2])
def test_an_image_may_be_a_binned_region_of_the_sensor(tmp_path, ros):
    """Of 100x80 pixels 64x48 from (10, 20) are read, each two by two to one."""
    pytest.importorskip("rosbags")
    place = tmp_path / ("a.bag" if ros == 1 else "a")
    sensor = {"size": (80, 100), "K": (60.0, 10 + 2 * 16.0 - 0.5, 60.0, 20 + 2 * 12.0 - 0.5)}
    layouts.write_bag(place, ros=ros, region=(10, 20, 64, 48), binning=(2, 2), **sensor)
    assert read_recording(place).shots[0].read().cameras == Cameras(CAMERA)


def test_a_driver_may_describe_the_binned_image_itself(tmp_path):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a", binning=(2, 2))
    assert read_recording(tmp_path / "a").shots[0].read().cameras == Cameras(CAMERA)


def test_a_camera_that_was_not_calibrated_is_none(tmp_path):
    """ROS says so by a K of zeros."""
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a", K=(0.0, 0.0, 0.0, 0.0))
    assert read_recording(tmp_path / "a").shots[0].read().cameras is None


def test_rectified_images_have_no_lens(tmp_path):
    pytest.importorskip("rosbags")
    lens = "plumb_bob", LENSES["plumb_bob"].coefficients
    layouts.write_bag(tmp_path / "a", color="/camera/color/image_rect_color", lens=lens)
    cameras = read_recording(tmp_path / "a").shots[0].read().cameras
    assert cameras == Cameras(replace(CAMERA, fx=28.0, fy=28.0))


def check_refused(place):
    with pytest.raises(FileFormatError, match=r"not a readable bag .*reindex") as caught:
        [shot.read() for shot in read_recording(place)]
    assert str(place) in str(caught.value)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_bag_that_was_cut_off_is_told(tmp_path, part):
    pytest.importorskip("rosbags")
    place = tmp_path / "a.bag"
    layouts.write_bag(place, ros=1)
    data = place.read_bytes()
    place.write_bytes(data[: int(part * len(data))])
    check_refused(place)


@pytest.mark.parametrize("start", [0, 4096])
def test_a_damaged_database_is_told(tmp_path, start):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a")
    (place,) = (tmp_path / "a").glob("*.db3")
    data = bytearray(place.read_bytes())
    data[start:] = b"?" * (len(data) - start)
    place.write_bytes(data)
    check_refused(place)


def test_damage_between_the_messages_is_told(tmp_path):
    pytest.importorskip("rosbags")
    place = tmp_path / "a.bag"
    layouts.write_bag(place, ros=1)
    data = bytearray(place.read_bytes())
    header = data.index(b"op=\x02")  # of the first message
    data[header : header + 4] = b"op=\x09"
    place.write_bytes(data)
    check_refused(place)


def test_a_damaged_message_is_told(tmp_path, monkeypatch):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a")
    monkeypatch.setattr("primaldepth.io.sequences.bags.unpack_message", lambda data: data[:40])
    check_refused(tmp_path / "a")


def test_a_bag_without_depth_lists_its_topics(tmp_path, monkeypatch):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a")
    monkeypatch.setattr("primaldepth.io.sequences.rosbag.is_depth", lambda message: False)
    with pytest.raises(
        FileFormatError, match=r"needs a topic of depth.*found /camera/aligned_depth.*\(Image\)"
    ):
        read_recording(tmp_path / "a")


def test_frames_of_a_video_in_any_order(tmp_path):
    pytest.importorskip("av")
    layouts.write_film(tmp_path / "film.mp4")
    video = Video(tmp_path / "film.mp4")
    for index in (0, 2, 1):
        difference = video.frame(index).astype(float) - layouts.image_of(index)
        assert abs(difference.mean()) < 2.0
    with pytest.raises(FileFormatError, match="ends after 3 frames, but frame 4 is needed"):
        video.frame(3)


def test_stray_scanner_with_a_film(tmp_path):
    pytest.importorskip("av")
    layouts.write_stray_scanner(tmp_path, film=True)
    content = read_recording(tmp_path).shots[1].read()
    assert isinstance(content.guide, np.ndarray)
    assert content.guide.shape == (24, 32, 3)
    assert content.cameras == Cameras(CAMERA)


def test_text_is_no_video(tmp_path):
    pytest.importorskip("av")
    (tmp_path / "film.mp4").write_text("not a film")
    with pytest.raises(FileFormatError, match="not a readable video"):
        Video(tmp_path / "film.mp4").frame(0)


def without(monkeypatch, name):
    """As if the package were not installed."""
    real = importlib.import_module

    def imported(module, *args):
        if module.split(".")[0] == name:
            raise ModuleNotFoundError(module)
        return real(module, *args)

    monkeypatch.setattr("primaldepth.io.files.import_module", imported)


def test_a_video_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    without(monkeypatch, "av")
    with pytest.raises(
        MissingDependencyError, match=r"film.mp4: .* 'av'; run: pip install 'primaldepth\[video\]'"
    ):
        with_depths([tmp_path / "a.png"], tmp_path / "film.mp4", [None])


def test_a_bag_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    without(monkeypatch, "rosbags")
    (tmp_path / "a.bag").write_bytes(b"#ROSBAG V2.0\n")
    with pytest.raises(MissingDependencyError, match=r"'rosbags'; run: pip install 'primaldepth\[bags\]'"):
        read_recording(tmp_path / "a.bag")


def test_what_is_no_recording_is_listed(tmp_path):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "photos").mkdir()
    assert not is_recording(tmp_path)
    with pytest.raises(FileFormatError, match=r"found notes.txt, photos/; expected depth.txt and rgb.txt"):
        read_recording(tmp_path)
    with pytest.raises(FileFormatError, match="found nothing there"):
        read_recording(tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rgb.txt", "soon rgb/1.png", "line 1 is not 'timestamp file'"),
        ("rgb.txt", "# nothing", "lists no file"),
        ("rgb.txt", "5.0 rgb/1.png", "none within 0.02 s"),
        ("rgb.txt", "nan rgb/1.png", "line 1 is not 'timestamp file': NaN or an infinite number"),
        ("rgb.txt", "1e999 rgb/1.png", "line 1 is not 'timestamp file': NaN or an infinite number"),
        ("rgb.txt", "100.0 ../other/1.png", r"rgb.txt: names '\.\./other/1\.png', which is no file in"),
        ("rgb.txt", "100.0 /etc/passwd", r"rgb.txt: names '/etc/passwd', which is no file in"),
        ("depth.txt", "100.0 a\0b.png", "depth.txt: names .*, which is no file in"),
        ("depth.txt", "x" * 10**5, r"line 1 is not 'timestamp file': 'x{56}\.\.\.$"),
        ("depth.txt", "1 a\n" * 300_000, "lists more than 262144 files"),
        ("depth.txt", "#" * 2**25, "has 33554432 bytes, more than the limit"),
    ],
)
def test_damaged_lists_are_told(tmp_path, name, text, message):
    layouts.write_tum(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_recording(tmp_path)


def _moved_out(path, outside):
    """Put a file or folder elsewhere and leave a link in its place."""
    outside.mkdir()
    target = path.rename(outside / path.name)
    path.symlink_to(target)


def _reading_everything(root):
    return [shot.read() for shot in read_recording(root)]


LINKS = [
    ("tum", "depth"),
    ("tum", "rgb.txt"),
    ("stray_scanner", "rgb"),
    ("stray_scanner", "confidence/000001.png"),
    ("stray_scanner", "camera_matrix.csv"),
    ("record3d", "depth/2.exr"),
    ("record3d", "metadata.json"),
]


@pytest.mark.parametrize(("layout", "name"), LINKS)
def test_links_out_of_a_recording_are_refused(tmp_path, layout, name):
    root = tmp_path / "recording"
    getattr(layouts, f"write_{layout}")(root)
    assert len(_reading_everything(root)) == layouts.COUNT
    _moved_out(root / name, tmp_path / "outside")
    with pytest.raises(FileFormatError, match=f"{Path(name).name}.*: a link that leads out of"):
        _reading_everything(root)


def test_a_film_behind_a_link_is_refused(tmp_path):
    pytest.importorskip("av")
    layouts.write_stray_scanner(tmp_path / "recording", film=True)
    _moved_out(tmp_path / "recording" / "rgb.mp4", tmp_path / "outside")
    with pytest.raises(FileFormatError, match=r"rgb\.mp4: a link that leads out of"):
        read_recording(tmp_path / "recording")


def test_a_bag_behind_a_link_is_refused_unless_the_user_names_it(tmp_path):
    pytest.importorskip("rosbags")
    layouts.write_bag(tmp_path / "a")
    (file,) = (tmp_path / "a").glob("*.db3")
    _moved_out(file, tmp_path / "outside")
    with pytest.raises(FileFormatError, match="a link that leads out of"):
        read_recording(tmp_path / "a")
    check_depths(read_recording(file))


def test_links_within_a_recording_and_to_it_are_followed(tmp_path):
    layouts.write_tum(tmp_path / "recording")
    (tmp_path / "recording" / "depth").rename(tmp_path / "recording" / "maps")
    (tmp_path / "recording" / "depth").symlink_to("maps")
    (tmp_path / "link").symlink_to("recording")
    check_depths(read_recording(tmp_path / "link"))


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{", '{"K": [1, 2], "w": 32}', '{"K": 3}'),
        '{"K": {"0": 1}}',
        '{"K": [1, 2, 3, 4, 5, 6, 7, 8, {}]}',
        '{"K": [1, 2, 3, 4, 5, 6, 7, 8, 9], "w": 0}',
        '{"K": [1, 2, 3, 4, 5, 6, 7, 8, 9], "w": "wide"}',
        '{"K": [1, 2, 3, 4, 5, 6, 7, 8, NaN]}',
        '{"perFrameIntrinsicCoeffs": {"0": [1, 2, 3, 4]}}',
        '{"perFrameIntrinsicCoeffs": [null]}',
        '{"perFrameIntrinsicCoeffs": [[1, 2, 3]]}',
        '{"perFrameIntrinsicCoeffs": ["1234"]}',
        '{"K": ' + "[" * 10_000,
        '{"K": ' + "1" * 5000 + "}",
        '{"K": 1, "K": 2}',
        '{"K": "' + "x" * 2**25 + '"}',
    ],
    ids=range(17),
)
def test_damaged_metadata_is_told(tmp_path, text):
    layouts.write_record3d(tmp_path)
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(FileFormatError, match="metadata"):
        read_recording(tmp_path).shots[0].read()


def test_a_camera_matrix_of_another_resolution_is_told(tmp_path):
    layouts.write_stray_scanner(tmp_path)
    (tmp_path / "camera_matrix.csv").write_text("60, 0, 31.5\n0, 60, 23.5\n0, 0, 1\n")
    with pytest.raises(FileFormatError, match=r"camera_matrix\.csv: the principal point \(32.0, 24.0\)"):
        read_recording(tmp_path).shots[0].read()


@pytest.mark.parametrize(
    "text", ["1 2 3", "a b c d e f g h i", "nan 0 0 0 1 0 0 0 1", "1 " * 10**6], ids=range(4)
)
def test_a_damaged_camera_matrix_is_told(tmp_path, text):
    layouts.write_stray_scanner(tmp_path)
    (tmp_path / "camera_matrix.csv").write_text(text)
    with pytest.raises(FileFormatError, match=r"camera_matrix\.csv"):
        read_recording(tmp_path)


def test_a_scan_without_images_says_what_is_there(tmp_path):
    layouts.write_stray_scanner(tmp_path)
    for path in (tmp_path / "rgb").iterdir():
        path.unlink()
    with pytest.raises(FileFormatError, match=r"neither rgb.mp4 nor images in rgb/; found camera_matrix.csv"):
        read_recording(tmp_path)


def test_a_scan_that_lacks_a_depth_map_is_paired_by_number(tmp_path):
    layouts.write_stray_scanner(tmp_path)
    (tmp_path / "depth" / "000001.png").unlink()
    recording = read_recording(tmp_path)
    assert [shot.read().guide.stem for shot in recording] == ["000000", "000002"]
    assert list(recording.notes) == ["2 depth maps but 3 images: the 2 of one number are used"]


def test_a_scan_whose_numbers_do_not_fit_is_paired_in_order(tmp_path):
    layouts.write_stray_scanner(tmp_path)
    for path in sorted((tmp_path / "rgb").iterdir())[1:]:
        path.rename(path.with_stem(f"frame-{100 + int(path.stem)}"))
    (tmp_path / "rgb" / "000000.jpg").unlink()
    recording = read_recording(tmp_path)
    assert [shot.read().guide.stem for shot in recording] == ["frame-101", "frame-102"]
    assert list(recording.notes) == ["3 depth maps but 2 images: the first 2 are used, in order"]


def rename_scan(root, depths, images):
    layouts.write_stray_scanner(root)
    for folder, names in (("depth", depths), ("rgb", images)):
        for path, name in zip(sorted((root / folder).iterdir()), names, strict=True):
            path.rename(path.with_stem(f"new-{name}"))
    recording = read_recording(root)
    pairs = [(shot.name[4:], shot.read().guide.stem[4:]) for shot in recording]
    return pairs, list(recording.notes)


def test_a_scan_that_lacks_as_many_maps_as_images_is_paired_by_number(tmp_path):
    pairs, notes = rename_scan(tmp_path, "013", "023")
    assert pairs == [("0", "0"), ("3", "3")]
    assert notes == ["3 depth maps and 3 images: the 2 of one number are used"]


@pytest.mark.parametrize("images", ["123", "456", "478", "abc"])
def test_a_scan_counted_from_elsewhere_is_paired_in_order_and_told(tmp_path, images):
    pairs, notes = rename_scan(tmp_path, "012", images)
    assert pairs == list(zip("012", images, strict=True))
    last = images[-1]
    assert notes == [f"paired in order, new-0.png with new-{images[0]}.jpg, new-2.png with new-{last}.jpg"]


def test_depth_files_that_skip_a_number_before_a_video_are_told(tmp_path):
    pytest.importorskip("av")
    layouts.write_film(tmp_path / "film.mp4")
    layouts.write_film(tmp_path / "two.mp4", 2)
    paths = [tmp_path / f"{number}.png" for number in (8, 9, 11)]
    told = with_depths(paths, tmp_path / "film.mp4", [None] * 3).notes
    assert list(told) == ["11.png comes after 9.png, and both go with frames of the video in order"]
    assert not with_depths(paths[:2], tmp_path / "two.mp4", [None] * 2).notes
    named = [tmp_path / "a.png", tmp_path / "b.png"]
    assert not with_depths(named, tmp_path / "two.mp4", [None] * 2).notes


@pytest.mark.parametrize("extension", [".mp4", ".mkv", ".avi"])
@pytest.mark.parametrize("count", [2, 5])
def test_a_video_of_another_length_is_not_paired_in_order(tmp_path, extension, count):
    pytest.importorskip("av")
    film = tmp_path / f"film{extension}"
    layouts.write_film(film, count)
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    with pytest.raises(FileFormatError, match=rf"film\{extension}: {count} frames, .* 3 depth maps; extract"):
        with_depths(paths, film, [None] * 3)


def scan_with_film(root, names, count):
    """A scan of depth maps with these names, and a film; the frame each of them got, and the notes."""
    layouts.write_stray_scanner(root, film=True)
    layouts.write_film(root / "rgb.mp4", count)
    for path in (root / "depth").iterdir():
        path.unlink()
    for name in names:
        layouts.save_depth(root / "depth" / f"{name}.png", 0)
    recording = read_recording(root)
    first = layouts.image_of(0).mean()
    frames = [round((shot.read().guide.mean() - first) / 5) for shot in recording]
    return frames, list(recording.notes)


@pytest.mark.parametrize(
    ("names", "count", "frames", "how"),
    [
        (("000000", "000001", "000002"), 4, [0, 1, 2], "each goes with the frame of its number"),
        (("000000", "000002", "000005"), 6, [0, 2, 5], "each goes with the frame of its number"),
        (("a", "b", "c"), 4, [0, 1, 2], "the first 3 are used, in order"),
    ],
)
def test_a_scan_whose_film_is_longer(tmp_path, names, count, frames, how):
    pytest.importorskip("av")
    found, notes = scan_with_film(tmp_path, names, count)
    assert found == frames
    assert notes == [f"3 depth maps but {count} frames: {how}"]


@pytest.mark.parametrize("names", [("000000", "000001", "000002"), ("a", "b", "c")])
def test_a_scan_whose_film_is_much_longer_is_refused(tmp_path, names):
    pytest.importorskip("av")
    with pytest.raises(FileFormatError, match=r"rgb\.mp4: 9 frames, but there are 3 depth maps"):
        scan_with_film(tmp_path, names, 9)


def test_numbers_are_sorted_as_numbers(tmp_path):
    for name in ("10.png", "2.png", "1.txt", "0.png"):
        (tmp_path / name).touch()
    assert [path.name for path in numbered(tmp_path, ".png")] == ["0.png", "2.png", "10.png"]


@pytest.mark.parametrize(
    ("stem", "seconds"),
    [
        ("1305031102.175304", 1305031102.175304),
        ("rgb_1305031102.5", 1305031102.5),
        ("1305031102175-depth", 1305031102.175),
        ("1305031102175304", 1305031102.175304),
        ("1403636579763555584", 1403636579.763555584),
        ("0000000012.5", None),
        ("1305031102", None),
        ("20240131123045", None),
        ("cam1_1305031102.5", None),
        ("5.25", None),
    ],
)
def test_names_that_are_times(stem, seconds):
    assert time_stamp(Path(f"{stem}.png")) == seconds


def test_nearest_in_time():
    assert nearest_in_time([0.0, 0.95, 1.42, 5.0], [0.01, 1.0, 1.5], 0.1) == [0, 1, 2, None]
    assert nearest_in_time([1.0], [1.0], 0.1) == [0]
    assert nearest_in_time([1.0, 2.0], [1.96], 0.1) == [None, 0]


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (layouts.write_record3d, "rgb/0.jpg"),
        (layouts.write_stray_scanner, "rgb/000000.jpg"),
    ],
)
def test_images_that_are_none_or_no_files(tmp_path, write, name):
    """Each is an error of ours for its shot alone."""
    write(tmp_path)
    image = tmp_path / name
    image.write_bytes(b"%!PS-Adobe-3.0\n")
    with pytest.raises(InputError, match=str(image)):
        read_recording(tmp_path).shots[0].read()
    image.unlink()
    os.mkfifo(image)
    with pytest.raises(InputError, match="is not a regular file"):
        read_recording(tmp_path).shots[0].read()
    assert read_recording(tmp_path).shots[1].read().cameras is not None
