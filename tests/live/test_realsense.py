"""The RealSense source with the SDK's own software device: no camera is plugged in."""

import numpy as np
import pytest

from primaldepth.core.errors import MissingFileError
from primaldepth.live.realsense import RealSense
from primaldepth.live.sources import open_source
from primaldepth.session import Session

rs = pytest.importorskip("pyrealsense2", exc_type=ImportError)  # also where libusb is missing
LOW, HIGH = (40, 30), (80, 60)  # width, height


def stream(kind, number, size, bytes_per_pixel, form):
    made, camera = rs.video_stream(), rs.intrinsics()
    camera.width, camera.height, camera.ppx, camera.ppy = *size, size[0] / 2 - 0.5, size[1] / 2 - 0.5
    camera.fx = camera.fy = 0.9 * size[0]
    camera.model, camera.coeffs = rs.distortion.none, [0.0] * 5
    made.type, made.index, made.uid, made.fps, made.fmt = kind, 0, number, 30, form
    made.width, made.height, made.bpp, made.intrinsics = *size, bytes_per_pixel, camera
    return made


class SoftwareCamera:
    """A plane in 1.5 m, as depth in millimetres and a grey image, by the SDK's software device."""

    def __init__(self) -> None:
        self.device = rs.software_device()
        self.sensors = [self.device.add_sensor(name) for name in ("Depth", "Color")]
        streams = [
            stream(rs.stream.depth, 0, LOW, 2, rs.format.z16),
            stream(rs.stream.color, 1, HIGH, 3, rs.format.rgb8),
        ]
        self.profiles = [s.add_video_stream(each) for s, each in zip(self.sensors, streams, strict=True)]
        self.sensors[0].add_read_only_option(rs.option.depth_units, 0.001)
        motion = rs.extrinsics()
        motion.rotation, motion.translation = [1, 0, 0, 0, 1, 0, 0, 0, 1], [0.015, 0.0, 0.0]
        self.profiles[0].register_extrinsics_to(self.profiles[1], motion)
        self.device.create_matcher(rs.matchers.default)
        self.syncer, self.count, self.stopped = rs.syncer(), 0, False
        for sensor, profile in zip(self.sensors, self.profiles, strict=True):
            sensor.open(profile)
            sensor.start(self.syncer)

    def wait(self):
        """Send a pair and give what the SDK makes of it, four times."""
        if self.count == 4:
            return None
        pixels = np.full(LOW[::-1], 1500, np.uint16), np.full((*HIGH[::-1], 3), 90, np.uint8)
        for sensor, profile, image in zip(self.sensors, self.profiles, pixels, strict=True):
            frame = rs.software_video_frame()
            frame.pixels, frame.bpp = (
                image,
                image.itemsize * (image.size // (image.shape[0] * image.shape[1])),
            )
            frame.stride, frame.timestamp = frame.bpp * image.shape[1], 33.0 * self.count
            frame.domain, frame.frame_number = rs.timestamp_domain.hardware_clock, self.count
            frame.profile = profile.as_video_stream_profile()
            if image.ndim == 2:
                frame.depth_units = 0.001
            sensor.on_video_frame(frame)
        self.count += 1
        found, frames = self.syncer.try_wait_for_frames(5000)
        return frames if found else None

    def stop(self) -> None:
        for sensor in self.sensors:
            sensor.stop()
            sensor.close()
        self.stopped = True


def test_frames_of_the_software_device_become_depth_in_the_colour_view():
    camera = SoftwareCamera()
    with RealSense("realsense", camera.wait, camera.stop) as source, Session(method="bilinear") as session:
        found = [session.push_item(item) for _, item in source]
    assert camera.stopped
    assert 1 <= len(found) <= 4  # the syncer may hold back the first depth
    depth, known = np.asarray(found[-1].depth), np.asarray(found[-1].measured)
    assert depth.shape == HIGH[::-1]
    np.testing.assert_allclose(depth[known], 1.5, atol=1e-3)
    cameras = found[-1].outcome.inputs.cameras
    assert cameras.guide.width == HIGH[0]
    assert cameras.depth.width == LOW[0]
    assert cameras.guide.cx == pytest.approx(HIGH[0] / 2)
    assert cameras.translation == pytest.approx((0.015, 0.0, 0.0))


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(MissingFileError, match=r"no\.bag"):
        open_source("realsense:no.bag")
