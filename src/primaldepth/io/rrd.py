"""A frame as a recording of rerun (.rrd): image, samples, result, sigma, and the cloud where it was seen.

All frames share one recording, so that the viewer, given many files, shows them as one sequence.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.poses import Pose
from primaldepth.io.atomic import atomic_path
from primaldepth.io.files import optional
from primaldepth.io.sequences.base import number

Map = NDArray[np.floating]
NAME = "primaldepth"
TIMELINE = "frame"


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The maps of a frame that a recording shows.

    Args:
        image: (H, W, 3).
        maps: depth in metres by the name under which the viewer shows it, any sizes, 0 where there is none.
        cloud: in the camera's frame.
        camera: of the image.
        pose: of the camera, or None if unknown.
    """

    image: NDArray[np.uint8]
    maps: dict[str, Map]
    cloud: PointCloud
    camera: Intrinsics
    pose: Pose | None = None


def write_rrd(path: Path, frame: Recorded) -> None:
    """Write a recording of one frame; its time is the last number in the file's name, 0 without one.

    Raises:
        MissingDependencyError: rerun-sdk is not installed.
    """
    rr = optional("rerun", "rerun", path, doing="writing")
    last, camera = number(path)[-1], frame.camera
    with atomic_path(path) as temporary, rr.RecordingStream(NAME, recording_id=NAME) as stream:
        stream.save(temporary)
        stream.set_time(TIMELINE, sequence=last if isinstance(last, int) else 0)
        stream.log("world", rr.ViewCoordinates.RDF, static=True)
        if frame.pose is not None:
            stood = rr.Transform3D(translation=frame.pose.translation, mat3x3=frame.pose.rotation)
            stream.log("world/camera", stood)
        lens = rr.Pinhole(
            focal_length=(camera.fx, camera.fy),
            principal_point=(camera.cx, camera.cy),
            resolution=(camera.width, camera.height),
        )
        stream.log("world/camera/image", lens, rr.Image(frame.image).compress())
        stream.log("world/camera/cloud", rr.Points3D(frame.cloud.points, colors=frame.cloud.colors))
        for name, values in frame.maps.items():
            stream.log(name, rr.DepthImage(values.astype(np.float32), meter=1.0))
        stream.flush()
        stream.disconnect()
