"""`upsample` on recordings: one argument, every shot, its own unit, camera and confidence."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from small_files import Cli

import recording_files as layouts
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.intrinsics import Intrinsics
from primaldepth.io import read_depth
from primaldepth.io.pointcloud import read_ply

FAST = ("--method", "nearest")
WRITERS = {
    "tum": (layouts.write_tum, "5000", ".png"),
    "stray": (layouts.write_stray_scanner, "mm", ".png"),
    "record3d": (layouts.write_record3d, "m", ".exr"),
}


def check_results(reports: list[dict], unit: str, extension: str) -> None:
    assert len(reports) == layouts.COUNT
    for shot, report in enumerate(reports):
        assert report["unit"] == unit
        assert Path(report["out"]).suffix == extension
        wanted = np.kron(layouts.depth_of(shot), np.ones((4, 4)))
        np.testing.assert_allclose(read_depth(report["out"], unit=unit).values, wanted, rtol=1e-6)


@pytest.mark.parametrize(("write", "unit", "extension"), WRITERS.values(), ids=WRITERS)
def test_a_recording_needs_no_guide_and_no_unit(cli: Cli, files: Path, write, unit, extension) -> None:
    write(files / "rec")
    outcome = cli("upsample", "rec", "-o", "out", *FAST, "--json")
    assert outcome.code == 0, outcome.err
    check_results(outcome.json, unit, extension)
    assert "3 shots" in outcome.lines[0]


def test_a_recording_is_a_sequence(cli: Cli, files: Path) -> None:
    layouts.write_tum(files / "rec")
    outcome = cli("upsample", "rec", "-o", "out", *FAST, "--temporal", "--json")
    assert outcome.code == 0, outcome.err
    assert [report["unit"] for report in outcome.json] == ["5000"] * layouts.COUNT
    assert all("carried" in report["info"] for report in outcome.json)


def test_a_bad_frame_of_a_bag_does_not_end_the_batch(cli: Cli, files: Path) -> None:
    """The image of the second shot claims 3.6 thousand million pixels."""
    pytest.importorskip("rosbags")

    def change(name: str, shot: int, data: bytes) -> bytes:
        size = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        check = zlib.crc32(b"IHDR" + size)
        bad = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + size + struct.pack(">I", check)
        place = data.find(b"\xff\xd8")
        return data[: place - 4] + struct.pack("<I", len(bad)) + bad if place > 0 and shot == 1 else data

    layouts.write_bag(files / "a.bag", ros=1, compressed=True, change=change)
    outcome = cli("upsample", "a.bag", "-o", "out", *FAST, "--json")
    assert outcome.code == 1
    assert ["error" in report for report in outcome.json] == [False, True, False]
    assert "a.bag" in outcome.json[1]["error"]


@pytest.mark.parametrize("ros", [1, 2])
def test_a_bag(cli: Cli, files: Path, ros: int) -> None:
    pytest.importorskip("rosbags")
    place = files / ("a.bag" if ros == 1 else "a")
    layouts.write_bag(place, ros=ros)
    outcome = cli("upsample", place, "-o", "out", *FAST, "--json")
    assert outcome.code == 0, outcome.err
    check_results(outcome.json, "mm", ".png")
    refused = cli("upsample", place, "-o", "out", "--unit", "m", *FAST)
    assert refused.code == 1
    assert "says its own unit" in refused.err


def test_a_damaged_bag_is_one_line(cli: Cli, files: Path) -> None:
    pytest.importorskip("rosbags")
    (files / "x.bag").write_bytes(b"#ROSBAG V2.0\nE\0\0\0garbage")
    outcome = cli("upsample", "x.bag", "-o", "out", *FAST)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "x.bag: not a readable bag" in outcome.err


def test_depth_files_and_a_video(cli: Cli, files: Path) -> None:
    pytest.importorskip("av")
    for shot in range(layouts.COUNT):
        layouts.save_depth(files / "d" / f"{shot}.png", shot)
    layouts.write_film(files / "film.mp4")
    outcome = cli("upsample", "d", "film.mp4", "-o", "out", *FAST, "--json")
    assert outcome.code == 0, outcome.err
    check_results(outcome.json, "mm", ".png")


def test_frames_of_a_video_follow_the_numbers_of_the_depth_files(cli: Cli, files: Path) -> None:
    pytest.importorskip("av")
    for shot, name in enumerate(("1", "2", "10")):
        layouts.save_depth(files / "d" / f"{name}.png", shot)
    layouts.write_film(files / "film.mp4")
    outcome = cli("upsample", "d", "film.mp4", "-o", "out", *FAST, "--json")
    assert [Path(report["out"]).stem for report in outcome.json] == ["1", "2", "10"]
    check_results(outcome.json, "mm", ".png")


def test_clouds_take_the_camera_of_the_recording(cli: Cli, files: Path) -> None:
    layouts.write_stray_scanner(files / "rec")
    outcome = cli("upsample", "rec", "-o", "out", "--cloud", "clouds", *FAST)
    assert outcome.code == 0, outcome.err
    assert "60 degree" not in outcome.err
    point = read_ply("clouds/000000.ply").points[0]
    np.testing.assert_allclose(point[0], point[2] * (0.5 - 16) / 30, rtol=1e-5)


def test_clouds_of_a_bag_are_not_bent_by_the_lens(cli: Cli, files: Path) -> None:
    pytest.importorskip("rosbags")
    coefficients = (-0.2, 0.05, 0.001, -0.001, 0.0)
    layouts.write_bag(files / "a", lens=("plumb_bob", coefficients))
    outcome = cli("upsample", "a", "-o", "out", "--cloud", "clouds", *FAST)
    assert outcome.code == 0, outcome.err
    rays = Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24, Distortion("plumb_bob", coefficients)).rays()
    points = read_ply(next(Path("clouds").iterdir())).points
    np.testing.assert_allclose(points, rays.reshape(-1, 3) * points[:, 2:], rtol=1e-4, atol=1e-6)


def test_one_broken_shot_does_not_stop_the_others(cli: Cli, files: Path) -> None:
    layouts.write_stray_scanner(files / "rec")
    (files / "rec" / "depth" / "000001.png").write_bytes(b"")
    outcome = cli("upsample", "rec", "-o", "out", *FAST)
    assert outcome.code == 1
    assert outcome.lines[-1] == f"primaldepth: 1 of 3 failed: {Path('rec/depth/000001.png')}"


@pytest.mark.parametrize(
    ("name", "found"), [("folder", "an empty folder"), ("broken.json", "a file called broken.json")]
)
def test_without_guide_only_recordings_will_do(cli: Cli, files: Path, name: str, found: str) -> None:
    outcome = cli("upsample", name, "-o", "out", *FAST)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert f"Missing argument 'GUIDE': {name}: not a recording; found {found}; expected" in outcome.err


def test_a_depth_map_without_image_asks_for_it(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "-o", "out.png", *FAST)
    said = "primaldepth: Missing argument 'GUIDE': depth.png has no image; give one of the same view after it"
    assert (outcome.code, outcome.lines) == (2, [said])


def test_live_asks_for_images_by_the_name_of_its_argument(cli: Cli, files: Path) -> None:
    outcome = cli("live", "depth.png", "--no-page")
    assert outcome.code == 2
    assert "Missing argument 'IMAGES': depth.png has no image" in outcome.err


@pytest.mark.parametrize("matrix", ["30 0 15.5 0 30 11.5 0 0 1", "[[30, 0, 15.5], [0, 30, 11.5], [0, 0, 1]]"])
def test_live_takes_the_matrix_of_a_camera(cli: Cli, files: Path, matrix: str) -> None:
    Path("camera.txt").write_text(matrix)
    options = ("--no-page", "--every", "--cloud", "clouds", "--cameras", "camera.txt", *FAST)
    outcome = cli("live", "depth.png", "guide.png", "--frames", 1, *options)
    assert outcome.code == 0, outcome.err
    point = read_ply(next(Path("clouds").iterdir())).points[0]
    np.testing.assert_allclose(point[:2] / point[2], [(0.5 - 16) / 30, (0.5 - 12) / 30], rtol=1e-5)


def test_a_recording_brings_its_own_confidence(cli: Cli, files: Path) -> None:
    layouts.write_tum(files / "rec")
    outcome = cli("upsample", "rec", "-o", "out", "--confidence", "confidence.png", *FAST)
    assert outcome.code == 2
    assert "brings its own" in outcome.err
