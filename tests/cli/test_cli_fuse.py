"""`primaldepth fuse`: from a phone scan to a mesh, and what is said where there is none."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import recording_files
from primaldepth.io.pointcloud import read_ply
from primaldepth.live.simulated import off_surface

MAKE_SCAN = Path(__file__).parents[2] / "examples" / "make_scan.py"
COARSE = ("--voxel", "0.05")


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    """Four frames of the simulated room."""
    root = tmp_path_factory.mktemp("scans") / "scan"
    runpy.run_path(str(MAKE_SCAN))["write_scan"](root, 4)
    return root


def test_from_phone_frames_to_mesh_cloud_and_film(cli, scan, tmp_path):
    fine, sigma = tmp_path / "fine", tmp_path / "sigma"
    assert cli("upsample", scan, "-o", fine, "--sigma", sigma, "--method", "pdn-any-small").code == 0
    files = {"mesh": tmp_path / "room.glb", "cloud": tmp_path / "room.ply", "turntable": tmp_path / "t.gif"}
    named = [word for name, path in files.items() for word in (f"--{name}", path)]
    outcome = cli("fuse", scan, fine, "--sigma", sigma, *named, *COARSE, "--json")
    assert outcome.code == 0
    assert (outcome.json["frames"], outcome.json["skipped"]) == (4, 0)
    points = read_ply(files["cloud"]).points
    assert len(points) == outcome.json["points"] > 1000
    assert np.median(off_surface(points)) < 0.02
    assert files["mesh"].read_bytes()[:4] == b"glTF"
    assert files["turntable"].read_bytes()[:3] == b"GIF"


def test_depth_as_it_was_recorded_is_fused_too(cli, scan, tmp_path):
    assert cli("fuse", scan, "--cloud", tmp_path / "c.ply", *COARSE).code == 0
    assert np.median(off_surface(read_ply(tmp_path / "c.ply").points)) < 0.03


def test_folders_for_other_programs(cli, scan, tmp_path):
    ns, colmap = tmp_path / "ns", tmp_path / "colmap"
    assert cli("fuse", scan, "--nerfstudio", ns, "--colmap", colmap, *COARSE).code == 0
    frames = json.loads((ns / "transforms.json").read_text())["frames"]
    assert [each["file_path"] for each in frames] == [f"images/{index:06d}.jpg" for index in range(4)]
    assert len(list((colmap / "depths").glob("*.png"))) == 4
    listed = (colmap / "sparse/0/images.txt").read_text().splitlines()[1::2]
    assert [line.split()[-1] for line in listed] == [f"{index:06d}.jpg" for index in range(4)]


def test_frames_of_a_film_are_written_as_images(cli, tmp_path):
    pytest.importorskip("av", reason="the extra 'video' reads films")
    recording_files.write_stray_scanner(tmp_path / "scan", film=True)
    rows = [f"{index}, {index:06d}, 0, 0, 0, 0, 0, 0, 1" for index in range(recording_files.COUNT)]
    (tmp_path / "scan/odometry.csv").write_text(
        "\n".join(["timestamp, frame, x, y, z, qx, qy, qz, qw", *rows])
    )
    assert cli("fuse", tmp_path / "scan", "--nerfstudio", tmp_path / "ns", *COARSE).code == 0
    assert len(list((tmp_path / "ns/images").glob("*.jpg"))) == recording_files.COUNT


def test_frames_without_result_are_counted(cli, scan, tmp_path):
    fine = tmp_path / "fine"
    fine.mkdir()
    (fine / "000002.png").write_bytes((scan / "depth" / "000002.png").read_bytes())
    outcome = cli("fuse", scan, fine, "--mesh", tmp_path / "m.ply", *COARSE)
    assert outcome.code == 0
    assert "1 frames, 3 without pose or depth left out" in outcome.err


def test_what_is_far_can_be_left_out(cli, scan, tmp_path):
    out = tmp_path / "near.ply"
    assert cli("fuse", scan, "--cloud", out, "--max-depth", 2.2, *COARSE).code == 0
    assert (read_ply(out).points[:, 2] < 3.5).all()  # the wall at z = 4 is gone


def test_a_recording_without_poses_is_an_error(cli, tmp_path):
    recording_files.write_record3d(tmp_path / "scan")
    outcome = cli("fuse", tmp_path / "scan", "--mesh", tmp_path / "m.glb")
    assert outcome.code == 2
    assert "no poses in this recording (Record3D); they are read from Polycam" in outcome.err


def test_a_recording_without_camera_is_an_error_that_names_the_option(cli, tmp_path):
    recording_files.write_seven_scenes(tmp_path / "scan")
    outcome = cli("fuse", tmp_path / "scan", "--mesh", tmp_path / "m.glb")
    assert outcome.code == 2
    assert "does not say its camera; give --cameras" in outcome.err


def test_results_that_are_not_there_are_an_error(cli, scan, tmp_path):
    (tmp_path / "empty").mkdir()
    outcome = cli("fuse", scan, tmp_path / "empty", "--mesh", tmp_path / "m.glb")
    assert (outcome.code, "no depth for any shot" in outcome.err) == (2, True)
    assert cli("fuse", scan, tmp_path / "none", "--mesh", tmp_path / "m.glb").code == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "nothing is asked for; give --mesh or --cloud"),
        (("--mesh", "m.stl"), "use .glb or .ply"),
        (("--mesh", "m.glb", "--voxel", "0"), "give a positive number"),
        (("--nerfstudio", MAKE_SCAN), "is a file"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(cli, scan, options, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = cli("fuse", scan, *options)
    assert (outcome.code, told in outcome.err) == (2, True)
    assert not list(tmp_path.iterdir())
