"""Raw data of two phone scanners, Polycam and 3D Scanner App: depth in mm, confidence, camera and pose.

Polycam has keyframes/depth/T.png beside images/T.jpg and cameras/T.json, and corrected_images with
corrected_cameras where it has refined the poses. 3D Scanner App has depth_00000.png, conf_00000.png,
frame_00000.jpg and frame_00000.json in one folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from primaldepth.core.documents import RECORDED
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.poses import Pose
from primaldepth.io.files import as_object, finite_numbers, read_json
from primaldepth.io.sequences.base import (
    Content,
    Recording,
    Shot,
    image_size,
    listed_numbers,
    matrix_camera,
    numbered,
    same_number,
    scaled_camera,
)
from primaldepth.io.sequences.poses import arkit_pose

_IMAGES = (".jpg", ".jpeg", ".png")
_Values = Mapping[str, Any]
_Camera = Callable[[_Values, Path, tuple[int, int]], tuple[Cameras, Pose | None]]
_POLYCAM_POSE = tuple(f"t_{row}{column}" for row in range(3) for column in range(4))


def recognise(root: Path) -> bool:
    """Return whether one of the two apps has written this folder."""
    return _is_polycam(root) or _is_scanner(root)


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair each depth map with the image, camera and confidence of its number."""
    return _polycam(root) if _is_polycam(root) else _scanner(root)


def _is_polycam(root: Path) -> bool:
    home = root / "keyframes"
    return (home / "depth").is_dir() and ((home / "images").is_dir() or (home / "corrected_images").is_dir())


def _is_scanner(root: Path) -> bool:
    return root.is_dir() and any(
        (root / f"frame_{path.stem.removeprefix('depth_')}.json").is_file()
        for path in _named(numbered(root, ".png"), "depth_").values()
    )


def _polycam(root: Path) -> Recording:
    home = root / "keyframes"
    corrected = bool(numbered(home / "corrected_images", *_IMAGES))
    kind = "corrected_" if corrected else ""
    images = {path.stem: path for path in numbered(home / f"{kind}images", *_IMAGES)}
    depths = {path.stem: path for path in numbered(home / "depth", ".png")}
    notes = ["images and cameras as Polycam has corrected them"] if corrected else []
    beside = (f"keyframes/{kind}cameras/{{}}.json", "keyframes/confidence/{}.png")
    shots, lost = _shots(root, depths, images, beside, _polycam_camera)
    return Recording("Polycam", root, shots, "mm", [*notes, *lost])


def _scanner(root: Path) -> Recording:
    depths, images = _named(numbered(root, ".png"), "depth_"), _named(numbered(root, *_IMAGES), "frame_")
    shots, lost = _shots(root, depths, images, ("frame_{}.json", "conf_{}.png"), _scanner_camera)
    return Recording("3D Scanner App", root, shots, "mm", lost)


def _named(paths: list[Path], prefix: str) -> dict[str, Path]:
    return {path.stem.removeprefix(prefix): path for path in paths if path.stem.startswith(prefix)}


def _shots(
    root: Path, depths: dict[str, Path], images: dict[str, Path], beside: tuple[str, str], camera: _Camera
) -> tuple[list[Shot], list[str]]:
    """Pair maps and images; `beside` are the paths of camera and confidence, with {} for the number."""
    names, lost = same_number(root, depths, images)
    shots = []
    for name in names:
        file, trust = (root / each.format(name) for each in beside)
        shots.append(_shot(name, depths[name], images[name], file, trust, camera))
    return shots, lost


def _shot(name: str, depth: Path, image: Path, file: Path, trust: Path, camera: _Camera) -> Shot:
    confidence = trust if trust.is_file() else None
    described = file.is_file()

    def content() -> Content:
        if not described:
            return Content(depth, image, confidence)
        values = as_object(read_json(file, what="readable JSON camera file", limits=RECORDED), file)
        found, pose = camera(values, file, image_size(image))
        return Content(depth, image, confidence, found, pose=pose)

    more = [path for path, there in ((trust, confidence), (file, described)) if there]
    return Shot(name, content, (depth, image, *more))


def _polycam_camera(values: _Values, path: Path, size: tuple[int, int]) -> tuple[Cameras, Pose | None]:
    """Return fx, fy, cx, cy of a width x height image, pixel centres at integers, and its pose."""
    names = ("fx", "fy", "cx", "cy", "width", "height")
    fx, fy, cx, cy, width, height = finite_numbers(
        [values.get(name) for name in names], path, f"numbers for {', '.join(names)}"
    )
    known = all(name in values for name in _POLYCAM_POSE)
    pose = arkit_pose([values[name] for name in _POLYCAM_POSE], path) if known else None
    return scaled_camera(path, (fx, fy, cx, cy), (width, height), size), pose


def _scanner_camera(values: _Values, path: Path, size: tuple[int, int]) -> tuple[Cameras, Pose | None]:
    """Return the nine numbers of the camera matrix, row by row, pixel centres at integers, and the pose."""
    K = listed_numbers(path, "intrinsics", values.get("intrinsics"), 9)
    placed = values.get("cameraPoseARFrame")
    pose = None if placed is None else arkit_pose(placed, path)
    return matrix_camera(path, K, size), pose
