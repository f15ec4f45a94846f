"""A folder as COLMAP reads it: the text model in sparse/0, images, and depth maps in millimetres.

An image has the rotation (as a quaternion w, x, y, z) and translation that lead from the world into the
camera. Axes and pixel centres are as here: y down, z forward, centres at half-integers.
"""

from pathlib import Path

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.motion import inverse, quaternion
from primaldepth.io.atomic import write_bytes
from primaldepth.io.scans.base import ScanFrame, write_depth_png, write_image


class ColmapFolder:
    """Writes frames as they come and the model at the end.

    Args:
        folder: made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cameras: dict[str, int] = {}
        self._images: list[str] = []

    def add(self, frame: ScanFrame) -> None:
        """Write image and depth map of one frame.

        Raises:
            InputError: if COLMAP has no such lens.
        """
        image, size = write_image(self.folder / "images", frame)
        write_depth_png(self.folder / "depths", frame)
        line = _camera(frame.view.camera.scaled_to(*size))
        camera = self._cameras.setdefault(line, len(self._cameras) + 1)
        R, t = inverse(frame.view.pose.rotation, frame.view.pose.translation)
        x, y, z, w = quaternion(R)
        numbers = " ".join(f"{each:.12g}" for each in (w, x, y, z, *t))
        self._images.append(f"{len(self._images) + 1} {numbers} {camera} {image.name}")

    def finish(self, points: PointCloud) -> None:
        """Write cameras.txt, images.txt and points3D.txt; no point has a track, no image its corners."""
        cameras = [f"{number} {line}" for line, number in self._cameras.items()]
        rows = zip(points.points.tolist(), points.colors.tolist(), strict=True)
        clouds = [
            f"{number} {x:.6g} {y:.6g} {z:.6g} {r} {g} {b} 0"
            for number, ((x, y, z), (r, g, b)) in enumerate(rows, 1)
        ]
        self._write("cameras.txt", "CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]", cameras)
        self._write("points3D.txt", "POINT3D_ID X Y Z R G B ERROR TRACK[]", clouds)
        images = [line for image in self._images for line in (image, "")]
        self._write("images.txt", "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, then its corners", images)

    def _write(self, name: str, head: str, lines: list[str]) -> None:
        write_bytes(self.folder / "sparse" / "0" / name, ("\n".join([f"# {head}", *lines]) + "\n").encode())


def _camera(camera: Intrinsics) -> str:
    """Return a camera as cameras.txt has it: model, size and parameters in one line."""
    lens = camera.distortion
    if lens is None:
        model, bent = "PINHOLE", np.zeros(0)
    elif lens.model in ("plumb_bob", "rational"):
        model, bent = "FULL_OPENCV", np.pad(lens.coefficients, (0, 8 - len(lens.coefficients)))
    elif lens.model == "fisheye":
        model, bent = "OPENCV_FISHEYE", np.array(lens.coefficients)
    else:
        raise InputError("COLMAP", f"has no lens of the model '{lens.model}'", "undistort the frames first")
    numbers = (camera.fx, camera.fy, camera.cx, camera.cy, *bent.tolist())
    return f"{model} {camera.width} {camera.height} {' '.join(f'{each:.12g}' for each in numbers)}"
