"""A folder as nerfstudio reads it: transforms.json, images, depth maps in millimetres, and points.

Cameras and world have y up and z backward there. Pixel centres are at half-integers, as here.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.poses import Y_UP
from primaldepth.io.atomic import write_bytes
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.scans.base import ScanFrame, write_depth_png, write_image

_MODELS = {
    "plumb_bob": ("OPENCV", ("k1", "k2", "p1", "p2", "k3")),
    "fisheye": ("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
}


class NerfstudioFolder:
    """Writes frames as they come and transforms.json, without which the folder is none, at the end.

    Args:
        folder: made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._frames: list[dict[str, Any]] = []
        self._models: set[str] = set()

    def add(self, frame: ScanFrame) -> None:
        """Write image and depth map of one frame.

        Raises:
            InputError: if nerfstudio has no such lens.
        """
        image, size = write_image(self.folder / "images", frame)
        depth = write_depth_png(self.folder / "depths", frame)
        model, camera = _camera(frame.view.camera.scaled_to(*size))
        self._models.add(model)
        self._frames.append(
            {
                "file_path": image.relative_to(self.folder).as_posix(),
                "depth_file_path": depth.relative_to(self.folder).as_posix(),
                **camera,
                "transform_matrix": frame.view.pose.opengl.tolist(),
            }
        )

    def finish(self, points: PointCloud) -> None:
        """Write the points of the scan and the list of its frames.

        Raises:
            InputError: if the frames have lenses of different models.
        """
        if len(self._models) > 1:
            raise InputError(self.folder, "frames have lenses of different models", "export them apart")
        turned = replace(points, points=(points.points @ Y_UP).astype(np.float32))
        write_cloud(self.folder / "points.ply", turned, "x right, y up, z backward")
        values = {"camera_model": self._models.pop(), "ply_file_path": "points.ply", "frames": self._frames}
        write_bytes(self.folder / "transforms.json", json.dumps(values, indent=1).encode())


def _camera(camera: Intrinsics) -> tuple[str, dict[str, float]]:
    """Return (the name of its model, its numbers)."""
    numbers = {"fl_x": camera.fx, "fl_y": camera.fy, "cx": camera.cx, "cy": camera.cy}
    numbers |= {"w": camera.width, "h": camera.height}
    lens = camera.distortion
    if lens is None:
        return "OPENCV", numbers
    if lens.model not in _MODELS:
        raise InputError(
            "nerfstudio", f"has no lens of the model '{lens.model}'", "undistort the frames first"
        )
    model, names = _MODELS[lens.model]
    return model, numbers | dict(zip(names, lens.coefficients, strict=True))
