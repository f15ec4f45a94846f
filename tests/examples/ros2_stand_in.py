"""As much of ROS 2 in Python as examples/ros2_node.py uses, for machines without ROS.

Messages have the fields of the real ones, and no others; parameters have their declared type and range.
"""

import array
import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)


def message_class(name):
    """A class with the slots of a message, all empty at first."""
    fields = tuple(field for field, _ in STORE.fielddefs[name][1])
    return type(name.split("/")[-1], (), {"__slots__": fields, "kind": name})


Image, CameraInfo, PointCloud2, PointField = (
    message_class(f"sensor_msgs/msg/{name}") for name in ("Image", "CameraInfo", "PointCloud2", "PointField")
)


def sent(message):
    """The message as ROS puts it on the wire, read again."""
    data = STORE.serialize_cdr(_typed(message), message.kind)
    return STORE.deserialize_cdr(data, message.kind)


def _typed(value):
    if isinstance(value, array.array):
        return np.frombuffer(value.tobytes(), np.uint8)
    if isinstance(value, list):
        return [_typed(each) for each in value]
    if not hasattr(value, "kind"):
        return value
    return STORE.types[value.kind](**{name: _typed(getattr(value, name)) for name in value.__slots__})


class Publisher:
    """Keeps what is published."""

    def __init__(self, kind, qos):
        self.kind, self.qos, self.messages, self.listeners = kind, qos, [], 1

    def get_subscription_count(self):
        return self.listeners

    def publish(self, message):
        assert isinstance(message, self.kind)
        self.messages.append(message)


class Node:
    """A node whose clock stands still and whose parameters come from `given`."""

    given: ClassVar[dict] = {}
    seconds = 100.0

    def __init__(self, name):
        self.name, self.publishers_by_topic, self.subscriptions_by_topic = name, {}, {}
        self.descriptors, self.logged, self.destroyed = {}, [], False

    def declare_parameter(self, name, default, descriptor):
        value = self.given.get(name, default)
        if type(value) is not type(default):
            raise TypeError(f"{name}: {value!r} is not of type {type(default).__name__}")
        for limits in (*descriptor.floating_point_range, *descriptor.integer_range):
            if not limits.from_value <= value <= limits.to_value:
                raise ValueError(f"{name}: {value} is out of range")
        self.descriptors[name] = descriptor
        return SimpleNamespace(value=value)

    def create_publisher(self, kind, topic, qos_profile, *, qos_overriding_options):
        return self.publishers_by_topic.setdefault(topic, Publisher(kind, qos_profile))

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=int(self.seconds * 1e9)))

    def get_logger(self):
        def level(name):
            return lambda text, throttle_duration_sec=None: self.logged.append((name, text))

        return SimpleNamespace(**{name: level(name) for name in ("info", "warning", "error")})

    def destroy_node(self):
        self.destroyed = True


class Subscriber:
    def __init__(self, node, kind, topic, *, qos_profile, qos_overriding_options):
        node.subscriptions_by_topic[topic] = (kind, qos_profile)


class Synchronizer:
    """Hands on the sets it is given."""

    def __init__(self, inputs, queue_size, slop):
        self.inputs, self.slop = inputs, slop

    def registerCallback(self, callback):  # noqa: N802
        self.deliver = callback


def descriptor(**values):
    return SimpleNamespace(**{"floating_point_range": [], "integer_range": [], **values})


def install(monkeypatch):
    """Put the modules where `import` finds them."""
    names = {
        "message_filters": {"Subscriber": Subscriber, "ApproximateTimeSynchronizer": Synchronizer},
        "rclpy": {},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"QoSProfile": lambda depth: f"last {depth}", "qos_profile_sensor_data": "sensor data"},
        "rclpy.qos_overriding_options": {
            "QoSOverridingOptions": SimpleNamespace(with_default_policies=lambda: "overridable")
        },
        "rcl_interfaces": {},
        "rcl_interfaces.msg": {
            "FloatingPointRange": SimpleNamespace,
            "IntegerRange": SimpleNamespace,
            "ParameterDescriptor": descriptor,
        },
        "sensor_msgs": {},
        "sensor_msgs.msg": {
            "CameraInfo": CameraInfo,
            "Image": Image,
            "PointCloud2": PointCloud2,
            "PointField": PointField,
        },
    }
    for name, members in names.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
