"""Bags that the RealSense SDK records: streams under /device_N/sensor_N/, each with its own camera and place.

They are bags of ROS 1 with two peculiarities. Newer images end with a number that ROS does not know, the
length of one step of depth in metres. And a transform `tf/N` of a stream takes points of the reference N to
the stream, as the SDK plays it back: X_color = T_color T_depth^-1 X_depth.
"""

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, shortened
from primaldepth.geometry.pinhole import Beside, Pinhole
from primaldepth.io.sequences.bags import Bag, told
from primaldepth.io.sequences.bags.index import Cursor
from primaldepth.io.sequences.base import MOST_SHOTS, Content, Recording, Shot, nearest_in_time
from primaldepth.io.sequences.ros_images import color_pixels, depth_steps

_STREAM = re.compile(r"(/device_\d{1,4}/sensor_\d{1,4})/([A-Za-z]+)_\d{1,4}/image/data")
_GUIDES = ("Color", "Infrared")
LENSES = {
    "none": None,
    "brown_conrady": "plumb_bob",
    "modified_brown_conrady": "modified_plumb_bob",
    "inverse_brown_conrady": "modified_plumb_bob",
    "kannala_brandt4": "fisheye",
}
_USUAL_STEP = 0.001  # metres of a step of depth
_OWN_STEP = "1"  # what stands in place of the frame's name where the image ends with the step
_MOST_PROPERTIES = 256


class Streams(NamedTuple):
    """Topics of the images: depth, and colour or the left infrared camera."""

    depth: str
    guide: str


def streams_of(topics: Mapping[str, str]) -> Streams | None:
    """Return the streams of a bag; None where the SDK has not recorded it, or no image beside the depth."""
    found = {topic: match[2] for topic in sorted(topics) if (match := _STREAM.fullmatch(topic))}
    depths = [topic for topic, kind in found.items() if kind == "Depth"]
    guides = [topic for kind in _GUIDES for topic, each in found.items() if each == kind]
    return Streams(depths[0], guides[0]) if depths and guides else None


def read(bag: Bag, streams: Streams, within: float) -> Recording:
    """Pair each depth image with the image nearest by the device's time stamps."""
    counts = [len(bag.times(topic)) for topic in streams]
    if max(counts) > MOST_SHOTS:
        raise FileFormatError(bag.root, f"more than {MOST_SHOTS} images on a topic", "split the bag")
    notes = [f"depth from {streams.depth}, images from {streams.guide}"]
    times, others, order = _times(bag, streams, notes)
    partners = nearest_in_time(times, others, within) if others else [None] * len(times)
    pairs = [(i, order[j]) for i, j in enumerate(partners) if j is not None]
    if not pairs:
        raise FileFormatError(
            bag.root,
            f"{counts[0]} depth images and {counts[1]} others, none within {within:g} s of each "
            f"other{_nearest(times, others)}",
            "give --time-apart",
        )
    if lost := counts[0] - len(pairs):
        notes.append(f"{lost} of {counts[0]} depth images have no other image within {within:g} s")
    rig = _RecordedCameras.of(bag, streams, notes)
    names = bag.times(streams.depth)
    shots = [_shot(bag, streams, pair, f"{names[pair[0]]}-{pair[0]}", rig) for pair in pairs]
    return Recording("RealSense SDK bag", bag.root, shots, None, notes)


def _times(bag: Bag, streams: Streams, notes: list[str]) -> tuple[list[float], list[float], list[int]]:
    """(times of depth, sorted times of the images, which image has each), by one clock."""
    ours, theirs = ([_image(bag, topic, i).time for i in range(len(bag.times(topic)))] for topic in streams)
    if ours and theirs and (min(theirs) > max(ours) + 1.0 or max(theirs) < min(ours) - 1.0):
        notes.append(
            "the time stamps of the streams are of different clocks; paired by the time of recording"
        )
        ours, theirs = ([time * 1e-9 for time in bag.times(topic)] for topic in streams)
    order = sorted(range(len(theirs)), key=theirs.__getitem__)
    return ours, [theirs[index] for index in order], order


def _nearest(times: Sequence[float], others: Sequence[float]) -> str:
    found = [abs(one - other) for one in times[:1000] for other in others[:1000]]
    return f", the nearest {min(found):.3f} s" if found else ""


@dataclass(frozen=True, slots=True)
class _Image:
    """sensor_msgs/Image as `ros_images` takes it, with the step of depth that the SDK adds, or 0."""

    time: float
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: bytes
    metres: float = 0.0


def _image(bag: Bag, topic: str, place: int) -> _Image:
    with told(bag.root):
        cursor = Cursor(bag.bytes_of(topic, place), 4)
        time = cursor.number(4) + 1e-9 * cursor.number(4)
        version = cursor.text()
        height, width = cursor.number(4), cursor.number(4)
        encoding, is_bigendian, step = cursor.text(), cursor.number(1), cursor.number(4)
        data = cursor.take(cursor.number(4))
        metres = struct.unpack("<f", cursor.take(4))[0] if version == _OWN_STEP and cursor.left >= 4 else 0.0
        return _Image(time, height, width, encoding, is_bigendian, step, data, metres)


@dataclass(frozen=True, slots=True)
class _RecordedCameras:
    """What the bag says of its cameras.

    Args:
        step: metres of a step of depth, where the image does not say.
    """

    guide: Pinhole | None
    beside: Beside | None
    step: float

    @classmethod
    def of(cls, bag: Bag, streams: Streams, notes: list[str]) -> "_RecordedCameras":
        depth, guide = (_camera(bag, topic, notes) for topic in streams)
        motion = _motion(bag, streams)
        if depth is None or guide is None or motion is None:
            notes.append("cameras or their places are missing: depth is taken as aligned to the image")
            return cls(guide, None, _step(bag, streams.depth))
        return cls(guide, Beside(depth, *motion), _step(bag, streams.depth))


def _home(topic: str) -> str:
    return topic.removesuffix("/image/data")


def _camera(bag: Bag, topic: str, notes: list[str]) -> Pinhole | None:
    name = f"{_home(topic)}/info/camera_info"
    if name not in bag.topics():
        return None
    info = bag.first(name)
    K, D = ([float(each) for each in values] for values in (info.K, info.D))
    model = str(info.distortion_model).lower().replace(" ", "_")
    lens = None
    if any(D) and LENSES.get(model) is not None:
        lens = (str(LENSES[model]), tuple(D[:4] if LENSES[model] == "fisheye" else D))
    elif any(D):
        notes.append(f"the lens of {name} ({shortened(model)}) is not known and left out")
    return Pinhole(K[0], K[4], K[2] + 0.5, K[5] + 0.5, int(info.width), int(info.height), lens)


def _motion(bag: Bag, streams: Streams) -> tuple[Any, Any] | None:
    """R and t of X_guide = R X_depth + t, by a reference that both streams name; None where there is none."""
    homes = [f"{_home(topic)}/tf/" for topic in streams]
    ours, theirs = (
        {topic.removeprefix(home): topic for topic in bag.topics() if topic.startswith(home)}
        for home in homes
    )
    for reference in sorted(ours.keys() & theirs.keys()):
        (Rd, td), (Rg, tg) = _transform(bag, ours[reference]), _transform(bag, theirs[reference])
        R = Rg @ Rd.T
        return tuple(map(tuple, R.tolist())), tuple((tg - R @ td).tolist())
    return None


def _transform(bag: Bag, topic: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    message = bag.first(topic)
    x, y, z, w = (float(getattr(message.rotation, axis)) for axis in "xyzw")
    length = math.sqrt(x * x + y * y + z * z + w * w)
    if not abs(length - 1.0) < 1e-2:
        raise FileFormatError(bag.root, f"{topic}: a quaternion of length {length:.3g}, expected 1")
    x, y, z, w = x / length, y / length, z / length, w / length
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    shift = np.array([float(getattr(message.translation, axis)) for axis in "xyz"])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross, shift


def _step(bag: Bag, depth: str) -> float:
    """Metres of a step of depth as an option of the sensor says, or the usual millimetre."""
    match = _STREAM.fullmatch(depth)
    home, topics = "" if match is None else match[1], bag.topics()
    for name in ("Depth Units", "Depth_Units"):
        if f"{home}/option/{name}/value" in topics:
            return _checked(bag.root, float(bag.first(f"{home}/option/{name}/value").data))
    if f"{home}/property" in topics:
        times = dict.fromkeys(bag.times(f"{home}/property")[:_MOST_PROPERTIES])
        found = (bag.first(f"{home}/property", time) for time in times)
        for each in found:
            if each.key == "Depth Units" and re.fullmatch(r"[0-9.eE+-]{1,20}", each.value):
                return _checked(bag.root, float(each.value))
    return _USUAL_STEP


def _checked(root: Path, step: float) -> float:
    if not 1e-6 <= step <= 1.0:
        raise FileFormatError(root, f"a step of depth of {step:g} m", "expected about 0.001")
    return step


def _shot(bag: Bag, streams: Streams, pair: tuple[int, int], name: str, rig: _RecordedCameras) -> Shot:
    def content() -> Content:
        found = _image(bag, streams.depth, pair[0])
        step = _checked(bag.root, found.metres) if found.metres else rig.step
        metres = depth_steps(found, bag.root) * np.float32(step)
        image = color_pixels(_image(bag, streams.guide, pair[1]), bag.root)
        return Content(metres, image, None, rig.guide, rig.beside)

    return Shot(name, content, (bag.root,))
