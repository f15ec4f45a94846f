"""Lens models against OpenCV's own projections, and back."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from primaldepth.core.errors import InputError
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.conversions import radial_from_z, z_from_radial
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.intrinsics import Intrinsics

GOLDEN = json.loads((Path(__file__).parent / "opencv_projections.json").read_text())
POINTS = np.array(GOLDEN["points"])
PIXEL = 1e-3


def camera_of(name):
    lens = Distortion(name, tuple(GOLDEN["lenses"][name]["coefficients"]))
    matrix = GOLDEN["camera_matrix"]
    return Intrinsics.from_matrix(matrix, 640, 480, pixel_centres="integer", distortion=lens)


@pytest.mark.parametrize("name", GOLDEN["lenses"])
def test_pixels_are_those_of_opencv(name):
    found = camera_of(name).project(POINTS) - 0.5  # its first pixel has its centre at (0, 0)
    np.testing.assert_allclose(found, GOLDEN["lenses"][name]["pixels"], atol=PIXEL)


@pytest.mark.parametrize("name", GOLDEN["lenses"])
def test_an_installed_opencv_agrees(name):
    cv2 = pytest.importorskip("cv2")
    K, still = np.array(GOLDEN["camera_matrix"]), np.zeros(3)
    coefficients = np.array(GOLDEN["lenses"][name]["coefficients"])
    if name == "fisheye":
        pixels = cv2.fisheye.projectPoints(POINTS[None], still, still, K, coefficients)[0]
    else:
        pixels = cv2.projectPoints(POINTS, still, still, K, coefficients)[0]
    np.testing.assert_allclose(camera_of(name).project(POINTS) - 0.5, pixels.reshape(-1, 2), atol=PIXEL)


@pytest.mark.parametrize("name", [*GOLDEN["lenses"], "modified_plumb_bob"])
def test_rays_of_all_pixels_project_back_onto_them(name):
    known = "plumb_bob" if name == "modified_plumb_bob" else name
    lens = Distortion(name, tuple(GOLDEN["lenses"][known]["coefficients"]))
    camera = replace(camera_of(known), distortion=lens)
    pixels = camera.project(camera.rays())
    rows, columns = np.indices((480, 640)) + 0.5
    np.testing.assert_allclose(pixels[..., 0], columns, atol=PIXEL)
    np.testing.assert_allclose(pixels[..., 1], rows, atol=PIXEL)


coefficient = st.floats(-0.3, 0.3)


@settings(max_examples=50)
@given(
    st.one_of(
        st.tuples(st.just("plumb_bob"), st.tuples(*[coefficient] * 2, *[st.floats(-0.01, 0.01)] * 3)),
        st.tuples(st.just("fisheye"), st.tuples(*[st.floats(-0.1, 0.1)] * 4)),
    )
)
def test_undoing_is_exact_or_says_that_it_cannot(lens):
    lens = Distortion(*lens)
    x, y = torch.meshgrid(*[torch.linspace(-0.9, 0.9, 13, dtype=torch.float64)] * 2, indexing="xy")
    ray = lens.undistort(x, y)
    there = lens.distort(*ray)
    known = torch.isfinite(ray[0])
    assert known[6, 6]
    assert (torch.hypot(there[0] - x, there[1] - y)[known] < 1e-6).all()
    assert (torch.hypot(*ray)[known] <= lens.limit).all()


def test_rays_within_the_limit_are_found_again():
    for name in GOLDEN["lenses"]:
        lens = camera_of(name).distortion
        r = torch.linspace(0.0, min(0.9 * lens.limit, 1.0), 30, dtype=torch.float64)
        ray = 0.6 * r, -0.8 * r
        found = lens.undistort(*lens.distort(*ray))
        for each, wanted in zip(found, ray, strict=True):
            torch.testing.assert_close(each, wanted, atol=1e-6, rtol=0)


def test_the_limit_of_a_barrel_by_hand():
    lens = Distortion("plumb_bob", (-0.3, 0.0, 0.0, 0.0, 0.0))  # r - 0.3 r^3 rises up to r^2 = 1 / 0.9
    assert lens.limit == pytest.approx(np.sqrt(1 / 0.9), rel=1e-3)
    camera = Intrinsics(100.0, 100.0, 100.0, 100.0, 200, 200, lens)
    assert np.isfinite(camera.project([1.0, 0.0, 1.0])).all()
    assert np.isnan(camera.project([[1.5, 0.0, 1.0], [0.0, 0.0, -1.0]])).all()
    nowhere = lens.undistort(torch.tensor([0.8]), torch.tensor([0.0]))  # the largest image radius is 0.703
    assert torch.isnan(nowhere[0]).all()


def test_tangential_terms_of_realsense_use_the_radially_moved_point():
    coefficients = (0.1, 0.02, 0.01, -0.02, 0.003)
    x, y = torch.tensor(0.3, dtype=torch.float64), torch.tensor(-0.4, dtype=torch.float64)
    f = 1 + 0.1 * 0.25 + 0.02 * 0.25**2 + 0.003 * 0.25**3
    u, v = 0.3 * f, -0.4 * f
    there = Distortion("modified_plumb_bob", coefficients).distort(x, y)
    assert float(there[0]) == pytest.approx(u + 2 * 0.01 * u * v - 0.02 * (0.25 + 2 * u * u))
    assert float(there[1]) == pytest.approx(v + 0.01 * (0.25 + 2 * v * v) - 2 * 0.02 * u * v)


def test_float32_is_good_to_a_thousandth_of_a_pixel():
    lens = camera_of("rational").distortion
    x, y = torch.rand(2, 100, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    wide, narrow = lens.distort(x, y), lens.distort(x.float(), y.float())
    assert max(float((a - b).abs().max()) for a, b in zip(wide, narrow, strict=True)) * 610 < PIXEL


def test_radial_distance_and_clouds_use_the_true_rays():
    camera = camera_of("plumb_bob").scaled_to(32, 24)
    normal = np.array([0.3, -0.2, 0.93])
    z = 2.0 / (camera.rays() @ normal)
    everywhere = np.ones(z.shape, bool)
    points = point_cloud(z, everywhere, camera).points
    np.testing.assert_allclose(points @ normal, 2.0, rtol=1e-6)
    r = radial_from_z(z, everywhere, camera)
    np.testing.assert_allclose(r.ravel(), np.linalg.norm(points, axis=1), rtol=1e-5)
    np.testing.assert_allclose(z_from_radial(r, everywhere, camera), z)


def test_pixels_without_a_ray_are_left_out_of_clouds():
    camera = Intrinsics.guess(16, 12, 110.0)
    camera = replace(camera, distortion=Distortion("plumb_bob", (-0.3, 0.0, 0.0, 0.0, 0.0)))
    everywhere = np.ones((12, 16), bool)
    seen = np.isfinite(camera.rays()).all(-1)
    assert 0 < seen.sum() < seen.size
    colors = np.arange(seen.size * 3, dtype=np.uint8).reshape(12, 16, 3)
    cloud = point_cloud(np.full((12, 16), 2.0), everywhere, camera, colors=colors, measured=everywhere)
    np.testing.assert_array_equal(cloud.colors, colors[seen])
    np.testing.assert_array_equal(np.isnan(z_from_radial(np.full((12, 16), 2.0), everywhere, camera)), ~seen)


@pytest.mark.parametrize(("count", "model"), [(4, "plumb_bob"), (5, "plumb_bob"), (8, "rational")])
def test_the_number_of_coefficients_names_the_model(count, model):
    assert Distortion.opencv([0.1] * count).model == model
    assert Distortion.opencv([0.0] * count) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distortion("brown", (0.1,) * 5), "model 'brown', expected one of plumb_bob"),
        (lambda: Distortion("fisheye", (0.1,) * 5), "5 coefficients, but 'fisheye' has 4"),
        (lambda: Distortion("plumb_bob", (0.1, 0, 0, 0, np.nan)), "coefficient 4 is nan"),
        (lambda: Distortion.opencv([0.1] * 6), "6 coefficients, expected 0, 4, 5, 8, 12 or 14"),
    ],
)
def test_wrong_lenses_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
