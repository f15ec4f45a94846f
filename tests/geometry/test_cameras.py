import json
import math

import numpy as np
import pytest

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io.cameras import read_cameras, read_matrix, write_cameras

CAMERA = Intrinsics(500.0, 520.0, 310.0, 250.0, 640, 480)


def test_rays_go_through_pixel_centres_at_half_integers():
    camera = Intrinsics(2.0, 4.0, 1.5, 1.0, 3, 2)
    rays = camera.rays()
    assert rays.shape == (2, 3, 3)
    np.testing.assert_array_equal(rays[0, 1], [0.0, -0.125, 1.0])
    np.testing.assert_array_equal(rays[1, 2], [0.5, 0.125, 1.0])


def test_scaled_camera_sees_the_same_field_of_view():
    small = CAMERA.scaled_to(80, 60)
    assert (small.width, small.height) == (80, 60)
    for scale, camera in ((1.0, CAMERA), (0.125, small)):
        assert (640 * scale - camera.cx) / camera.fx == pytest.approx((640 - CAMERA.cx) / CAMERA.fx)
        assert (0 - camera.cy) / camera.fy == pytest.approx((0 - CAMERA.cy) / CAMERA.fy)
    big, low = CAMERA.rays(), small.rays()
    blocks = big.reshape(60, 8, 80, 8, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(
        low, blocks, atol=1e-12
    )  # a large pixel's centre is the mean of its small ones


def test_guess_has_the_asked_field_of_view():
    camera = Intrinsics.guess(200, 100, fov_degrees=90)
    assert camera.fx == pytest.approx(100)
    assert (camera.fy, camera.cx, camera.cy) == (camera.fx, 100, 50)
    assert 2 * math.degrees(math.atan(320 / Intrinsics.guess(640, 480).fx)) == pytest.approx(60)


@pytest.mark.parametrize("fov", [0, 180, -3, math.nan])
def test_guess_refuses_impossible_fields_of_view(fov):
    with pytest.raises(InputError, match="field of view"):
        Intrinsics.guess(10, 10, fov)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fx": 0.0}, "fx"),
        ({"fy": -1.0}, "fy"),
        ({"cx": math.nan}, "cx"),
        ({"cy": math.inf}, "cy"),
        ({"width": 0}, "width"),
        ({"height": 1.5}, "height"),
        ({"width": True}, "width"),
        ({"height": 10**400}, "height"),
        ({"fx": 1e-308}, "fx"),
        ({"fy": 1e308}, "fy"),
    ],
)
def test_bad_values_are_named(change, message):
    values = {"fx": 1.0, "fy": 1.0, "cx": 0.0, "cy": 0.0, "width": 4, "height": 4} | change
    with pytest.raises(InputError, match=f"intrinsics: {message}"):
        Intrinsics(**values)


@pytest.mark.parametrize(("centres", "shift"), [("integer", 0.5), ("half", 0.0)])
def test_matrix_convention_moves_the_principal_point(centres, shift):
    matrix = [[500, 0, 319.5], [0, 510, 239.5], [0, 0, 1]]
    camera = Intrinsics.from_matrix(matrix, 640, 480, pixel_centres=centres)
    assert camera == Intrinsics(500, 510, 319.5 + shift, 239.5 + shift, 640, 480)


@pytest.mark.parametrize(
    "matrix", [np.eye(4), [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 2]]]
)
def test_matrices_that_are_no_pinhole_are_refused(matrix):
    with pytest.raises(InputError, match="camera matrix"):
        Intrinsics.from_matrix(matrix, 4, 4, pixel_centres="half")


def test_unknown_pixel_centres_are_refused():
    with pytest.raises(InputError, match="'integer' or 'half'"):
        Intrinsics.from_matrix(np.eye(3), 4, 4, pixel_centres="corner")


@pytest.mark.parametrize(
    "text",
    ["500 0 319.5\n0 510 239.5\n0 0 1\n", "# K\n[500, 0, 319.5;\n 0, 510, 239.5;\n 0, 0, 1]  # pixels\n"],
)
def test_matrix_file(tmp_path, text):
    path = tmp_path / "K.txt"
    path.write_text(text)
    assert read_matrix(path, 640, 480) == Intrinsics(500, 510, 320, 240, 640, 480)
    assert read_matrix(path, 640, 480, pixel_centres="half").cx == 319.5


@pytest.mark.parametrize("text", ["1 2 3", "a 0 0 0 1 0 0 0 1", "1 1 0 0 1 0 0 0 1"])
def test_matrix_file_errors_name_the_file(tmp_path, text):
    path = tmp_path / "K.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"K\.txt"):
        read_matrix(path, 640, 480)
    with pytest.raises(FileFormatError, match="missing"):
        read_matrix(tmp_path / "missing.txt", 640, 480)


def test_camera_file_round_trip(tmp_path):
    path = tmp_path / "cameras.json"
    write_cameras(path, Cameras(guide=CAMERA))
    assert read_cameras(path) == Cameras(guide=CAMERA)
    assert json.loads(path.read_text()) == {
        "guide": {"fx": 500.0, "fy": 520.0, "cx": 310.0, "cy": 250.0, "width": 640, "height": 480}
    }


GOOD = {"fx": 1.0, "fy": 1, "cx": 0.0, "cy": 0.0, "width": 4, "height": 4}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"guide": GOOD, "guidee": GOOD}, "did you mean 'guide'"),
        ({"guide": GOOD | {"widht": 3}}, "guide: unknown key 'widht'; did you mean 'width'"),
        ({"guide": {"fx": 1.0}}, "'fy'"),
        ({"guide": GOOD | {"fx": "500"}}, "'fx'"),
        ({"guide": GOOD | {"width": 4.5}}, "'width'"),
        ({"guide": GOOD | {"fx": -1.0}}, "fx is -1"),
        ({"guide": 3}, "'guide'"),
        ({}, "'guide'"),
        ({"giude": GOOD}, "unknown key 'giude'; did you mean 'guide'"),
        (
            {"width": 4, "height": 4, "intrinsic_matrix": [1, 0, 0, 0, 1, 0, 2, 2, 1]},
            "keys 'width, height, intrinsic_matrix', those of another program; expected .*guide.* with fx",
        ),
        ([1], "expected an object"),
    ],
)
def test_camera_file_errors_say_what_is_wrong(tmp_path, values, message):
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=message) as caught:
        read_cameras(path)
    assert "cameras.json" in str(caught.value)


def test_camera_file_must_be_json(tmp_path):
    path = tmp_path / "cameras.json"
    path.write_text("{fx: 3")
    with pytest.raises(FileFormatError, match="JSON"):
        read_cameras(path)
    with pytest.raises(FileFormatError, match="none"):
        read_cameras(tmp_path / "none.json")


def test_a_matrix_of_another_resolution_is_refused(tmp_path):
    path = tmp_path / "K.txt"
    path.write_text("500 0 319.5\n0 500 239.5\n0 0 1\n")
    assert read_cameras(path, (640, 480)).guide.cx == 320
    for size in ((1920, 1440), (1280, 960), (960, 720), (480, 360)):
        with pytest.raises(FileFormatError, match=r"principal point \(320.0, 240.0\) is far from the middle"):
            read_cameras(path, size)
