"""examples/ros2_node.py: what it does to messages, without ROS."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "ros2_node.py"


@pytest.fixture(scope="module")
def node():
    spec = importlib.util.spec_from_file_location("ros2_node", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def message(values, encoding, big=False):
    """As sensor_msgs/Image, with rows padded by four bytes."""
    order = ">" if big else "<"
    rows = [row.astype(row.dtype.newbyteorder(order)).tobytes() + b"\xff" * 4 for row in values]
    return SimpleNamespace(
        height=values.shape[0],
        width=values.shape[1],
        encoding=encoding,
        is_bigendian=big,
        step=len(rows[0]),
        data=b"".join(rows),
    )


COLOR = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
METRES = np.linspace(1.0, 3.0, 48).reshape(6, 8)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_depth_in_both_encodings(node, encoding, big):
    stored = (METRES * 1000).round().astype(np.uint16) if encoding == "16UC1" else METRES.astype(np.float32)
    found = node.fine_depth(message(stored, encoding, big), message(COLOR, "rgb8"), method="bilinear")
    assert found.shape == (24, 32)
    assert found.dtype == np.float32
    assert found[0, 0] == pytest.approx(1.0, abs=1e-3)
    assert found[-1, -1] == pytest.approx(3.0, abs=1e-3)


def test_other_encodings_are_refused(node):
    with pytest.raises(ValueError, match="'mono8', expected 16UC1 or 32FC1"):
        node.fine_depth(message(COLOR[..., 0], "mono8"), message(COLOR, "rgb8"))


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_what_is_published_can_be_read_again(node, encoding):
    values = np.array([[1.2344, 0.0, 65.0], [2.0, 3.0, 66.0]], np.float32)
    sent = node.fill_message(SimpleNamespace(), values, encoding, "colour's header")
    assert (sent.height, sent.width, sent.step, sent.encoding) == (
        2,
        3,
        3 * (2 if encoding == "16UC1" else 4),
        encoding,
    )
    assert sent.header == "colour's header"
    found = node.depth_metres(sent, Path("sent"))
    expected = values if encoding == "32FC1" else [[1.234, 0.0, 65.0], [2.0, 3.0, 0.0]]  # 66 m do not fit
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_without_ros_it_says_so(node):
    if node.rclpy is not None:
        pytest.skip("ROS is installed here")
    with pytest.raises(SystemExit, match="needs ROS 2"):
        node.main()
