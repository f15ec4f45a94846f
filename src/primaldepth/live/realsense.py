"""RealSense cameras by their SDK, `pyrealsense2`; needs the extra `realsense`.

The depth stays as the camera measured it; the camera's calibration registers it into the colour view.
"""

from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras
from primaldepth.io.cameras.realsense import realsense_cameras
from primaldepth.io.files import optional
from primaldepth.live.sources import SdkCamera
from primaldepth.pipeline.request import Item

WAIT = 5000  # milliseconds for a frame
_DEPTH, _COLOUR = (480, 270), (848, 480)  # width, height: what a USB 2 cable carries at 15 frames per second
_RATE = 15


class RealSense(SdkCamera):
    """Depth and colour of a camera, or of a file that the SDK recorded; the arguments are `SdkCamera`'s."""

    _cameras: Cameras | None = None

    @classmethod
    def opened(cls, file: Path | None) -> "RealSense":
        """Start the first camera that is plugged in, or play a file that exists.

        Raises:
            InputError: if there is no camera, or the file cannot be played.
            MissingDependencyError: without the SDK.
        """
        rs = optional("pyrealsense2", "realsense", Path("realsense"))
        pipeline, config = rs.pipeline(), rs.config()
        if file is None:
            config.enable_stream(rs.stream.depth, *_DEPTH, rs.format.z16, _RATE)
            config.enable_stream(rs.stream.color, *_COLOUR, rs.format.rgb8, _RATE)
        else:
            config.enable_device_from_file(str(file), repeat_playback=False)
        title = f"realsense:{file}" if file else "realsense"
        try:
            pipeline.start(config)
        except RuntimeError as error:
            hint = (
                "give a file of the SDK's recorder"
                if file
                else "plug a camera in; check rs-enumerate-devices"
            )
            raise InputError(title, str(error), hint) from error

        def wait() -> Any:
            found, frames = pipeline.try_wait_for_frames(WAIT)
            return frames if found else None

        return cls(title, wait, pipeline.stop)

    def frame(self, frames: Any) -> tuple[str, Item] | None:
        """Return depth as it was measured, in metres, with both cameras."""
        depth, colour = frames.get_depth_frame(), frames.get_color_frame()
        return (f"{depth.get_frame_number():06d}", self._item(depth, colour)) if depth and colour else None

    def _item(self, depth: Any, colour: Any) -> Item:
        if self._cameras is None:  # they do not change while the streams run
            self._cameras = realsense_cameras(_calibration(depth.profile, colour.profile), self.title)
        metres = np.asanyarray(depth.get_data()) * np.float32(depth.get_units())
        return Item(metres, np.array(colour.get_data()), cameras=self._cameras, unit="m")


def _calibration(depth: Any, colour: Any) -> dict[str, Any]:
    """Return intrinsics and extrinsics of the streams under the names that the SDK uses."""
    motion = depth.get_extrinsics_to(colour)
    extrinsics = {"rotation": list(motion.rotation), "translation": list(motion.translation)}
    return {"depth": _intrinsics(depth), "color": _intrinsics(colour), "extrinsics": extrinsics}


def _intrinsics(profile: Any) -> dict[str, Any]:
    found = profile.as_video_stream_profile().get_intrinsics()
    numbers = {name: float(getattr(found, name)) for name in ("fx", "fy", "ppx", "ppy")}
    size = {"width": found.width, "height": found.height}
    return {**numbers, **size, "model": str(found.model), "coeffs": list(found.coeffs)}
