"""The OAK source with a stand-in of the SDK, which builds nothing unless a camera is plugged in."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.live.sources import open_source
from primaldepth.session import Session


class Output:
    def __init__(self, name):
        self.name, self.linked = name, None

    def link(self, other):
        self.linked = other


class Camera:
    def build(self, socket):
        self.socket = socket
        return self

    def requestOutput(self, size, kind=None, *, enableUndistortion=None):  # noqa: N802
        self.asked = (size, kind, enableUndistortion)
        return Output(self.socket)


class Stereo:
    def build(self, left, right):
        self.eyes, self.depth = (left.name, right.name), Output("depth")
        return self

    def setDepthAlign(self, socket):  # noqa: N802
        self.view = socket

    def setOutputSize(self, width, height):  # noqa: N802
        self.size = (width, height)


class Sync:
    def __init__(self):
        self.inputs = {"depth": "sync depth", "color": "sync color"}
        self.out = SimpleNamespace(createOutputQueue=lambda maxSize, blocking: Queue(maxSize, blocking))


class Queue:
    """A wall in 2 m, and a red image."""

    def __init__(self, size, blocking):
        self.size, self.blocking, self.left = size, blocking, 2

    def get(self):
        self.left -= 1
        Pipeline.made.running = self.left > 0
        depth = SimpleNamespace(
            getFrame=lambda: np.full((360, 640), 2000, np.uint16), getSequenceNum=lambda: 5 - self.left
        )
        image = np.zeros((720, 1280, 3), np.uint8)
        image[..., 0] = 200
        return {"depth": depth, "color": SimpleNamespace(getFrame=lambda: image)}


class Pipeline:
    made = None

    def __init__(self):
        self.nodes, self.running, self.stopped = [], False, False
        Pipeline.made = self

    def create(self, kind):
        self.nodes.append(kind())
        return self.nodes[-1]

    def start(self):
        self.running = True

    def isRunning(self):  # noqa: N802
        return self.running

    def stop(self):
        self.stopped = True

    def getDefaultDevice(self):  # noqa: N802
        def intrinsics(socket, width, height):
            assert socket == "A"
            return [[0.8 * width, 0, width / 2 - 0.5], [0, 0.8 * width, height / 2 - 0.5], [0, 0, 1]]

        return SimpleNamespace(readCalibration=lambda: SimpleNamespace(getCameraIntrinsics=intrinsics))


@pytest.fixture
def sdk(monkeypatch):
    module = ModuleType("depthai")
    module.Pipeline = Pipeline
    module.CameraBoardSocket = SimpleNamespace(CAM_A="A", CAM_B="B", CAM_C="C")
    module.node = SimpleNamespace(Camera=Camera, StereoDepth=Stereo, Sync=Sync)
    module.ImgFrame = SimpleNamespace(Type=SimpleNamespace(RGB888i="interleaved"))
    monkeypatch.setitem(sys.modules, "depthai", module)
    return module


def test_frames_of_the_camera_have_one_view(sdk):
    with open_source("oak") as source, Session(method="bilinear", device="cpu") as session:
        found = [(name, session.push_item(item)) for name, item in source]
    pipeline = Pipeline.made
    colour, _, _, stereo, _ = pipeline.nodes
    assert pipeline.stopped
    assert (stereo.eyes, stereo.view, stereo.size) == (("B", "C"), "A", (640, 360))
    assert stereo.depth.linked == "sync depth"
    assert colour.asked == ((1280, 720), "interleaved", True)  # the aligned depth knows no lens
    assert [name for name, _ in found] == ["000004", "000005"]
    result = found[-1][1]
    assert result.depth.shape == (720, 1280)
    np.testing.assert_allclose(result.depth, 2.0, atol=1e-3)
    camera = result.outcome.inputs.cameras.guide
    assert (camera.fx, camera.cx, camera.cy) == (0.8 * 1280, 640.0, 360.0)


def test_without_a_camera_the_error_says_what_to_do(sdk):
    def none():
        raise RuntimeError("No available devices\nmore")

    sdk.Pipeline = none
    with pytest.raises(InputError, match="No available devices; plug a camera in"):
        open_source("oak")
