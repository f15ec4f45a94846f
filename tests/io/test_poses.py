"""Poses of recordings: each layout's own convention leads to the same world, y down and z forward."""

import json

import numpy as np
import pytest

import recording_files
from primaldepth.core.errors import FileFormatError
from primaldepth.geometry.poses import Pose
from primaldepth.io.sequences import read_recording

ANGLE = 0.4  # the camera looks to the right, from 2 m to the right, 0.5 m up, 1 m back
C, S = np.cos(ANGLE), np.sin(ANGLE)
EXPECTED = Pose.of([[C, 0, S], [0, 1, 0], [-S, 0, C]], [2.0, -0.5, -1.0])
ARKIT = [[C, 0, -S, 2.0], [0, 1, 0, 0.5], [S, 0, C, 1.0], [0, 0, 0, 1]]  # y up: a turn by -ANGLE
TURN_Y_UP = [0.0, -np.sin(ANGLE / 2), 0.0, np.cos(ANGLE / 2)]  # x, y, z, w


def polycam(root):
    recording_files.write_polycam(root)
    for file in (root / "keyframes/corrected_cameras").glob("*.json"):
        pose = {f"t_{row}{column}": ARKIT[row][column] for row in range(3) for column in range(4)}
        file.write_text(json.dumps(json.loads(file.read_text()) | pose))


def scanner_app(root):
    recording_files.write_scanner_app(root)
    for file in root.glob("frame_*.json"):
        values = {"cameraPoseARFrame": np.ravel(ARKIT).tolist()}
        file.write_text(json.dumps(json.loads(file.read_text()) | values))


def record3d(root):
    recording_files.write_record3d(root)
    file = root / "metadata.json"
    poses = [[*TURN_Y_UP, 2.0, 0.5, 1.0]] * recording_files.COUNT
    file.write_text(json.dumps(json.loads(file.read_text()) | {"poses": poses}))


def stray_scanner(root):
    """Its cameras have y down, z forward, its world is ARKit's: each turn follows half a turn about x."""
    recording_files.write_stray_scanner(root)
    x, y, z, w = TURN_Y_UP
    turn = [w, z, -y, -x]  # times the quaternion (1, 0, 0, 0)
    rows = [f"{time}, {time:06d}, 2.0, 0.5, 1.0, {', '.join(map(str, turn))}, 30.0" for time in range(3)]
    head = "timestamp, frame, x, y, z, qx, qy, qz, qw, fx"
    (root / "odometry.csv").write_text("\n".join([head, *rows]))


def tum(root):
    """Its cameras have y down, z forward, its world z up, y forward: upright needs a turn by -90 degrees."""
    recording_files.write_tum(root)
    half = np.sqrt(0.5)
    upright = np.array([-half, 0.0, 0.0, half])
    turn = np.array([0.0, 0.0, -np.sin(ANGLE / 2), np.cos(ANGLE / 2)])  # about z, to the right
    x, y, z, w = product(turn, upright)
    rows = [f"{100 + shot / 30 + 0.004:.6f} 2.0 -1.0 0.5 {x} {y} {z} {w}" for shot in range(3)]
    (root / "groundtruth.txt").write_text("\n".join(["# timestamp tx ty tz qx qy qz qw", *rows]))


def seven_scenes(root):
    recording_files.write_seven_scenes(root)
    for file in root.glob("*.pose.txt"):
        file.write_text("\n".join(" ".join(map(str, row)) for row in EXPECTED.matrix.tolist()))


def product(p, q):
    """Of quaternions x, y, z, w."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return [*vector, p[3] * q[3] - p[:3] @ q[:3]]


LAYOUTS = {
    "Polycam": (polycam, "keyframes/corrected_cameras/1000.json"),
    "3D Scanner App": (scanner_app, "frame_00000.json"),
    "Record3D": (record3d, "metadata.json"),
    "StrayScanner": (stray_scanner, "odometry.csv"),
    "TUM RGB-D": (tum, "groundtruth.txt"),
    "depth and images in one folder": (seven_scenes, "frame-000000.pose.txt"),
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_every_layout_leads_to_the_same_pose(tmp_path, layout):
    LAYOUTS[layout][0](tmp_path)
    recording = read_recording(tmp_path)
    assert recording.layout == layout
    for shot in recording:
        pose = shot.read().pose
        assert np.allclose(pose.matrix, EXPECTED.matrix, atol=1e-6)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_numbers_that_are_no_pose_are_told_with_their_file(tmp_path, layout):
    write, name = LAYOUTS[layout]
    write(tmp_path)
    file = tmp_path / name
    text = file.read_text()
    for number in ("0.5", "-0.5"):  # the height, in all of them
        text = text.replace(number, "Infinity" if file.suffix == ".json" else "inf")
    file.write_text(text)
    with pytest.raises(FileFormatError, match=file.name):
        next(iter(read_recording(tmp_path))).read()


def test_a_matrix_that_is_no_rotation_is_told(tmp_path):
    seven_scenes(tmp_path)
    (tmp_path / "frame-000000.pose.txt").write_text("2 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")
    with pytest.raises(FileFormatError, match=r"frame-000000.pose.txt: .* is not a rotation"):
        next(iter(read_recording(tmp_path))).read()


def test_an_odometry_without_its_names_is_told(tmp_path):
    stray_scanner(tmp_path)
    (tmp_path / "odometry.csv").write_text("")
    with pytest.raises(FileFormatError, match="does not name frame"):
        read_recording(tmp_path)


def test_without_a_list_of_poses_there_is_none(tmp_path):
    recording_files.write_tum(tmp_path)
    assert next(iter(read_recording(tmp_path))).read().pose is None


def test_points_go_to_the_world_and_back():
    points = np.random.default_rng(0).normal(size=(5, 3))
    world = EXPECTED.to_world(points)
    assert np.allclose(np.c_[points, np.ones(5)] @ EXPECTED.matrix.T, np.c_[world, np.ones(5)])
    assert np.allclose(EXPECTED.to_camera(world), points)
    assert np.allclose(EXPECTED.opengl, ARKIT)
