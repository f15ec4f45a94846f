"""What a file of a bag has to give: its topics, when their messages were taken, and each message's bytes."""

import struct
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
MAX_CONNECTIONS = 4096
MAX_RECORD = 2**20  # bytes of a record that describes others


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
        """(n, 3): time in ns and two numbers that tell `message` where it lies; in any order."""
        ...

    def message(self, connection: int, first: int, second: int) -> bytes:
        """The bytes of the message that a row tells of."""
        ...


@dataclass(slots=True)
class Index:
    """Rows by connection, gathered piece by piece."""

    pieces: dict[int, list[Rows]] = field(default_factory=dict)

    def add(self, connection: int, times: NDArray[np.uint64], first: int, second: NDArray[np.uint64]) -> None:
        """Messages of a connection in one part of the file; all share `first`."""
        if max(times.max(initial=0), second.max(initial=0)) >= 2**63:
            raise ValueError("a time or place beyond 2^63")
        rows = np.empty((len(times), 3), np.int64)
        rows[:, 0], rows[:, 1], rows[:, 2] = times, first, second
        self.pieces.setdefault(connection, []).append(rows)

    def rows(self, connection: int) -> Rows:
        """All of them."""
        return np.concatenate([np.empty((0, 3), np.int64), *self.pieces.get(connection, [])])


class Cursor:
    """Little-endian numbers and texts of bytes in memory, one after the other; ends with an error."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place

    def number(self, size: int) -> int:
        """A whole number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        """A text after its length."""
        return self.take(self.number(4)).decode()

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size > len(self.data) - self.place:
            raise ValueError("a part is longer than what holds it")
        self.place += size
        return self.data[self.place - size : self.place]

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self.data) - self.place


def read_exactly(file: BufferedReader, place: int, size: int, most: int) -> bytes:
    """Bytes at a place of a file, at most so many."""
    if size > most:
        raise ValueError(f"a part of {size} bytes, more than {most}")
    file.seek(place)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("cut short")
    return data


def numbers(data: bytes, kind: str, columns: int) -> NDArray[np.uint64]:
    """(n, columns) of a table of numbers."""
    width = np.dtype(kind).itemsize * columns
    if len(data) % width:
        raise struct.error("a table is cut short")
    return np.frombuffer(data, kind).reshape(-1, columns).astype(np.uint64)
