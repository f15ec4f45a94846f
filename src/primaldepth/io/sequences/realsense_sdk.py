"""Bags that the RealSense SDK records: streams under /device_N/sensor_N/, each with its own camera and place.

They are bags of ROS 1 with two peculiarities. Newer images end with a number that ROS does not know, the
length of one step of depth in metres. And a transform `tf/N` of a stream takes points of the reference N to
the stream, as the SDK plays it back: X_color = T_color T_depth^-1 X_depth.
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.motion import as_tuples, rotation
from primaldepth.io.cameras.realsense import sdk_lens
from primaldepth.io.sequences.bags import Bag, bag_errors
from primaldepth.io.sequences.bags.index import Cursor
from primaldepth.io.sequences.base import Content, Recording, Shot, check_count, same_time
from primaldepth.io.sequences.ros_images import color_pixels, depth_steps

_STREAM = re.compile(r"(/device_\d{1,4}/sensor_\d{1,4})/([A-Za-z]+)_\d{1,4}/image/data")
_GUIDES = ("Color", "Infrared")
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
    check_count(bag.root, max(len(bag.times(topic)) for topic in streams))
    notes = [f"depth from {streams.depth}, images from {streams.guide}"]
    times, others, order = _times(bag, streams, notes)
    found, lost = same_time(bag.root, times, others, within)
    pairs = [(i, order[j]) for i, j in found]
    notes.extend(lost)
    cameras, step = _cameras(bag, streams, notes), _step(bag, streams.depth)
    names = bag.times(streams.depth)
    shots = [_shot(bag, streams, pair, f"{names[pair[0]]}-{pair[0]}", cameras, step) for pair in pairs]
    return Recording("RealSense SDK bag", bag.root, shots, None, notes)


def _times(bag: Bag, streams: Streams, notes: list[str]) -> tuple[list[float], list[float], list[int]]:
    """Return (times of depth, sorted times of the images, which image has each), by one clock."""
    ours, theirs = ([_image(bag, topic, i).time for i in range(len(bag.times(topic)))] for topic in streams)
    if ours and theirs and (min(theirs) > max(ours) + 1.0 or max(theirs) < min(ours) - 1.0):
        notes.append(
            "the time stamps of the streams are of different clocks; paired by the time of recording"
        )
        ours, theirs = ([time * 1e-9 for time in bag.times(topic)] for topic in streams)
    order = sorted(range(len(theirs)), key=theirs.__getitem__)
    return ours, [theirs[index] for index in order], order


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
    with bag_errors(bag.root):
        cursor = Cursor(bag.bytes_of(topic, place), 4)
        time = cursor.number(4) + 1e-9 * cursor.number(4)
        version = cursor.text()
        height, width = cursor.number(4), cursor.number(4)
        encoding, is_bigendian, step = cursor.text(), cursor.number(1), cursor.number(4)
        data = cursor.take(cursor.number(4))
        metres = struct.unpack("<f", cursor.take(4))[0] if version == _OWN_STEP and cursor.left >= 4 else 0.0
        return _Image(time, height, width, encoding, is_bigendian, step, data, metres)


def _cameras(bag: Bag, streams: Streams, notes: list[str]) -> Cameras | None:
    """Return both cameras, or that of the image alone where the other or its place is missing."""
    depth, guide = (_camera(bag, topic, notes) for topic in streams)
    motion = _motion(bag, streams)
    if depth is None or guide is None or motion is None:
        notes.append("cameras or their places are missing: depth is taken as aligned to the image")
        return None if guide is None else Cameras(guide)
    return Cameras(guide, depth, *motion)


def _home(topic: str) -> str:
    return topic.removesuffix("/image/data")


def _camera(bag: Bag, topic: str, notes: list[str]) -> Intrinsics | None:
    name = f"{_home(topic)}/info/camera_info"
    if name not in bag.topics():
        return None
    info, lens = bag.first(name), None
    model = str(info.distortion_model)
    K, D = ([float(each) for each in values] for values in (info.K, info.D))
    if K[0] <= 0:  # not calibrated
        return None
    try:
        lens = sdk_lens(model, D)
    except InputError:
        notes.append(f"the lens of {name} ({shortened(model)}) is not known and left out")
    return Intrinsics(K[0], K[4], K[2] + 0.5, K[5] + 0.5, int(info.width), int(info.height), lens)


def _motion(bag: Bag, streams: Streams) -> tuple[Any, Any] | None:
    """Return R and t of X_guide = R X_depth + t, by a reference that both streams name, or None."""
    homes = [f"{_home(topic)}/tf/" for topic in streams]
    ours, theirs = (
        {topic.removeprefix(home): topic for topic in bag.topics() if topic.startswith(home)}
        for home in homes
    )
    for reference in sorted(ours.keys() & theirs.keys()):
        (Rd, td), (Rg, tg) = _transform(bag, ours[reference]), _transform(bag, theirs[reference])
        R = Rg @ Rd.T
        return as_tuples(R), as_tuples(tg - R @ td)
    return None


def _transform(bag: Bag, topic: str) -> tuple[Any, Any]:
    """Return R and t of a message."""
    message = bag.first(topic)
    turn, shift = message.rotation, message.translation
    q = np.array([float(each) for each in (turn.x, turn.y, turn.z, turn.w)])
    length = float(np.linalg.norm(q))
    if not abs(length - 1.0) < 1e-2:
        raise FileFormatError(bag.root, f"{topic}: a quaternion of length {length:.3g}, expected 1")
    return rotation(q), np.array([float(each) for each in (shift.x, shift.y, shift.z)])


def _step(bag: Bag, depth: str) -> float:
    """Return the metres of a step of depth: as an option of the sensor says, else a millimetre."""
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


def _shot(
    bag: Bag, streams: Streams, pair: tuple[int, int], name: str, cameras: Cameras | None, usual: float
) -> Shot:
    def content() -> Content:
        found = _image(bag, streams.depth, pair[0])
        step = _checked(bag.root, found.metres) if found.metres else usual
        metres = depth_steps(found, bag.root) * np.float32(step)
        image = color_pixels(_image(bag, streams.guide, pair[1]), bag.root)
        return Content(metres, image, None, cameras)

    return Shot(name, content, (bag.root,))
