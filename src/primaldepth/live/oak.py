"""OAK cameras by their SDK, `depthai` 3; needs the extra `oak`.

The camera computes depth from its stereo pair and turns it into the view of its colour camera, whose images
it rectifies. So depth and image show the same view, without a lens.
"""

from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io.files import optional
from primaldepth.live.sources import SdkCamera
from primaldepth.pipeline.request import Item

_COLOUR, _DEPTH, _STEREO = (1280, 720), (640, 360), (640, 400)  # width, height


class Oak(SdkCamera):
    """Depth and colour of a camera; the arguments are `SdkCamera`'s.

    Attributes:
        camera: of the colour images.
    """

    camera: Intrinsics | None = None

    @classmethod
    def opened(cls) -> "Oak":
        """Start the first camera that is plugged in; its errors are those of `SdkCamera`."""
        dai = optional("depthai", "oak", Path("oak"))
        try:
            pipeline = dai.Pipeline()
            queue = _streams(dai, pipeline)
            pipeline.start()
            calibration = pipeline.getDefaultDevice().readCalibration()
            matrix = calibration.getCameraIntrinsics(dai.CameraBoardSocket.CAM_A, *_COLOUR)
        except RuntimeError as error:
            hint = "plug a camera in; check its udev rules"
            raise InputError("oak", str(error).splitlines()[0], hint) from error

        def wait() -> Any:
            return queue.get() if pipeline.isRunning() else None

        source = cls("oak", wait, pipeline.stop)
        source.camera = Intrinsics.from_matrix(matrix, *_COLOUR, pixel_centres="integer")
        return source

    def frame(self, frames: Any) -> tuple[str, Item] | None:
        """Return depth in metres, which the camera gives in millimetres, and the image."""
        depth, colour = frames["depth"], frames["color"]
        metres = depth.getFrame() * np.float32(0.001)
        cameras = None if self.camera is None else Cameras(self.camera)
        item = Item(metres, np.array(colour.getFrame()), cameras=cameras, unit="m")
        return f"{depth.getSequenceNum():06d}", item


def _streams(dai: Any, pipeline: Any) -> Any:
    """Return the queue of depth in the colour camera's view and its images; it keeps the newest pair."""
    sockets = dai.CameraBoardSocket
    colour, left, right = (
        pipeline.create(dai.node.Camera).build(socket)
        for socket in (sockets.CAM_A, sockets.CAM_B, sockets.CAM_C)
    )
    stereo = pipeline.create(dai.node.StereoDepth).build(
        left.requestOutput(_STEREO), right.requestOutput(_STEREO)
    )
    stereo.setDepthAlign(sockets.CAM_A)
    stereo.setOutputSize(*_DEPTH)
    sync = pipeline.create(dai.node.Sync)
    stereo.depth.link(sync.inputs["depth"])
    images = colour.requestOutput(_COLOUR, dai.ImgFrame.Type.RGB888i, enableUndistortion=True)
    images.link(sync.inputs["color"])
    return sync.out.createOutputQueue(maxSize=1, blocking=False)
