"""examples/ros2_node.py: its messages by themselves, and the node with a stand-in of rclpy."""

import importlib.util
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ros = pytest.importorskip("ros2_stand_in", exc_type=ModuleNotFoundError)  # without rosbags there is none

EXAMPLE = Path(__file__).parents[2] / "examples" / "ros2_node.py"
COLOR = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
METRES = np.linspace(1.0, 3.0, 48).reshape(6, 8)
TOPICS = ("", "/camera_info", "/sigma", "/measured", "/points")


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def without_ros():
    return loaded("ros2_node")


@pytest.fixture
def with_ros(monkeypatch):
    ros.install(monkeypatch)
    monkeypatch.setattr(ros.Node, "given", {"method": "bilinear", "device": "cpu"})
    return loaded("ros2_node_with_ros")


@pytest.fixture
def node(with_ros):
    made = with_ros.FineDepth()
    yield made
    made.destroy_node()


def header(seconds=99.9):
    stamp = ros.STORE.types["builtin_interfaces/msg/Time"](int(seconds), int(seconds % 1 * 1e9))
    return ros.STORE.types["std_msgs/msg/Header"](stamp, "camera_color_optical_frame")


def message(values, encoding, big=False, seconds=99.9):
    """As sensor_msgs/Image, with rows padded by four bytes."""
    order = ">" if big else "<"
    rows = [row.astype(row.dtype.newbyteorder(order)).tobytes() + b"\xff" * 4 for row in values]
    return SimpleNamespace(
        header=header(seconds),
        height=values.shape[0],
        width=values.shape[1],
        encoding=encoding,
        is_bigendian=big,
        step=len(rows[0]),
        data=b"".join(rows),
    )


def camera_info(focal=30.0, lens=(0.0,) * 5):
    info = ros.CameraInfo()
    info.header, info.width, info.height, info.distortion_model = header(), 32, 24, "plumb_bob"
    info.k = np.array([focal, 0, 15.5, 0, focal, 11.5, 0, 0, 1])
    info.p = np.array([20.0, 0, 15.5, 0, 0, 20.0, 11.5, 0, 0, 0, 1, 0])
    info.d, info.r, info.binning_x, info.binning_y = np.array(lens), np.eye(3).ravel(), 0, 0
    info.roi = ros.STORE.types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    return info


def frames(seconds=99.9, metres=METRES):
    return (
        message((metres * 1000).round().astype(np.uint16), "16UC1", seconds=seconds),
        message(COLOR, "rgb8", seconds=seconds),
        camera_info(),
    )


def published(node):
    """Lists of messages, by what comes behind the name of the depth."""
    return {name: node.publishers_by_topic[f"depth_fine{name}"].messages for name in TOPICS}


def finish(node, *sets):
    """Deliver sets and end the node, which works on what it has taken first."""
    for each in sets:
        node._sets.deliver(*each)
        while node._newest._held is not None:
            threading.Event().wait(0.001)
    node.destroy_node()
    return published(node)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_depth_in_both_encodings(without_ros, encoding, big):
    stored = (METRES * 1000).round().astype(np.uint16) if encoding == "16UC1" else METRES.astype(np.float32)
    item = without_ros.item_of(message(stored, encoding, big), message(COLOR, "rgb8"), camera_info())
    np.testing.assert_allclose(item.depth, METRES, atol=1e-3)
    np.testing.assert_array_equal(item.guide, COLOR)


def test_other_encodings_are_refused(without_ros):
    with pytest.raises(ValueError, match="'mono8', expected 16UC1 or 32FC1"):
        without_ros.item_of(message(COLOR[..., 0], "mono8"), message(COLOR, "rgb8"), camera_info())


def test_the_camera_is_that_of_the_raw_or_of_the_rectified_image(without_ros):
    info = camera_info(lens=(0.1, 0, 0, 0, 0))
    raw = without_ros.camera_of(info, (24, 32), rectified=False)
    assert (raw.fx, raw.cx, raw.distortion is None) == (30.0, 16.0, False)
    rectified = without_ros.camera_of(info, (24, 32), rectified=True)
    assert (rectified.fx, rectified.distortion) == (20.0, None)
    assert without_ros.camera_of(info, (48, 64), rectified=True) is None
    uncalibrated = camera_info(focal=0.0)
    assert without_ros.camera_of(uncalibrated, (24, 32), rectified=False) is None


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_what_is_published_can_be_read_again(without_ros, encoding):
    values = np.array([[1.2344, 0.0, 65.0], [2.0, 3.0, 66.0]], np.float32)
    found = ros.sent(without_ros.fill_image(ros.Image(), values, encoding, header()))
    size = 2 if encoding == "16UC1" else 4
    assert (found.height, found.width, found.step, found.encoding) == (2, 3, 3 * size, encoding)
    assert found.header.frame_id == "camera_color_optical_frame"
    expected = values if encoding == "32FC1" else [[1.234, 0.0, 65.0], [2.0, 3.0, 0.0]]  # 66 m do not fit
    np.testing.assert_allclose(without_ros.depth_metres(found, Path("sent")), expected, atol=1e-6)


def test_a_set_becomes_depth_measured_camera_and_cloud(node):
    found = finish(node, frames())
    assert [len(found[name]) for name in TOPICS] == [1, 1, 0, 1, 1]  # bilinear has no sigma
    depth, measured = ros.sent(found[""][0]), ros.sent(found["/measured"][0])
    millimetres = depth.data.view("<u2").reshape(24, 32)
    assert (millimetres[0, 0], millimetres[-1, -1]) == (1000, 3000)
    assert (measured.encoding, set(measured.data.tolist())) == ("mono8", {255})
    assert found["/camera_info"][0].k[0] == 30.0
    cloud = ros.sent(found["/points"][0])
    assert [(field.name, field.offset) for field in cloud.fields] == [
        ("x", 0),
        ("y", 4),
        ("z", 8),
        ("rgb", 12),
    ]
    points = cloud.data.view("<f4").reshape(24, 32, 4)
    np.testing.assert_allclose(points[..., 2], millimetres / 1000, atol=1e-3)
    np.testing.assert_allclose(points[0, 0, 0], (0.5 - 16.0) / 30.0, atol=1e-4)
    assert cloud.data.reshape(24, 32, 16)[3, 5, 12:15].tolist() == COLOR[3, 5, ::-1].tolist()


def test_sigma_is_published_by_methods_that_have_it(with_ros, monkeypatch):
    monkeypatch.setattr(ros.Node, "given", {"method": "pdn-any-small", "device": "cpu"})
    found = finish(with_ros.FineDepth(), frames())
    sigma = ros.sent(found["/sigma"][0])
    values = sigma.data.view("<f4").reshape(24, 32)
    assert sigma.encoding == "32FC1"
    assert np.isfinite(values).all()
    assert (values > 0).all()


def test_holes_are_nan_in_the_cloud_and_0_in_the_depth(without_ros):
    depth = np.full((24, 32), 2.0, np.float32)
    depth[5, 6] = 0.0
    item = without_ros.item_of(*frames())
    made = without_ros.fill_cloud(ros.PointCloud2(), ros.PointField, depth, item, header(), step=1)
    points = ros.sent(made).data.view("<f4").reshape(24, 32, 4)
    assert np.isnan(points[5, 6, :3]).all()
    assert np.isfinite(np.delete(points.reshape(-1, 4), 5 * 32 + 6, axis=0)[:, :3]).all()
    fewer = without_ros.fill_cloud(ros.PointCloud2(), ros.PointField, depth, item, header(), step=4)
    assert (fewer.height, fewer.width, fewer.row_step) == (6, 8, 128)
    np.testing.assert_array_equal(
        ros.sent(fewer).data.view("<f4").reshape(6, 8, 4)[..., :3], points[::4, ::4, :3]
    )


def test_nothing_is_made_for_nobody(node):
    node.publishers_by_topic["depth_fine/points"].listeners = 0
    found = finish(node, frames())
    assert (len(found[""]), len(found["/points"])) == (1, 0)


def test_stale_frames_are_dropped(node):
    found = finish(node, frames(seconds=99.4), frames(seconds=99.6))  # it is 100.0
    assert (len(found[""]), node.too_old) == (1, 1)
    assert any("older than 0.5 s" in text for level, text in node.logged if level == "warning")


def test_a_frame_that_cannot_be_used_does_not_stop_the_node(node):
    found = finish(node, frames(metres=np.zeros((6, 8))), frames())
    assert len(found[""]) == 1
    assert [level for level, _ in node.logged].count("error") == 1


def test_who_is_slow_gets_the_newest(without_ros):
    place = without_ros.Newest()
    for number in range(5):
        place.put(number)
    assert (place.take(), place.lost) == (4, 4)
    waiting = threading.Timer(0.01, place.close)
    waiting.start()
    assert place.take() is None
    waiting.join()


def test_sensors_are_subscribed_as_sensors_and_parameters_are_typed(node, with_ros, monkeypatch):
    assert {qos for _, qos in node.subscriptions_by_topic.values()} == {"sensor data"}
    assert set(node.subscriptions_by_topic) == {"depth", "color", "camera_info"}
    assert {each.qos for each in node.publishers_by_topic.values()} == {"last 1"}
    assert all(each.description and each.read_only for each in node.descriptors.values())
    for wrong, error in (
        ({"cloud_step": 0}, ValueError),
        ({"slop": 1}, TypeError),
        ({"max_age": -1.0}, ValueError),
    ):
        monkeypatch.setattr(ros.Node, "given", wrong)
        with pytest.raises(error, match=next(iter(wrong))):
            with_ros.FineDepth()


def test_without_ros_it_says_so(without_ros):
    if without_ros.rclpy is not None:
        pytest.skip("ROS is installed here")
    with pytest.raises(SystemExit, match="needs ROS 2"):
        without_ros.main()
