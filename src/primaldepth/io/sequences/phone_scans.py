"""Raw data of two phone scanners, Polycam and 3D Scanner App: depth in mm, confidence, camera and pose.

Polycam has keyframes/depth/T.png beside images/T.jpg and cameras/T.json, and corrected_images with
corrected_cameras where it has refined the poses. 3D Scanner App has depth_00000.png, conf_00000.png,
frame_00000.jpg and frame_00000.json in one folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.pinhole import Pinhole, check_central
from primaldepth.geometry.poses import Pose
from primaldepth.io.files import read_json
from primaldepth.io.sequences.base import (
    MOST_SHOTS,
    Content,
    Recording,
    Shot,
    finite_numbers,
    image_size,
    numbered,
)
from primaldepth.io.sequences.poses import arkit_pose

_IMAGES = (".jpg", ".jpeg", ".png")
_Values = Mapping[str, Any]
_Camera = Callable[[_Values, Path, tuple[int, int]], tuple[Pinhole, Pose | None]]
_POLYCAM_POSE = tuple(f"t_{row}{column}" for row in range(3) for column in range(4))


def recognise(root: Path) -> bool:
    """Whether one of the two apps has written this folder."""
    return _is_polycam(root) or _is_scanner(root)


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Each depth map with the image, camera and confidence of its number."""
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
    return _recording(
        "Polycam",
        root,
        notes,
        depths,
        images,
        lambda name: home / f"{kind}cameras" / f"{name}.json",
        lambda name: home / "confidence" / f"{name}.png",
        _polycam_camera,
    )


def _scanner(root: Path) -> Recording:
    return _recording(
        "3D Scanner App",
        root,
        [],
        _named(numbered(root, ".png"), "depth_"),
        _named(numbered(root, *_IMAGES), "frame_"),
        lambda name: root / f"frame_{name}.json",
        lambda name: root / f"conf_{name}.png",
        _scanner_camera,
    )


def _named(paths: list[Path], prefix: str) -> dict[str, Path]:
    return {path.stem.removeprefix(prefix): path for path in paths if path.stem.startswith(prefix)}


def _recording(
    layout: str,
    root: Path,
    notes: list[str],
    depths: Mapping[str, Path],
    images: Mapping[str, Path],
    camera_file: Callable[[str], Path],
    confidence: Callable[[str], Path],
    camera: _Camera,
) -> Recording:
    names = [name for name in depths if name in images]
    if not names:
        raise FileFormatError(
            root, f"{len(depths)} depth maps and {len(images)} images, but no two of the same number"
        )
    if len(names) > MOST_SHOTS:
        raise FileFormatError(root, f"more than {MOST_SHOTS} shots", "split the recording")
    if lost := len(depths) - len(names):
        notes = [*notes, f"{lost} of {len(depths)} depth maps have no image of the same number"]
    shots = [
        _shot(name, depths[name], images[name], camera_file(name), confidence(name), camera) for name in names
    ]
    return Recording(layout, root, shots, "mm", notes)


def _shot(name: str, depth: Path, image: Path, file: Path, trust: Path, camera: _Camera) -> Shot:
    confidence = trust if trust.is_file() else None
    described = file.is_file()

    def content() -> Content:
        found, pose = camera(_object(file), file, image_size(image)) if described else (None, None)
        return Content(depth, image, confidence, found, pose=pose)

    more = [path for path, there in ((trust, confidence), (file, described)) if there]
    return Shot(name, content, (depth, image, *more))


def _object(path: Path) -> Mapping[str, Any]:
    values = read_json(path, what="readable JSON camera file", limits=RECORDED)
    if not isinstance(values, dict):
        raise FileFormatError(path, f"found a {type(values).__name__}, expected the values of a camera")
    return values


def _polycam_camera(values: _Values, path: Path, size: tuple[int, int]) -> tuple[Pinhole, Pose | None]:
    """fx, fy, cx, cy of an image of width x height, pixel centres at integers; t_00 to t_23 of the pose."""
    names = ("fx", "fy", "cx", "cy", "width", "height")
    fx, fy, cx, cy, width, height = finite_numbers(
        [values.get(name) for name in names], path, f"numbers for {', '.join(names)}"
    )
    known = all(name in values for name in _POLYCAM_POSE)
    pose = arkit_pose([values[name] for name in _POLYCAM_POSE], path) if known else None
    return _scaled(path, (fx, fy, cx, cy), (width, height), size), pose


def _scanner_camera(values: _Values, path: Path, size: tuple[int, int]) -> tuple[Pinhole, Pose | None]:
    """Nine numbers of the camera matrix of the image, row by row, pixel centres at integers; the pose."""
    found = values.get("intrinsics")
    if not isinstance(found, list) or len(found) != 9:
        raise FileFormatError(path, f"'intrinsics' is {shortened(found)}, expected nine numbers")
    K = finite_numbers(found, f"{path}: 'intrinsics'", "nine numbers")
    hint = "is the matrix that of another resolution?"
    check_central(path, K[2], K[5], size, hint)
    placed = values.get("cameraPoseARFrame")
    pose = None if placed is None else arkit_pose(placed, path)
    return _scaled(path, (K[0], K[4], K[2], K[5]), size, size), pose


def _scaled(
    path: Path, numbers: tuple[float, ...], said: tuple[float, float], size: tuple[int, int]
) -> Pinhole:
    """The camera of the image at hand, which may be smaller than the one that its file describes."""
    if min(said) < 1:
        raise FileFormatError(path, f"an image of {said[0]:g}x{said[1]:g} pixels, expected at least 1")
    across, down = size[0] / said[0], size[1] / said[1]
    fx, fy, cx, cy = numbers
    return Pinhole(fx * across, fy * down, (cx + 0.5) * across, (cy + 0.5) * down, *size)
