"""Recordings people have: each layout is a module that recognises its content and reads it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from primaldepth.core.errors import FileFormatError
from primaldepth.io.sequences import one_folder, phone_scans, r3d, record3d, rosbag, stray_scanner, tum
from primaldepth.io.sequences.base import Content, Recording, Shot, check_inside

__all__ = ["Content", "Recording", "Shot", "is_recording", "not_a_recording", "read_recording"]

_LAYOUTS = (tum, stray_scanner, record3d, r3d, phone_scans, rosbag, one_folder)
_EXPECTED = (
    "depth.txt and rgb.txt (TUM RGB-D); depth/ and camera_matrix.csv (StrayScanner); "
    "depth/*.exr, rgb/ and metadata.json, or .r3d (Record3D); keyframes/ (Polycam); depth_00000.png and "
    "frame_00000.json (3D Scanner App); .bag, .db3 or .mcap (ROS, RealSense); "
    "pairs such as a.depth.png and a.color.png in one folder"
)


def is_recording(path: Path) -> bool:
    """Return whether `read_recording` can read a folder or file."""
    return any(layout.recognise(path) for layout in _LAYOUTS)


def read_recording(path: Path, time_apart: float | None = None) -> Recording:
    """Read the list of shots of a recording; their depth and images are read when they are asked for.

    Args:
        path: of a folder or file.
        time_apart: seconds that a depth map and its image may be apart, where they are paired by time; None
            for what is usual in such recordings.

    Returns:
        The recording: its layout, unit, notes, and shots in order.

    Raises:
        FileFormatError: if it is no recording that is known, or is damaged.
    """
    for layout in _LAYOUTS:
        if layout.recognise(path):
            return _confined(layout.read(path, time_apart))
    raise FileFormatError(not_a_recording(path))


def _confined(recording: Recording) -> Recording:
    """Let every shot of a folder refuse files that are links to somewhere else."""
    root = recording.root
    if not root.is_dir():
        return recording
    shots = [replace(shot, read=partial(_read_inside, root, shot)) for shot in recording]
    return replace(recording, shots=shots)


def _read_inside(root: Path, shot: Shot) -> Content:
    check_inside(root, *shot.files)
    return shot.read()


def not_a_recording(path: Path) -> str:
    """Say what was found there, and what a recording looks like."""
    return f"{path}: not a recording; found {_found(path)}; expected {_EXPECTED}"


def _found(path: Path) -> str:
    if not path.exists():
        return "nothing there"
    if not path.is_dir():
        return f"a file called {path.name}"
    names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in path.iterdir())
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return shown or "an empty folder"
