"""ROS bags of any version as topics and messages; nothing that a bag says of its own places or types is run.

The definitions of message types that bags carry are not used: the few types that are read here have been the
same for years, and those of the package rosbags are taken.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.io.files import optional
from primaldepth.io.formats.base import decoding
from primaldepth.io.sequences.bags.index import BagFile, Rows
from primaldepth.io.sequences.bags.mcap import McapFile
from primaldepth.io.sequences.bags.packing import Allowance, unpack_file, unpack_message
from primaldepth.io.sequences.bags.ros1 import Ros1File
from primaldepth.io.sequences.bags.sqlite import SqliteFile
from primaldepth.io.sequences.base import check_inside, natural_order

__all__ = ["Bag", "bag_errors", "open_bag"]

_KINDS: dict[str, Callable[[Path], BagFile]] = {".bag": Ros1File, ".db3": SqliteFile, ".mcap": McapFile}
FILES = tuple(_KINDS)
METADATA, ZSTD = "metadata.yaml", ".zstd"
MOST_FILES = 2**12  # of a bag: each stays open or takes memory
LONGEST_NAME = 255  # of a topic; ROS has none that is longer


@dataclass(frozen=True, eq=False)
class Bag:
    """The files of a bag.

    Args:
        root: as the user named it.
        files: all of them, in the order they were recorded.
    """

    root: Path
    files: tuple[BagFile, ...]
    _rows: dict[str, Rows] = field(default_factory=dict)

    def topics(self) -> dict[str, str]:
        """Return the type of each topic."""
        every = (each for file in self.files for each in file.connections.values())
        return {topic: kind for topic, kind in every if _is_name(topic) and _is_name(kind)}

    def times(self, topic: str) -> list[int]:
        """Return the time stamps of a topic in ns, in order; no message is read."""
        found: list[int] = self._table(topic)[:, 0].tolist()
        return found

    def first(self, topic: str, start: int | None = None) -> Any:
        """Return the first message of a topic, or the first at or after `start`."""
        rows = self._table(topic)
        place = 0 if start is None else int(np.searchsorted(rows[:, 0], start))
        data, file, connection = self._bytes(topic, place)
        with bag_errors(self.root):
            return _read_message(data, file.ros, file.connections[connection].kind, self.root)

    def bytes_of(self, topic: str, place: int) -> bytes:
        """Return the bytes of a message of a topic, by its number in the order of time."""
        return self._bytes(topic, place)[0]

    def _bytes(self, topic: str, place: int) -> tuple[bytes, BagFile, int]:
        """Return (bytes of a message, the file it lies in, its connection)."""
        rows = self._table(topic)
        if place >= len(rows):
            raise FileFormatError(self.root, f"no message on {topic}", "the bag may be cut off")
        _, number, connection, first, second = rows[place].tolist()
        file = self.files[number]
        with bag_errors(self.root):
            return unpack_message(file.message(connection, first, second)), file, connection

    def _table(self, topic: str) -> Rows:
        """Return (n, 5): time, file, connection, and the place in the file; in the order of time."""
        if topic not in self._rows:
            with bag_errors(self.root):
                self._rows[topic] = self._gathered(topic)
        return self._rows[topic]

    def _gathered(self, topic: str) -> Rows:
        parts = [np.empty((0, 5), np.int64)]
        for number, file in enumerate(self.files):
            for connection in (key for key, each in file.connections.items() if each.topic == topic):
                rows = file.rows(connection)
                parts.append(np.insert(rows, [1, 1], [number, connection], axis=1))
        table = np.concatenate(parts)
        return table[np.argsort(table[:, 0], kind="stable")]


def _is_name(text: str) -> bool:
    return text.isprintable() and len(text) <= LONGEST_NAME


def open_bag(root: Path) -> Bag:
    """Open a bag file, or a folder as ROS 2 writes it; one of its files stands for the whole folder.

    Files that are packed as a whole are unpacked into a temporary folder, which goes with the bag.
    """
    optional("rosbags.typesys", "bags", root)
    place = Path(tempfile.mkdtemp(prefix="primaldepth-bag-"))
    try:
        with bag_errors(root):
            files = tuple(_KINDS[path.suffix.lower()](path) for path in _files(root, place))
        bag = Bag(root, files)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(bag, shutil.rmtree, place, ignore_errors=True)
    return bag


def _files(root: Path, place: Path) -> list[Path]:
    """Return the files of a bag, in order; those that are packed as a whole are unpacked into `place`."""
    beside = root.parent / METADATA
    folder = root.parent if root.suffix.lower() != ".bag" and root.is_file() and beside.is_file() else root
    if not folder.is_dir():
        return [root]
    found: list[Path] = []
    allowance = Allowance()
    for path in sorted(folder.iterdir(), key=natural_order):
        packed = path.suffix == ZSTD
        if Path(path.stem if packed else path.name).suffix.lower() not in FILES[1:]:
            continue
        if path != root:  # the user has named that one
            check_inside(folder, path)
        if len(found) == MOST_FILES:
            raise FileFormatError(root, f"holds more than {MOST_FILES} files", "split the bag")
        found.append(unpack_file(path, place / path.stem, allowance) if packed else path)
    if not found:
        raise FileFormatError(root, f"holds no {' or '.join(FILES[1:])} file", "copy the whole folder again")
    return found


def bag_errors(root: Path) -> AbstractContextManager[None]:
    """Turn damage into an error with the bag's name."""
    return decoding(root, "not a readable bag", "index it again (rosbag reindex, ros2 bag reindex)")


@cache
def _types(ros: int, root: Path) -> Any:
    stores = optional("rosbags.typesys", "bags", root)
    return stores.get_typestore(stores.Stores.ROS1_NOETIC if ros == 1 else stores.Stores.ROS2_HUMBLE)


def _read_message(data: bytes, ros: int, kind: str, root: Path) -> Any:
    types = _types(ros, root)
    if kind not in types.fielddefs:
        raise InputError(
            root, f"messages of type {shortened(kind)} are not read", "record images as sensor_msgs/Image"
        )
    return types.deserialize_ros1(data, kind) if ros == 1 else types.deserialize_cdr(data, kind)
