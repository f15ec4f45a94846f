"""A ROS 2 node: depth and colour in; fine depth, its uncertainty, what was measured, and a cloud out.

    python ros2_node.py --ros-args -p method:=pdn-any-small -p noise:=realsense-d435 \
        -r depth:=/camera/aligned_depth_to_color/image_raw \
        -r color:=/camera/color/image_raw -r camera_info:=/camera/color/camera_info

Depth must be aligned to colour: the same field of view, any size. It comes as 16UC1 (millimetres) or 32FC1
(metres). All that is published is of the colour image's size and has its header: see docs/ros2.md.
"""

import array
import functools
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import primaldepth
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io.cameras.ros import camera_of
from primaldepth.io.sequences.ros_images import color_pixels, depth_metres
from primaldepth.pipeline.request import Item

try:
    import message_filters
    import rclpy
    from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, qos_profile_sensor_data
    from rclpy.qos_overriding_options import QoSOverridingOptions
    from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
except ImportError:  # without ROS the conversions below still work
    rclpy, Node = None, object

_ENCODINGS = {"16UC1": (np.uint16, 1000.0), "32FC1": (np.float32, 1.0)}
_FLOAT32 = 7  # PointField.FLOAT32


@dataclass(frozen=True)
class Parameter:
    """A parameter of the node: its type is that of the default, and numbers have a range."""

    default: str | bool | int | float
    about: str
    least: float = 0.0
    most: float = 0.0


PARAMETERS = {
    "method": Parameter("pdn-any-small", "a name of `primaldepth methods`"),
    "noise": Parameter("auto", "auto, metres, or a sensor such as realsense-d435"),
    "temporal": Parameter(False, "average over time, along the camera's motion"),
    "static_scene": Parameter(False, "with temporal: nothing moves but the camera, so average all that fits"),
    "spikes": Parameter("drop", "drop or keep samples that stand out from all around them"),
    "device": Parameter("auto", "auto, cpu or cuda"),
    "rectified": Parameter(False, "whether the colour image was rectified: P of camera_info counts, not K"),
    "max_depth": Parameter(0.0, "metres from which on samples count as holes; 0 for no limit", 0.0, 1e6),
    "slop": Parameter(0.02, "seconds that depth and colour may lie apart", 0.0, 1.0),
    "max_age": Parameter(
        0.5, "seconds from which on a frame is too old to be worked on; 0 for any", 0.0, 3600.0
    ),
    "cloud_step": Parameter(1, "of each so many rows and columns the cloud has one", 1, 64),
}


def item_of(depth: Any, color: Any, info: Any, *, rectified: bool = False) -> Item:
    """Return the inputs that a depth, a colour and a camera_info message are."""
    if depth.encoding not in _ENCODINGS:
        raise ValueError(f"depth of encoding '{depth.encoding}', expected {' or '.join(_ENCODINGS)}")
    image = color_pixels(color, Path("color"))
    camera = camera_of(info, image.shape[:2], rectified=rectified)
    cameras = None if camera is None else Cameras(camera)
    return Item(depth_metres(depth, Path("depth")), image, cameras=cameras, unit="m")


def fill_image(message: Any, values: NDArray[Any], encoding: str, header: Any) -> Any:
    """Write metres, or a mask of mono8, into a sensor_msgs/Image.

    0 is nothing measured, and so is what the 16 bits of 16UC1 cannot hold.
    """
    kind, scale = (np.uint8, 255) if encoding == "mono8" else _ENCODINGS[encoding]
    stored = values * scale
    if kind is np.uint16:
        stored = np.where((stored > 0) & (stored < 65535.5), np.rint(stored), 0)
    message.header, message.encoding, message.is_bigendian = header, encoding, 0
    message.height, message.width = values.shape
    message.step = message.width * np.dtype(kind).itemsize
    message.data = _octets(stored.astype(np.dtype(kind).newbyteorder("<")))
    return message


def _octets(values: NDArray[Any]) -> "array.array[int]":
    """Return the bytes in the form that messages take without a look at each of them."""
    return array.array("B", values.tobytes())


@functools.lru_cache(maxsize=1)
def _rays(camera: Intrinsics, step: int) -> NDArray[np.float32]:
    return camera.rays()[::step, ::step].astype(np.float32)


def fill_cloud(message: Any, field: Any, depth: NDArray[Any], item: Item, header: Any, step: int = 1) -> Any:
    """Write an organised cloud of x, y, z (metres, NaN where there is no depth) and rgb.

    Args:
        message: an empty sensor_msgs/PointCloud2.
        field: makes an empty sensor_msgs/PointField.
        depth: (H, W) metres, 0 for nothing.
        item: with the image and its camera.
        header: of the message.
        step: of each so many rows and columns one is taken.
    """
    z = depth[::step, ::step].astype(np.float32)
    red, green, blue = np.moveaxis(np.asarray(item.guide)[::step, ::step].astype(np.uint32), -1, 0)
    points = np.empty((*z.shape, 4), "<f4")
    points[..., :3] = _rays(item.cameras.guide, step) * np.where(z > 0, z, np.nan)[..., None]
    points[..., 3] = (red << 16 | green << 8 | blue).view(np.float32)
    message.header, message.is_bigendian, message.is_dense = header, False, False
    message.height, message.width, message.point_step = *z.shape, 16
    message.row_step, message.data = 16 * z.shape[1], _octets(points)
    message.fields = []
    for index, name in enumerate(("x", "y", "z", "rgb")):
        each = field()
        each.name, each.offset, each.datatype, each.count = name, 4 * index, _FLOAT32, 1
        message.fields.append(each)
    return message


class Newest:
    """A place for one thing: who takes it out gets the newest, older ones are lost and counted."""

    def __init__(self) -> None:
        self._changed, self._held, self._closed, self.lost = threading.Condition(), None, False, 0

    def put(self, thing: Any) -> None:
        """Put the thing there, in place of one that nobody took."""
        with self._changed:
            self.lost += self._held is not None
            self._held = thing
            self._changed.notify()

    def take(self) -> Any:
        """Wait for a thing and take it out; None once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._held is not None or self._closed)
            found, self._held = self._held, None
            return None if self._closed else found

    def close(self) -> None:
        """Wake who waits, with None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class FineDepth(Node):
    """Waits for depth, colour and camera_info of about the same time, and works on the newest such set."""

    def __init__(self) -> None:
        super().__init__("fine_depth")
        self._chosen = {name: self._declared(name, each) for name, each in PARAMETERS.items()}
        shared = ("method", "noise", "temporal", "static_scene", "spikes", "device")
        options = {name: self._chosen[name] for name in shared}
        self._session = primaldepth.Session(unit="m", max_depth=self._chosen["max_depth"] or None, **options)
        self._topics = {
            name: self._published(kind, topic)
            for name, (kind, topic) in {
                "depth": (Image, "depth_fine"),
                "info": (CameraInfo, "depth_fine/camera_info"),
                "sigma": (Image, "depth_fine/sigma"),
                "measured": (Image, "depth_fine/measured"),
                "cloud": (PointCloud2, "depth_fine/points"),
            }.items()
        }
        kinds = (("depth", Image), ("color", Image), ("camera_info", CameraInfo))
        sensors = {"qos_profile": qos_profile_sensor_data, "qos_overriding_options": _overridable()}
        inputs = [message_filters.Subscriber(self, kind, topic, **sensors) for topic, kind in kinds]
        self._sets = message_filters.ApproximateTimeSynchronizer(
            inputs, queue_size=5, slop=self._chosen["slop"]
        )
        self._newest, self.too_old = Newest(), 0
        self._sets.registerCallback(lambda *messages: self._newest.put(messages))
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._worker.start()

    def _declared(self, name: str, parameter: Parameter) -> Any:
        """Declare a parameter that is fixed once the node runs, and return its value."""
        described = ParameterDescriptor(name=name, description=parameter.about, read_only=True)
        ends = {"from_value": parameter.least, "to_value": parameter.most}
        if type(parameter.default) is float:
            described.floating_point_range = [FloatingPointRange(**ends)]
        elif type(parameter.default) is int:
            described.integer_range = [IntegerRange(**ends, step=1)]
        return self.declare_parameter(name, parameter.default, described).value

    def _published(self, kind: Any, topic: str) -> Any:
        """Reliable, which every subscriber can take, unless qos_overrides say otherwise; the newest alone."""
        return self.create_publisher(kind, topic, QoSProfile(depth=1), qos_overriding_options=_overridable())

    def _work(self) -> None:
        while (messages := self._newest.take()) is not None:
            if self._is_fresh(messages[1].header.stamp):
                self._run(*messages)

    def _is_fresh(self, stamp: Any) -> bool:
        now = self.get_clock().now().nanoseconds
        age, most = (now - 10**9 * stamp.sec - stamp.nanosec) / 1e9, self._chosen["max_age"]
        if not most or age <= most:
            return True
        self.too_old += 1
        text = (
            f"{self.too_old} frames were older than {most:g} s, this one by {age:.2f} s: are clocks in step?"
        )
        self.get_logger().warning(text, throttle_duration_sec=5.0)
        return False

    def _run(self, depth: Any, color: Any, info: Any) -> None:
        try:
            item = item_of(depth, color, info, rectified=self._chosen["rectified"])
            found = self._session.push_item(item)
        except (ValueError, primaldepth.PrimalDepthError) as error:
            self.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        values, header = np.where(found.valid, found.depth, 0.0), color.header
        self._publish("depth", lambda: fill_image(Image(), values, depth.encoding, header))
        self._publish("info", lambda: info)
        self._publish("measured", lambda: fill_image(Image(), found.measured, "mono8", header))
        if found.sigma is not None:
            self._publish("sigma", lambda: fill_image(Image(), found.sigma, "32FC1", header))
        if item.cameras is not None:
            step = self._chosen["cloud_step"]
            self._publish("cloud", lambda: fill_cloud(PointCloud2(), PointField, values, item, header, step))
        text = f"{self._session.rate:.1f} frames/s possible, {self._newest.lost} passed over"
        self.get_logger().info(text, throttle_duration_sec=10.0)

    def _publish(self, name: str, message: Any) -> None:
        """Make a message and publish it, if anybody listens."""
        if self._topics[name].get_subscription_count():
            self._topics[name].publish(message())

    def destroy_node(self) -> None:
        """Finish the frame at work, then stop."""
        self._newest.close()
        self._worker.join()
        self._session.close()
        super().destroy_node()


def _overridable() -> Any:
    """Let `qos_overrides./TOPIC.publisher.reliability` and its kin change what the code chose."""
    return QoSOverridingOptions.with_default_policies()


def main() -> None:
    """Spin until Ctrl-C."""
    if rclpy is None:
        raise SystemExit("this node needs ROS 2: source its setup.bash, then start it again")
    rclpy.init()
    node = FineDepth()
    warnings.showwarning = lambda message, *_: node.get_logger().warning(str(message))
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
