"""Orbbec cameras by their SDK, `pyorbbecsdk`; needs the extra `orbbec`.

The depth stays as the camera measured it; the camera's calibration registers it into the colour view.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.motion import as_tuples
from primaldepth.io.cameras.ros import lens_of
from primaldepth.io.files import optional
from primaldepth.io.picture_files import open_picture
from primaldepth.live.sources import SdkCamera
from primaldepth.pipeline.request import Item

WAIT, TRIES = 1000, 5  # milliseconds for a frame, and how often
_COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")  # in the order of OpenCV

_LENSES = {  # by their names in ROS; another one is refused unless all its coefficients are 0
    "BROWN_CONRADY": "rational_polynomial",
    "BROWN_CONRADY_K6": "rational_polynomial",
    "KANNALA_BRANDT4": "fisheye",
}


class Orbbec(SdkCamera):
    """Depth and colour of a camera, or of a file that the SDK recorded; the arguments are `SdkCamera`'s.

    Attributes:
        cameras: of both streams; they do not change while these run.
    """

    cameras: Cameras | None = None

    @classmethod
    def opened(cls, file: Path | None) -> "Orbbec":
        """Start the first camera that is plugged in, or play a file; its errors are those of `SdkCamera`."""
        ob = optional("pyorbbecsdk", "orbbec", Path("orbbec"))
        title = f"orbbec:{file}" if file else "orbbec"
        try:
            pipeline = ob.Pipeline(ob.PlaybackDevice(str(file))) if file else ob.Pipeline()
            pipeline.enable_frame_sync()
            pipeline.start(_streams(ob, pipeline))
            cameras = orbbec_cameras(pipeline.get_camera_param(), title)
        except (ob.OBError, RuntimeError) as error:  # without a camera it is the second
            hint = "give a file of the SDK's recorder" if file else "plug a camera in; check its udev rules"
            raise InputError(title, str(error), hint) from error

        def wait() -> Any:
            found = (pipeline.wait_for_frames(WAIT) for _ in range(TRIES))
            return next((frames for frames in found if frames is not None), None)

        source = cls(title, wait, pipeline.stop)
        source.cameras = cameras
        return source

    def frame(self, frames: Any) -> tuple[str, Item] | None:
        """Return depth as it was measured, in metres, with both cameras."""
        depth, colour = frames.get_depth_frame(), frames.get_color_frame()
        if depth is None or colour is None:
            return None
        steps = np.frombuffer(depth.get_data(), np.uint16).reshape(depth.get_height(), depth.get_width())
        metres = steps * np.float32(depth.get_depth_scale() / 1000.0)
        item = Item(metres, _pixels(colour, self.title), cameras=self.cameras, unit="m")
        return f"{depth.get_index():06d}", item


def _streams(ob: Any, pipeline: Any) -> Any:
    """Return the configuration: the depth stream the camera starts with, and colour in RGB if it has that."""
    config = ob.Config()
    depths = pipeline.get_stream_profile_list(ob.OBSensorType.DEPTH_SENSOR)
    config.enable_stream(depths.get_default_video_stream_profile())
    colours = pipeline.get_stream_profile_list(ob.OBSensorType.COLOR_SENSOR)
    try:
        profile = colours.get_video_stream_profile(0, 0, ob.OBFormat.RGB, 0)  # 0: any
    except ob.OBError:
        profile = colours.get_default_video_stream_profile()
    config.enable_stream(profile)
    return config


def _pixels(colour: Any, title: str) -> NDArray[np.uint8]:
    """Return (H, W, 3) of a colour frame, which may be a JPEG."""
    data, kind = np.frombuffer(colour.get_data(), np.uint8), str(colour.get_format()).rpartition(".")[2]
    if kind in ("RGB", "BGR"):
        pixels = data.reshape(colour.get_height(), colour.get_width(), 3)
        return np.array(pixels if kind == "RGB" else pixels[..., ::-1])
    if kind == "MJPG":
        return np.asarray(open_picture(data.tobytes(), Path(title), formats=("JPEG",)).convert("RGB"))
    raise InputError(title, f"colour of format {kind}", "set the camera to RGB, BGR or MJPG")


def orbbec_cameras(found: Any, title: str) -> Cameras:
    """Return both cameras of an `OBCameraParam`: its motion leads from the depth camera to colour, in mm.

    Raises:
        InputError: if it holds no calibration.
    """
    if not (found.rgb_intrinsic.fx > 0 and found.depth_intrinsic.fx > 0):
        raise InputError(title, "the camera has no calibration", "start depth and colour in its viewer first")
    rotation = np.asarray(found.transform.rot, np.float64).reshape(3, 3)
    translation = np.asarray(found.transform.transform, np.float64).reshape(3) / 1000.0
    guide = _camera(found.rgb_intrinsic, found.rgb_distortion)
    depth = _camera(found.depth_intrinsic, found.depth_distortion)
    return Cameras(guide, depth, as_tuples(rotation), as_tuples(translation))


def _camera(pinhole: Any, lens: Any) -> Intrinsics:
    called = str(lens.model).rpartition(".")[2]
    model = _LENSES.get(called, called)
    names = ("k1", "k2", "k3", "k4") if model == "fisheye" else _COEFFICIENTS
    values = tuple(float(getattr(lens, name)) for name in names)
    centre = pinhole.cx + 0.5, pinhole.cy + 0.5  # the SDK counts from the middle of the first pixel
    size = int(pinhole.width), int(pinhole.height)
    return Intrinsics(pinhole.fx, pinhole.fy, *centre, *size, lens_of(model, values))
