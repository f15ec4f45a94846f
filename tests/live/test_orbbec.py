"""The Orbbec source with a stand-in of the SDK: no camera is plugged in, and its recorder needs one."""

import io
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import InputError, MissingFileError
from primaldepth.live.orbbec import orbbec_cameras
from primaldepth.live.sources import open_source
from primaldepth.session import Session

LOW, HIGH = (40, 30), (80, 60)  # width, height


class SdkError(Exception):
    pass


def lens(model="NONE", **values):
    return SimpleNamespace(model=f"OBCameraDistortionModel.{model}", **{**dict.fromkeys(LENS, 0.0), **values})


LENS = ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")


def pinhole(size):
    width, height = size
    return SimpleNamespace(
        fx=0.9 * width, fy=0.9 * width, cx=width / 2 - 0.5, cy=height / 2 - 0.5, width=width, height=height
    )


def parameters(rgb_lens=None):
    return SimpleNamespace(
        rgb_intrinsic=pinhole(HIGH),
        depth_intrinsic=pinhole(LOW),
        rgb_distortion=rgb_lens or lens(),
        depth_distortion=lens(),
        transform=SimpleNamespace(
            rot=np.eye(3, dtype=np.float32), transform=np.array([15.0, 0, 0], np.float32)
        ),
    )


def video(values, **more):
    height, width = values.shape[:2]
    return SimpleNamespace(
        get_data=lambda: values.reshape(-1).view(np.uint8),
        get_height=lambda: height,
        get_width=lambda: width,
        **{name: lambda value=value: value for name, value in more.items()},
    )


def colour(kind):
    pixels = np.full((HIGH[1], HIGH[0], 3), (200, 90, 30), np.uint8)
    if kind != "MJPG":
        return video(pixels if kind == "RGB" else pixels[..., ::-1].copy(), get_format=f"OBFormat.{kind}")
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=95)
    made = video(pixels, get_format="OBFormat.MJPG")
    made.get_data = lambda: np.frombuffer(stream.getvalue(), np.uint8)
    return made


class Pipeline:
    """A wall in 1.5 m, in steps of 0.25 mm; a set without colour comes first, and one is late."""

    kind, opened = "RGB", []

    def __init__(self, device=None):
        self.device, self.stopped = device, False
        depth = video(np.full(LOW[::-1], 6000, np.uint16), get_depth_scale=0.25, get_index=7)
        lone, both = (
            SimpleNamespace(get_depth_frame=lambda: depth, get_color_frame=lambda image=image: image)
            for image in (None, colour(self.kind))
        )
        self.frames = [lone, None, both, both]
        Pipeline.opened.append(self)

    def enable_frame_sync(self):
        self.synchronised = True

    def get_stream_profile_list(self, sensor):
        def video_profile(width, height, form, rate):
            if self.kind != "RGB":
                raise SdkError("no such profile")
            return (sensor, form)

        return SimpleNamespace(
            get_default_video_stream_profile=lambda: (sensor, "default"),
            get_video_stream_profile=video_profile,
        )

    def start(self, config):
        self.config = config

    def get_camera_param(self):
        return parameters()

    def wait_for_frames(self, milliseconds):
        return self.frames.pop(0) if self.frames else None

    def stop(self):
        self.stopped = True


class Config:
    def __init__(self):
        self.streams = []

    def enable_stream(self, profile):
        self.streams.append(profile)


@pytest.fixture
def sdk(monkeypatch):
    module = ModuleType("pyorbbecsdk")
    module.OBError, module.Pipeline, module.Config = SdkError, Pipeline, Config
    module.PlaybackDevice = lambda file: f"plays {file}"
    module.OBSensorType = SimpleNamespace(DEPTH_SENSOR="depth", COLOR_SENSOR="color")
    module.OBFormat = SimpleNamespace(RGB="RGB")
    monkeypatch.setitem(sys.modules, "pyorbbecsdk", module)
    monkeypatch.setattr(Pipeline, "opened", [])
    return module


@pytest.mark.parametrize("kind", ["RGB", "BGR", "MJPG"])
def test_frames_become_depth_in_the_colour_view(sdk, monkeypatch, kind):
    monkeypatch.setattr(Pipeline, "kind", kind)
    with open_source("orbbec") as source, Session(method="bilinear", device="cpu") as session:
        found = [(name, session.push_item(item), item) for name, item in source]
    (pipeline,) = Pipeline.opened
    assert pipeline.stopped
    assert pipeline.synchronised
    assert pipeline.config.streams == [("depth", "default"), ("color", "RGB" if kind == "RGB" else "default")]
    assert [name for name, _, _ in found] == ["000007", "000007"]
    _, result, item = found[-1]
    np.testing.assert_allclose(item.guide[30, 40], (200, 90, 30), atol=3)
    assert result.depth.shape == HIGH[::-1]
    np.testing.assert_allclose(result.depth[result.measured], 1.5, atol=1e-3)


def test_calibration_is_read_with_lens_and_motion():
    cameras = orbbec_cameras(parameters(lens("BROWN_CONRADY", k1=0.1, p2=0.01)), "orbbec")
    assert (cameras.guide.width, cameras.guide.cx, cameras.depth.cx) == (80, 40.0, 20.0)
    assert cameras.translation == pytest.approx((0.015, 0.0, 0.0))
    assert cameras.guide.distortion.coefficients[:4] == pytest.approx((0.1, 0.0, 0.0, 0.01))
    assert cameras.depth.distortion is None
    fisheye = orbbec_cameras(parameters(lens("KANNALA_BRANDT4", k4=0.02)), "orbbec").guide.distortion
    assert (fisheye.model, fisheye.coefficients) == ("fisheye", (0.0, 0.0, 0.0, 0.02))
    with pytest.raises(InputError, match="INVERSE_BROWN"):
        orbbec_cameras(parameters(lens("INVERSE_BROWN_CONRADY", k1=0.1)), "orbbec")
    empty = parameters()
    empty.rgb_intrinsic.fx = 0.0
    with pytest.raises(InputError, match="no calibration"):
        orbbec_cameras(empty, "orbbec")


def test_a_file_is_played_by_the_sdk(sdk, tmp_path):
    file = tmp_path / "a.bag"
    file.write_bytes(b"")
    open_source(f"orbbec:{file}")
    assert Pipeline.opened[0].device == f"plays {file}"
    with pytest.raises(MissingFileError, match=r"no\.bag"):
        open_source("orbbec:no.bag")


@pytest.mark.parametrize("error", [SdkError, RuntimeError])
def test_without_a_camera_the_error_says_what_to_do(sdk, error):
    def none(*_):
        raise error("No device found")

    sdk.Pipeline = none
    with pytest.raises(InputError, match="No device found; plug a camera in"):
        open_source("orbbec")
