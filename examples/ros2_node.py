"""A ROS 2 node: depth and colour in, depth of the colour image's size out.

    python ros2_node.py --ros-args -p method:=pdn-any -p noise:=realsense-d435 \
        -r depth:=/camera/aligned_depth_to_color/image_raw \
        -r color:=/camera/color/image_raw -r camera_info:=/camera/color/camera_info

Depth must be aligned to colour: the same field of view, any size. It comes as 16UC1 (millimetres) or 32FC1
(metres), and leaves as the topic `depth_fine` in the same encoding, with the colour camera's camera_info.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import primaldepth
from primaldepth.io.sequences.ros_images import color_pixels, depth_metres

try:
    import message_filters
    import rclpy
    from rclpy.node import Node
    from sensor_msgs.msg import CameraInfo, Image
except ImportError:  # without ROS the conversions below still work
    rclpy, Node = None, object

_PARAMETERS = {"method": "pdn-any", "noise": "auto", "spikes": "drop", "device": "auto"}
_ENCODINGS = {"16UC1": (np.uint16, 1000.0), "32FC1": (np.float32, 1.0)}


def fine_depth(depth: Any, color: Any, **options: Any) -> NDArray[np.float32]:
    """(H, W) metres of a depth and a colour message; `options` are those of `primaldepth.upsample`."""
    if depth.encoding not in _ENCODINGS:
        raise ValueError(f"depth of encoding '{depth.encoding}', expected {' or '.join(_ENCODINGS)}")
    found = primaldepth.upsample(
        depth_metres(depth, Path("depth")), color_pixels(color, Path("color")), unit="m", **options
    )
    return np.where(found.valid, found.depth, 0.0).astype(np.float32)


def fill_message(message: Any, values: NDArray[np.float32], encoding: str, header: Any) -> Any:
    """Write metres into a sensor_msgs/Image: 0 is nothing measured, and so is what 16 bits cannot hold."""
    kind, scale = _ENCODINGS[encoding]
    stored = values * scale
    if kind is np.uint16:
        stored = np.where((stored > 0) & (stored < 65535.5), np.rint(stored), 0)
    message.header, message.encoding, message.is_bigendian = header, encoding, 0
    message.height, message.width = values.shape
    message.step = message.width * np.dtype(kind).itemsize
    message.data = stored.astype(np.dtype(kind).newbyteorder("<")).tobytes()
    return message


class FineDepth(Node):
    """Waits for depth, colour and camera_info of about the same time, and publishes for each such set."""

    def __init__(self) -> None:
        super().__init__("fine_depth")
        self._options = {
            name: self.declare_parameter(name, default).value for name, default in _PARAMETERS.items()
        }
        slop = self.declare_parameter("slop", 0.02).value  # seconds
        self._image = self.create_publisher(Image, "depth_fine", 1)
        self._info = self.create_publisher(CameraInfo, "depth_fine/camera_info", 1)
        kinds = (("depth", Image), ("color", Image), ("camera_info", CameraInfo))
        inputs = [message_filters.Subscriber(self, kind, topic) for topic, kind in kinds]
        self._sets = message_filters.ApproximateTimeSynchronizer(inputs, queue_size=2, slop=slop)
        self._sets.registerCallback(self._run)

    def _run(self, depth: Any, color: Any, info: Any) -> None:
        try:
            values = fine_depth(depth, color, **self._options)
        except (ValueError, primaldepth.PrimalDepthError) as error:
            self.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        self._image.publish(fill_message(Image(), values, depth.encoding, color.header))
        self._info.publish(info)


def main() -> None:
    """Spin until Ctrl-C."""
    if rclpy is None:
        raise SystemExit("this node needs ROS 2: source its setup.bash, then start it again")
    rclpy.init()
    node = FineDepth()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
