"""Folders of scans, read by the programs they are made for."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from posed_scans import CAMERA, RADIUS, look_at, sphere_view
from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.distortion import Distortion
from primaldepth.io.pointcloud import read_ply
from primaldepth.io.scans import ColmapFolder, NerfstudioFolder, ScanFrame

POSES = [look_at(0.3, 0.2), look_at(1.0, -0.4), look_at(-2.0, 0.1)]
CENTRE = np.zeros((1, 3), np.float32)  # of the sphere, which all three look at
POINT = PointCloud(CENTRE + np.float32([0.1, 0.2, 0.3]), np.array([[1, 2, 3]], np.uint8))


def frames(folder: Path, camera: Intrinsics = CAMERA):
    """The first as a JPEG file, the second as a PNG file with a space in its name, the third of a video."""
    views = [sphere_view(pose, camera) for pose in POSES]
    for name, view in zip(("a.JPG", "b c.png"), views, strict=False):
        Image.fromarray(view.colors).save(folder / name)
    yield ScanFrame("a", folder / "a.JPG", views[0])
    yield ScanFrame("b c", folder / "b c.png", views[1])
    yield ScanFrame("d", views[2].colors, views[2])


def written(kind, tmp_path, **how):
    out = kind(tmp_path / "out")
    for frame in frames(tmp_path, **how):
        out.add(frame)
    out.finish(POINT)
    return out.folder


def test_colmap_folders_load_in_pycolmap(tmp_path):
    pycolmap = pytest.importorskip("pycolmap", reason="pycolmap reads what COLMAP reads")
    folder = written(ColmapFolder, tmp_path)
    model = pycolmap.Reconstruction(str(folder / "sparse/0"))
    assert (model.num_cameras(), model.num_images(), model.num_points3D()) == (1, 3, 1)
    (camera,) = model.cameras.values()
    assert camera.model_name == "PINHOLE"
    assert (camera.width, camera.height) == (CAMERA.width, CAMERA.height)
    for number, pose in enumerate(POSES, 1):
        image = model.images[number]
        assert (folder / "images" / image.name).is_file()
        there = image.cam_from_world() if callable(image.cam_from_world) else image.cam_from_world
        assert np.allclose(there.matrix(), np.linalg.inv(pose.matrix)[:3], atol=1e-9)
        pixel = camera.img_from_cam(np.asarray(there * POINT.points[0].astype(np.float64)))
        assert np.allclose(pixel, CAMERA.project(pose.to_camera(POINT.points))[0], atol=1e-4)
    (point,) = model.points3D.values()
    assert np.allclose(point.xyz, POINT.points[0])
    assert point.color.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "lens",
    [
        ("rational", (0.1, -0.02, 0.001, 0.002, 0.01, 0.05, 0.01, 0.001)),
        ("plumb_bob", (0.1, -0.02, 0.001, 0.002, 0.01)),
        ("fisheye", (0.02, -0.01, 0.003, 0.001)),
    ],
)
def test_pycolmap_bends_rays_as_we_do(tmp_path, lens):
    pycolmap = pytest.importorskip("pycolmap", reason="pycolmap reads what COLMAP reads")
    bent = replace(CAMERA, distortion=Distortion(*lens))
    folder = written(ColmapFolder, tmp_path, camera=bent)
    (camera,) = pycolmap.Reconstruction(str(folder / "sparse/0")).cameras.values()
    for point in ([0.2, 0.1, 1.0], [-0.3, 0.2, 1.5]):
        assert np.allclose(camera.img_from_cam(np.array(point)), bent.project(point), atol=1e-3)


def parsed(folder: Path):
    """What nerfstudio's parser takes from a folder: it raises where something is missing.

    Frames need file_path and a 4x4 transform_matrix; intrinsics stand at the top or in every frame; every
    frame has a depth map or none has; the camera's model is one of a few; files lie where they are said to.
    """
    meta = json.loads((folder / "transforms.json").read_text())
    assert meta.get("camera_model", "OPENCV") in ("OPENCV", "OPENCV_FISHEYE")
    found = []
    for frame in sorted(meta["frames"], key=lambda each: each["file_path"]):
        matrix = np.array(frame["transform_matrix"], np.float32)
        assert matrix.shape == (4, 4)
        assert np.allclose(matrix[3], [0, 0, 0, 1])
        numbers = {name: float({**meta, **frame}[name]) for name in ("fl_x", "fl_y", "cx", "cy", "w", "h")}
        with Image.open(folder / frame["file_path"]) as image:
            assert image.size == (numbers["w"], numbers["h"])
        with Image.open(folder / frame["depth_file_path"]) as image:
            depth = np.asarray(image).astype(np.float64) * 1e-3
        found.append((matrix, numbers, depth))
    return meta, found


def test_nerfstudio_folders_have_what_its_parser_reads(tmp_path):
    folder = written(NerfstudioFolder, tmp_path)
    meta, found = parsed(folder)
    assert len(found) == 3
    for (matrix, numbers, depth), pose in zip(found, POSES, strict=True):
        view = sphere_view(pose)
        assert np.allclose(depth[view.valid], view.depth[view.valid], atol=0.00051)
        assert (depth[~view.valid] == 0).all()
        # the middle of the picture, in OpenGL's axes: x right, y up, z backward
        z = depth[depth.shape[0] // 2, depth.shape[1] // 2]
        x = (depth.shape[1] // 2 + 0.5 - numbers["cx"]) / numbers["fl_x"]
        y = (depth.shape[0] // 2 + 0.5 - numbers["cy"]) / numbers["fl_y"]
        place = matrix @ [x * z, -y * z, -z, 1.0]
        assert abs(np.linalg.norm(place[:3]) - RADIUS) < 0.002
    points = read_ply(folder / meta["ply_file_path"]).points
    assert np.allclose(points, POINT.points * [1, -1, -1])


def test_recorded_images_are_copied_and_turned_ones_are_not(tmp_path):
    view = sphere_view(POSES[0])
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(view.colors[::-1, ::-1]).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    Image.fromarray(view.colors).save(tmp_path / "straight.jpg")
    folder = ColmapFolder(tmp_path / "out")
    folder.add(ScanFrame("turned", tmp_path / "turned.jpg", view))
    folder.add(ScanFrame("straight", tmp_path / "straight.jpg", view))
    copied = (tmp_path / "out/images/straight.jpg").read_bytes()
    assert copied == (tmp_path / "straight.jpg").read_bytes()
    with Image.open(tmp_path / "out/images/turned.jpg") as image:
        turned = np.asarray(image).astype(float)
    assert np.abs(turned - view.colors).mean() < 6


@pytest.mark.parametrize("kind", [ColmapFolder, NerfstudioFolder])
def test_a_lens_that_the_program_does_not_know_is_refused(tmp_path, kind):
    bent = Intrinsics(100.0, 100.0, 80.0, 60.0, 160, 120, Distortion("thin_prism", (0.01,) * 12))
    with pytest.raises(InputError, match="has no lens of the model 'thin_prism'"):
        written(kind, tmp_path, camera=bent)
