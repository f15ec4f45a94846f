"""What a file of a bag has to give: its topics, when their messages were taken, and each message's bytes."""

import struct
import zlib
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.files import open_file
from primaldepth.io.sequences.bags.packing import MAX_UNPACKED, unpack

Rows = NDArray[np.int64]
MAX_CONNECTIONS = 4096
MAX_RECORD = 2**20  # bytes of a record that describes others
MAX_RECORDS = 2**22
Head = TypeVar("Head")


class Connection(NamedTuple):
    """A topic and the type of its messages, such as sensor_msgs/msg/Image."""

    topic: str
    kind: str


class BagFile(Protocol):
    """One file of a bag, opened anew for every access."""

    path: Path
    ros: int
    connections: dict[int, Connection]

    def rows(self, connection: int) -> Rows:
        """Return (n, 3): time in ns and two numbers by which `message` finds it; in any order."""
        ...

    def message(self, connection: int, first: int, second: int) -> bytes:
        """Return the bytes of the message that a row points to."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Messages that are packed together; `checksum` is 0 where none is known."""

    place: int
    size: int
    packing: str
    unpacked: int
    checksum: int = 0


class ChunkedFile:
    """A file whose messages lie in chunks, the last of which is kept unpacked.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: dict[int, Connection] = {}
        self._rows, self._chunks = dict[int, list[Rows]](), list[Chunk]()
        self._last: tuple[int, bytes] = (-1, b"")

    def rows(self, connection: int) -> Rows:
        """Return (n, 3): time in ns, number of the chunk, and place in it."""
        return np.concatenate([np.empty((0, 3), np.int64), *self._rows.get(connection, [])])

    def _connect(self, number: int, topic: str, kind: str) -> None:
        check_count(self.connections)
        self.connections[number] = Connection(topic, kind)

    def _add_rows(
        self, connection: int, times: NDArray[np.uint64], first: int, second: NDArray[np.uint64]
    ) -> None:
        """Add messages of a connection in one part of the file; all share `first`."""
        if max(times.max(initial=0), second.max(initial=0)) >= 2**63:
            raise ValueError("a time or place beyond 2^63")
        rows = np.empty((len(times), 3), np.int64)
        rows[:, 0], rows[:, 1], rows[:, 2] = times, first, second
        self._rows.setdefault(connection, []).append(rows)

    def _unpacked(self, number: int) -> bytes:
        if self._last[0] != number:
            chunk = self._chunks[number]
            with open_file(self.path) as file:
                packed = read_exactly(file, chunk.place, chunk.size, MAX_UNPACKED)
            data = unpack(packed, chunk.packing, chunk.unpacked)
            if chunk.checksum and zlib.crc32(data) != chunk.checksum:
                raise ValueError("a chunk differs from its checksum")
            self._last = (number, data)
        return self._last[1]


class Cursor:
    """Little-endian numbers and texts of bytes in memory, one after the other; ends with an error."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def number(self, size: int) -> int:
        """Read a whole number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        """Read a text after its length."""
        return self.take(self.number(4)).decode()

    def take(self, size: int) -> bytes:
        """Read `size` bytes."""
        if size > len(self.data) - self.place:
            raise ValueError("a part is longer than what holds it")
        self.place += size
        return self.data[self.place - size : self.place]

    @property
    def left(self) -> int:
        """Number of bytes that were not read yet."""
        return len(self.data) - self.place


def read_exactly(file: BufferedReader, place: int, size: int, most: int) -> bytes:
    """Read `size` bytes at a place of a file; raise if they are more than `most`, or if it ends before."""
    if size > most:
        raise ValueError(f"a part of {size} bytes, more than {most}")
    file.seek(place)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("cut short")
    return data


def check_count(found: Sized) -> None:
    """Raise if no further topic or type may be added to those that were found."""
    if len(found) >= MAX_CONNECTIONS:
        raise ValueError(f"more than {MAX_CONNECTIONS} topics")


def walk(
    place: int, end: int, read_head: Callable[[int], tuple[Head, int, int]]
) -> Iterator[tuple[Head, int, int]]:
    """Yield the head of each record, and place and size of its data, which is not read.

    Args:
        place: of the first record.
        end: of the last one.
        read_head: gives the same for the record at a place.

    Raises:
        ValueError: a record is longer than the file, or there are too many.
    """
    for _ in range(MAX_RECORDS):
        if place >= end:
            return
        head, place, size = read_head(place)
        if size > end - place:
            raise ValueError("cut short")
        yield head, place, size
        place += size
    raise ValueError(f"more than {MAX_RECORDS} records")


def numbers(data: bytes, kind: str, columns: int) -> NDArray[np.uint64]:
    """Read a table of numbers of the type `kind` as (n, columns)."""
    width = np.dtype(kind).itemsize * columns
    if len(data) % width:
        raise struct.error("a table is cut short")
    return np.frombuffer(data, kind).reshape(-1, columns).astype(np.uint64)
