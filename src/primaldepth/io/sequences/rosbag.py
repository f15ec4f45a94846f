"""ROS 1 and 2 bags: depth and colour topics, paired by time; needs the extra `bags`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from primaldepth.core.errors import SHOWN, FileFormatError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io.cameras.ros import camera_of, unknown_lens
from primaldepth.io.files import open_file
from primaldepth.io.sequences import realsense_sdk
from primaldepth.io.sequences.bags import FILES, METADATA, Bag, open_bag
from primaldepth.io.sequences.base import Content, Recording, Shot, same_time
from primaldepth.io.sequences.ros_images import color_pixels, depth_metres, is_depth, is_grey

_IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
_INFO_TYPE = "sensor_msgs/msg/CameraInfo"
_HEAD = 2**16  # bytes of the metadata in which its name stands
_MOST_IMAGES = 64  # topics of them
_FindCamera = Callable[[tuple[int, ...]], Intrinsics | None]
MAX_DIFFERENCE = 0.05  # seconds between depth and image: drivers stamp them up to a frame apart


def recognise(root: Path) -> bool:
    """Return whether it is a bag file, or a folder as ROS 2 writes it."""
    if not root.is_dir():
        return root.is_file() and root.suffix.lower() in FILES
    described = root / METADATA
    if not described.is_file():
        return False
    with open_file(described) as file:
        return b"rosbag2_bagfile_information" in file.read(_HEAD)


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair each depth image with the colour image nearest in time."""
    bag = open_bag(root)
    topics, within = bag.topics(), MAX_DIFFERENCE if time_apart is None else time_apart
    if streams := realsense_sdk.streams_of(topics):
        return realsense_sdk.read(bag, streams, within)
    depth, color = _choose(bag, topics)
    times, others = bag.times(depth), bag.times(color)
    pairs, lost = same_time(root, [t * 1e-9 for t in times], [t * 1e-9 for t in others], within)
    notes = [f"depth from {depth}, images from {color}", *lost]
    find_camera = _camera_finder(bag, topics, color, notes)
    shots = [_shot(bag, depth, color, (times[i], others[j]), find_camera) for i, j in pairs]
    return Recording("ROS bag", root, shots, None, notes)


def _choose(bag: Bag, topics: dict[str, str]) -> tuple[str, str]:
    """Return (depth, colour): registered depth if there is some, and the colour topic most like its name."""
    named = [topic for topic, kind in sorted(topics.items()) if kind in _IMAGE_TYPES]
    if len(named) > _MOST_IMAGES:
        raise FileFormatError(bag.root, f"{len(named)} topics of images, more than {_MOST_IMAGES}")
    images = {topic: bag.first(topic) for topic in named}
    deep = [topic for topic, message in images.items() if is_depth(message)]
    depths = [topic for topic in deep if _says_depth(topic) or not is_grey(images[topic])]
    colors = [topic for topic in images if topic not in deep]
    if not depths or not colors:
        names = [f"{topic[:SHOWN]} ({kind.split('/')[-1][:SHOWN]})" for topic, kind in sorted(topics.items())]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        found = ", ".join(names[:8]) + more or "no topic"
        raise FileFormatError(
            bag.root, "needs a topic of depth images (16UC1 or 32FC1) and one of colour", f"found {found}"
        )
    depth = min(depths, key=lambda name: (not _registered(name), not _says_depth(name), len(name), name))
    color = min(colors, key=lambda name: ("color" not in name and "rgb" not in name, len(name), name))
    return depth, color


def _registered(topic: str) -> bool:
    return "aligned" in topic or "registered" in topic or "to_color" in topic or "to_rgb" in topic


def _says_depth(topic: str) -> bool:
    return "depth" in topic.lower()


def _camera_finder(bag: Bag, topics: dict[str, str], color: str, notes: list[str]) -> _FindCamera:
    """Return a function from an image's size to its camera, by the CameraInfo beside the colour topic."""
    home, _, name = color.removesuffix("/compressed").rpartition("/")
    if topics.get(f"{home}/camera_info") != _INFO_TYPE:
        return lambda size: None
    info = bag.first(f"{home}/camera_info")
    rectified = any(word.startswith("rect") for word in name.split("_"))
    if not rectified and (lens := unknown_lens(info)):
        notes.append(
            f"camera from {home}/camera_info, but its lens ({lens}) is not known and left out; "
            "--cameras takes another"
        )
    return partial(camera_of, info, rectified=rectified)


def _shot(bag: Bag, depth: str, color: str, times: tuple[int, int], find_camera: _FindCamera) -> Shot:
    def content() -> Content:
        metres = depth_metres(bag.first(depth, times[0]), bag.root)
        image = color_pixels(bag.first(color, times[1]), bag.root)
        camera = find_camera(image.shape[:2])
        return Content(metres, image, None, None if camera is None else Cameras(camera))

    return Shot(str(times[0]), content, (bag.root,))
