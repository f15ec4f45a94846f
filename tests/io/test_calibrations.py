"""The camera file with two cameras, and the exports of other programs that become one."""

import json
import math
import os

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.motion import rotation
from primaldepth.geometry.rig import Rig
from primaldepth.io.cameras import read_cameras, write_cameras
from primaldepth.io.cameras.azure_kinect import read_azure_kinect
from primaldepth.io.cameras.realsense import read_realsense
from primaldepth.io.cameras.ros import read_camera_info, read_ros

LENS = Distortion("rational", (0.58, -2.49, 0.0007, -0.0002, 1.36, 0.46, -2.34, 1.3))
TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
CAMERAS = Cameras(
    Intrinsics(600.0, 601.0, 320.5, 240.5, 640, 480, LENS),
    Intrinsics(200.0, 200.0, 80.0, 60.0, 160, 120, Distortion("fisheye", (0.1, 0.0, 0.0, 0.01))),
    TURN,
    (0.05, -0.01, 0.002),
)


def save(path, values):
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def plain(tmp_path):
    write_cameras(tmp_path / "plain.json", CAMERAS)
    return json.loads((tmp_path / "plain.json").read_text())


def test_yaml_of_opencv_is_named(tmp_path):
    text = "%YAML:1.0\n---\ncamera_matrix: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
    with pytest.raises(FileFormatError, match=r"OpenCV's FileStorage.*write its numbers as JSON"):
        read_cameras(save(tmp_path / "rig.yml", text), (640, 480))


def test_a_rig_survives_its_file(tmp_path):
    write_cameras(tmp_path / "rig.json", CAMERAS)
    assert read_cameras(tmp_path / "rig.json") == CAMERAS
    rig = Rig.of(CAMERAS)
    assert (rig.source, rig.target) == (CAMERAS.depth, CAMERAS.guide)
    assert (rig.rotation, rig.translation) == (CAMERAS.rotation, CAMERAS.translation)


def test_millimetres_and_integer_centres_are_converted(tmp_path):
    values = plain(tmp_path) | {"units": "mm", "pixel_centres": "integer"}
    values["depth_to_guide"]["translation"] = [50.0, -10.0, 2.0]
    values["guide"]["distortion"] = {"model": "none"}
    found = read_cameras(save(tmp_path / "rig.json", values))
    assert found.translation == pytest.approx((0.05, -0.01, 0.002))
    assert (found.guide.cx, found.guide.cy, found.depth.cx) == (321.0, 241.0, 80.5)
    assert found.guide.distortion is None


def changed(values, path, value):
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["depth_to_guide"], None, "found 'depth' without 'depth_to_guide'"),
        (["depth", "fx"], None, "depth: 'fx'"),
        (["depth", "focal"], 3.0, "depth: unknown key 'focal'"),
        (["guide", "distortion", "model"], "brown", "guide: distortion: model 'brown', expected"),
        (
            ["guide", "distortion", "coefficients"],
            [0.1],
            "guide: distortion: 1 coefficients, but 'rational' has 8",
        ),
        (["guide", "distortion"], {"model": "none", "coefficients": [0.1]}, "'none' with coefficients"),
        (
            ["depth_to_guide", "rotation"],
            [[1, 0, 0], [0, 1, 0], [0, 0, 2]],
            "depth_to_guide: .*not a rotation",
        ),
        (["depth_to_guide", "rotation"], [[1, 0, 0], [0, 1, 0]], "depth_to_guide: 'rotation'"),
        (["depth_to_guide", "translation"], [1, 2], "depth_to_guide: 'translation'"),
        (["units"], "inch", "'units'"),
        (["pixel_centres"], "corner", "'pixel_centres'"),
    ],
)
def test_wrong_rigs_name_file_and_key(tmp_path, path, value, message):
    values = changed(plain(tmp_path), path, value)
    with pytest.raises(InputError, match=message) as caught:
        read_cameras(save(tmp_path / "rig.json", values))
    assert "rig.json" in str(caught.value)


STREAM = {"width": 640, "height": 480, "ppx": 321.2, "ppy": 239.1, "fx": 385.0, "fy": 386.0}
REALSENSE = {
    "depth": STREAM | {"model": "brown_conrady", "coeffs": [0.0] * 5},
    "color": STREAM | {"model": "inverse_brown_conrady", "coeffs": [-0.055, 0.063, 0.001, -0.0005, -0.02]},
    "extrinsics": {"rotation": [0, 1, 0, -1, 0, 0, 0, 0, 1], "translation": [0.015, 0.0001, 0.0004]},
}


def test_realsense_json(tmp_path):
    found = read_realsense(save(tmp_path / "rs.json", REALSENSE))
    assert found.depth == Intrinsics(385.0, 386.0, 321.7, 239.6, 640, 480)
    assert found.guide.distortion == Distortion("modified_plumb_bob", (-0.055, 0.063, 0.001, -0.0005, -0.02))
    assert found.rotation == TURN  # column by column in the file
    assert found.translation == (0.015, 0.0001, 0.0004)


def _listed(stream, kind, size, centre, focal, model, coefficients):
    """A stream as `rs-enumerate-devices -c` lists it."""
    listed = "  \t".join(map(str, coefficients))
    return f""" Intrinsic of "{stream}" / {size[0]}x{size[1]} / {{{{{kind}}}}}
  Width:      \t{size[0]}
  Height:     \t{size[1]}
  PPX:        \t{centre[0]}
  PPY:        \t{centre[1]}
  Fx:         \t{focal[0]}
  Fy:         \t{focal[1]}
  Distortion: \t{model}
  Coeffs:     \t{listed}
  FOV (deg):  \t79.4 x 63.7
"""


DISTORTED = ("Inverse Brown Conrady", (-0.055, 0.063, 0.001, -0.0005, "-2e-02"))
TEXT = f"""Device info:
    Name                          : \tSome camera

Intrinsic Parameters:

{_listed("Depth", "Z16", (640, 480), (321.2, 239.1), (385, 386), "Brown Conrady", [0] * 5)}
{_listed("Color", "RGB8/BGR8", (640, 480), (321.2, 239.1), (385, 386), *DISTORTED)}
{_listed("Color", "RGB8", (320, 240), (160.6, 119.55), (192.5, 193), "Inverse Brown Conrady", [0] * 5)}
Extrinsic Parameters:
Extrinsic from "Depth"\t  To\t  "Depth" :
 Rotation Matrix:
   1   0   0
   0   1   0
   0   0   1

 Translation Vector: 0  0  0

Extrinsic from "Depth"\t  To\t  "Color" :
 Rotation Matrix:
   0  -1   0
   1   0   0
   0   0   1

 Translation Vector: 0.015  0.0001  {{last}}

"""


def test_realsense_text_says_the_same_as_its_json(tmp_path):
    path = save(tmp_path / "rs.txt", TEXT.format(last="0.0004"))
    expected = read_realsense(save(tmp_path / "rs.json", REALSENSE))
    assert read_realsense(path, guide_size=(640, 480)) == expected
    assert read_realsense(path, guide_size=(320, 240)).guide == Intrinsics(
        192.5, 193, 161.1, 120.05, 320, 240
    )
    with pytest.raises(FileFormatError, match=r"rs\.txt: color streams: 640x480, 320x240; .*guide_size"):
        read_realsense(path)
    with pytest.raises(FileFormatError, match=r"depth streams: 640x480 without 8x6; .*depth_size"):
        read_realsense(path, depth_size=(8, 6), guide_size=(640, 480))
    for broken, message in (
        (TEXT.format(last=""), "2 numbers in a row, expected 3"),
        (TEXT[:1000], "no .Extrinsic from"),
    ):
        with pytest.raises(FileFormatError, match=message):
            read_realsense(save(path, broken), guide_size=(640, 480))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["color"], None, "found the keys depth, extrinsics; expected 'color or colour'"),
        (["extrinsics"], None, "expected 'extrinsics or depth_to_color'"),
        (["depth", "ppx"], None, "depth: .*expected 'ppx'"),
        (["depth", "fx"], "wide", "depth: 'fx' is 'wide', expected a finite number"),
        (["depth", "width"], 3.5, "depth: 'width' is 3.5, expected a whole number"),
        (["color", "model"], "ftheta", "color: model 'ftheta', expected one of none, brown_conrady"),
        (["color", "coeffs"], [0.1, 0.2], "color: .*2 coefficients"),
        (["extrinsics", "rotation"], [1, 0], "'rotation' is .1, 0., expected 9 numbers"),
        (["extrinsics", "rotation"], [1] * 9, "not a rotation"),
        (["depth"], 3, "'depth' is 3, expected an object"),
    ],
)
def test_wrong_realsense_files_name_file_and_key(tmp_path, path, value, message):
    values = changed(json.loads(json.dumps(REALSENSE)), path, value)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_realsense(save(tmp_path / "rs.json", values))
    assert "rs.json" in str(caught.value)


BROWN = "CALIBRATION_LensDistortionModelBrownConrady"


def kinect_camera(location, parameters, rotation_rows, translation):
    return {
        "Intrinsics": {"ModelParameterCount": 14, "ModelParameters": parameters, "ModelType": BROWN},
        "Location": f"CALIBRATION_CameraLocation{location}",
        "Rt": {"Rotation": rotation_rows, "Translation": translation},
    }


def kinect():
    k = [0.5, -2.5, 1.4, 0.4, -2.3, 1.3]
    color = kinect_camera(
        "PV0",
        [0.5, 0.5, 0.48, 0.64, *k, 0, 0, -0.0002, 0.0007],
        [0, -1, 0, 1, 0, 0, 0, 0, 1],
        [-0.032, 0, 0.004],
    )
    depth = kinect_camera("D0", [0.51, 0.49, 0.5, 0.5, *[0] * 10], [1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 0, 0])
    return {"CalibrationInformation": {"Cameras": [depth, color]}}


def test_azure_kinect_is_cropped_and_binned_by_its_modes(tmp_path):
    path = save(tmp_path / "kinect.json", kinect())
    found = read_azure_kinect(path)
    depth = found.depth
    assert (depth.fx, depth.fy, depth.width, depth.height) == (512.0, 512.0, 640, 576)
    assert (depth.cx, depth.cy) == pytest.approx((0.51 * 1024 - 192, 0.49 * 1024 - 180))
    assert (found.guide.fx, found.guide.fy) == (0.48 * 1280, 0.64 * 960)
    assert (found.guide.cx, found.guide.cy) == (640.0, 360.0)
    expected = (0.5, -2.5, 0.0007, -0.0002, 1.4, 0.4, -2.3, 1.3)  # OpenCV's order: p1 and p2 after k2
    assert found.guide.distortion == Distortion("rational", expected)
    assert (found.rotation, found.translation) == (TURN, (-0.032, 0.0, 0.004))
    binned = read_azure_kinect(path, depth_size=(320, 288), guide_size=(4096, 3072))
    np.testing.assert_allclose(binned.depth.rays(), found.depth.scaled_to(320, 288).rays(), atol=1e-12)
    assert binned.guide.cy == 1536.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["CalibrationInformation"], None, "expected 'CalibrationInformation'"),
        (["CalibrationInformation", "Cameras"], 3, "'Cameras' is not a list"),
        (["CalibrationInformation", "Cameras"], [], "expected 'CALIBRATION_CameraLocationD0'"),
        (["CalibrationInformation", "Cameras", 1, "Rt"], None, "PV0: .*expected 'Rt'"),
        (
            ["CalibrationInformation", "Cameras", 0, "Intrinsics", "ModelType"],
            "Theta",
            "D0: ModelType 'Theta'",
        ),
        (
            ["CalibrationInformation", "Cameras", 0, "Intrinsics", "ModelParameters"],
            [1],
            "expected 14 numbers",
        ),
        (
            ["CalibrationInformation", "Cameras", 0, "Intrinsics", "ModelParameters", 10],
            0.1,
            "not one of OpenCV's",
        ),
    ],
)
def test_wrong_kinect_files_name_file_and_key(tmp_path, path, value, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_azure_kinect(save(tmp_path / "kinect.json", changed(kinect(), path, value)))
    assert "kinect.json" in str(caught.value)


def test_a_size_that_is_no_mode_is_named(tmp_path):
    with pytest.raises(InputError, match="no mode has images of 800x600; expected one of 1280x720"):
        read_azure_kinect(save(tmp_path / "kinect.json", kinect()), guide_size=(800, 600))


INFO = {
    "width": 640,
    "height": 480,
    "distortion_model": "plumb_bob",
    "d": [0.1, -0.2, 0.001, 0.002, 0.0],
    "k": [600.0, 0.0, 319.5, 0.0, 601.0, 239.5, 0.0, 0.0, 1.0],
}
CALIBRATION = f"""image_width: 640
image_height: 480
camera_name: front
camera_matrix:
  rows: 3
  cols: 3
  data: {INFO["k"]}
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: {INFO["d"]}
"""
MOTION = {"translation": {"x": 0.05, "y": 0.0, "z": 0.01}, "rotation": {"x": 0, "y": 0, "z": 1, "w": 0}}


def test_ros_messages_and_calibration_files_are_the_same_camera(tmp_path):
    lens = Distortion("plumb_bob", (0.1, -0.2, 0.001, 0.002, 0.0))
    expected = Intrinsics(600.0, 601.0, 320.0, 240.0, 640, 480, lens)
    assert read_camera_info(save(tmp_path / "info.json", INFO)) == expected
    pytest.importorskip("yaml")
    assert read_camera_info(save(tmp_path / "info.yaml", CALIBRATION)) == expected
    echoed = CALIBRATION + "---\n"  # as `topic echo` ends a message
    assert read_camera_info(save(tmp_path / "echo.yaml", echoed)) == expected


def test_an_image_may_be_a_binned_region_of_the_sensor(tmp_path):
    """The ray through a pixel of the image is the one through the four of the sensor it was made of."""
    roi = {"x_offset": 100, "y_offset": 40, "width": 400, "height": 300, "do_rectify": False}
    info = INFO | {"roi": roi, "binning_x": 2, "binning_y": 2}
    image = read_camera_info(save(tmp_path / "part.json", info))
    whole = read_camera_info(save(tmp_path / "whole.json", INFO))
    assert (image.width, image.height, image.distortion) == (200, 150, whole.distortion)
    for x, y in ((0.0, 0.0), (13.5, 140.0)):
        assert (x - image.cx) / image.fx == pytest.approx((100 + 2 * x - whole.cx) / whole.fx)
        assert (y - image.cy) / image.fy == pytest.approx((40 + 2 * y - whole.cy) / whole.fy)
    nothing = {"roi": dict.fromkeys(roi, 0), "binning_x": 0, "binning_y": 0}
    assert read_camera_info(save(tmp_path / "zero.json", INFO | nothing)) == whole


def test_a_camera_info_is_a_camera_file(tmp_path):
    for name, text in (("info.json", INFO), ("info.yaml", CALIBRATION)):
        if name.endswith("yaml"):
            pytest.importorskip("yaml")
        path = save(tmp_path / name, text)
        assert read_cameras(path, (640, 480)) == Cameras(read_camera_info(path))


def test_a_camera_info_is_told_by_its_content(tmp_path):
    """Uploads have no name; a comment in a matrix makes it no camera_info."""
    pytest.importorskip("yaml")
    assert read_cameras(save(tmp_path / "cameras", CALIBRATION), (640, 480)) == Cameras(
        read_camera_info(save(tmp_path / "info.yaml", CALIBRATION))
    )
    matrix = "# distortion_model: plumb_bob\n600 0 319.5\n0 601 239.5\n0 0 1\n"
    assert read_cameras(save(tmp_path / "matrix", matrix), (640, 480)).guide.distortion is None


def test_of_a_long_recording_the_first_message_is_read(tmp_path):
    pytest.importorskip("yaml")
    once = read_camera_info(save(tmp_path / "info.yaml", CALIBRATION))
    assert read_camera_info(save(tmp_path / "many.yaml", 1000 * (CALIBRATION + "---\n"))) == once


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [1]\nb: [*a]\n", "aliases are not taken"),
        ("a: " + "x" * 2**16, "more than 65536 characters of YAML"),
        ("a: " + "[" * 5000, "not to be read as YAML .nested deeper than 32"),
        ("width: !!int ''", "not to be read as YAML"),
        ("width: 0x" + "f" * 9000, "not to be read as YAML"),
        ("calibrated: 2020-01-01", "found the keys calibrated; expected 'width"),
        ("height: 1\nwidth: " + "9" * 400, "a number of more than 100 characters"),
        ("height: 1\nwidth: " + "9" * 5000, "not to be read as YAML"),
        ("height: 1\nwidth: .nan", "NaN is no finite number"),
        ("width: 1\nwidth: 2", "a key occurs twice"),
        ("- " * 9000 + "1\na: 1", "not to be read as YAML"),
    ],
)
def test_yaml_that_is_no_camera_is_refused(tmp_path, text, message):
    pytest.importorskip("yaml")
    with pytest.raises(FileFormatError, match=rf"cameras: .*{message}"):
        read_cameras(save(tmp_path / "cameras", text), (640, 480))


def test_an_empty_yaml_file_is_called_so(tmp_path):
    pytest.importorskip("yaml")
    with pytest.raises(FileFormatError, match=r"info\.yaml: holds no values"):
        read_cameras(save(tmp_path / "info.yaml", "# nothing\n"), (640, 480))


def test_of_a_long_word_where_numbers_are_expected_the_beginning_is_told(tmp_path):
    with pytest.raises(FileFormatError) as told:
        read_cameras(save(tmp_path / "matrix", 10_000 * "a"), (640, 480))
    assert "expected the nine numbers" in str(told.value)
    assert len(str(told.value)) < 600


def test_endless_brackets_are_refused(tmp_path):
    path = save(tmp_path / "info.json", '{"distortion_model": ' + 100_000 * "[")
    with pytest.raises(FileFormatError, match=r"info\.json: not a JSON calibration .nested deeper"):
        read_cameras(path)


def test_ros_rig(tmp_path):
    guide = save(tmp_path / "guide.json", INFO)
    depth = save(tmp_path / "depth.json", INFO | {"d": [0.0] * 4, "distortion_model": "equidistant"})
    assert read_ros(guide) == Cameras(read_camera_info(guide))
    for motion in (MOTION, {"header": {}, "transform": MOTION}):
        found = read_ros(guide, depth, save(tmp_path / "tf.json", motion))
        assert found.depth.distortion is None
        np.testing.assert_allclose(found.rotation, np.diag([-1, -1, 1]), atol=1e-12)
        assert found.translation == (0.05, 0.0, 0.01)
    with pytest.raises(InputError, match="needs its transform"):
        read_ros(guide, depth)


def test_quaternions_turn_as_they_should():
    half = math.radians(30) / 2
    turned = rotation([0.0, math.sin(half), 0.0, math.cos(half)])
    c, s = math.cos(math.radians(30)), math.sin(math.radians(30))
    np.testing.assert_allclose(turned, [[c, 0, s], [0, 1, 0], [-s, 0, c]], atol=1e-12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d": None}, "expected 'd or D or distortion_coefficients'"),
        ({"k": [1.0]}, "'k' is .1.0., expected 9 numbers"),
        ({"k": "none"}, "'k' is 'none', expected 9 numbers"),
        ({"distortion_model": "omni"}, "distortion_model 'omni', expected plumb_bob"),
        ({"width": "640"}, "'width' is '640'"),
        ({"d": [0.1] * 3}, "3 coefficients"),
        ({"roi": 3}, "'roi' is 3, expected an object"),
        ({"roi": {"width": 0.5}}, "roi: 'width' is 0.5, expected a whole number"),
        ({"binning_x": -1}, "is below 0"),
        (
            {"roi": {"x_offset": 400, "width": 400, "height": 300}},
            r"roi \[400, 0, 400, 300\] is no part of 640x480",
        ),
        ({"roi": {"x_offset": 20, "y_offset": 10}}, "is no part of 640x480"),
        ({"k": [0.0] * 9}, "K is all 0, which means that this camera was not calibrated"),
        ({"binning_x": 1000}, "width"),
    ],
)
def test_wrong_camera_infos_name_file_and_key(tmp_path, values, message):
    changed_info = {key: value for key, value in (INFO | values).items() if value is not None}
    with pytest.raises(FileFormatError, match=message) as caught:
        read_camera_info(save(tmp_path / "info.json", changed_info))
    assert str(caught.value).count("info.json") == 1
    with pytest.raises(FileFormatError, match=message) as caught:
        read_cameras(tmp_path / "info.json")
    assert str(caught.value).count("info.json") == 1


@pytest.mark.parametrize(
    ("text", "message"), [("{1", "not a JSON"), ("[1]", "found a list"), (None, "no such file")]
)
def test_files_that_are_no_calibration_are_refused(tmp_path, text, message):
    path = tmp_path / "broken.json"
    if text is not None:
        path.write_text(text)
    for read in (read_realsense, read_azure_kinect, read_camera_info):
        with pytest.raises(FileFormatError, match=message) as caught:
            read(path)
        assert "broken.json" in str(caught.value)


def test_a_transform_that_is_no_rotation_is_refused(tmp_path):
    info = save(tmp_path / "info.json", INFO)
    motion = MOTION | {"rotation": {"x": 1, "y": 1, "z": 0, "w": 0}}
    with pytest.raises(FileFormatError, match=r"tf\.json: rotation .* unit quaternion"):
        read_ros(info, info, save(tmp_path / "tf.json", motion))
    with pytest.raises(FileFormatError, match=r"tf\.json: translation: .*expected 'z'"):
        read_ros(info, info, save(tmp_path / "tf.json", MOTION | {"translation": {"x": 0, "y": 1}}))


def test_calibrations_larger_than_any_camera_are_refused(tmp_path):
    """By their size: 50 MB of JSON or numbers would become more than a gigabyte of objects."""
    path = tmp_path / "cameras.json"
    with path.open("wb") as file:
        file.write(b'{"guide": [')
        file.truncate(50 * 10**6)
    for read in (read_realsense, read_azure_kinect, read_camera_info, read_cameras):
        with pytest.raises(FileFormatError, match=r"cameras\.json: has 50000000 bytes, more than the limit"):
            read(path)
    path.write_text('{"guide": [' + "0," * 600_000 + "0]}")
    with pytest.raises(FileFormatError, match=r"not a readable JSON camera file \(1200\d+ bytes, more than"):
        read_cameras(path)
    path.write_text("1 " * 600_000)
    with pytest.raises(FileFormatError, match="has 1200000 bytes, more than the limit of 65536"):
        read_cameras(path, (640, 480))


def test_pipes_in_place_of_a_calibration_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (read_realsense, read_azure_kinect, read_camera_info, read_cameras):
        with pytest.raises(InputError, match="pipe: is not a regular file"):
            read(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is not a regular file"):
        read_cameras(tmp_path / "pipe", (640, 480))


@pytest.mark.parametrize(
    "change",
    [
        ("640x480", "9" * 5000 + "x480"),
        ("Translation Vector:", 'Extrinsic from "Depth"  To  "Color" :\n Rotation Matrix:' * 20_000),
        ("385", "1" * 100_000 + "x"),
        ("385", "1e999"),
    ],
)
def test_realsense_texts_that_take_long_to_read(tmp_path, change):
    """Each would take hours, or ends in an error of Python, where it is not bounded."""
    good = TEXT.format(last="0.0004")
    text = good.replace(*change)
    assert text != good
    with pytest.raises(FileFormatError, match=r"rs\.txt: "):
        read_realsense(save(tmp_path / "rs.txt", text), guide_size=(640, 480))
