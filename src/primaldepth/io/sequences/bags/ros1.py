"""Bags of ROS 1, version 2.0: records one after the other; messages lie in chunks, their places beside them.

The file is walked once from record to record, so that no index in it can lead to the same bytes twice.
"""

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

import numpy as np

from primaldepth.io.files import open_file
from primaldepth.io.sequences.bags.index import (
    MAX_CONNECTIONS,
    MAX_RECORD,
    Chunk,
    ChunkedFile,
    Connection,
    Cursor,
    numbers,
    read_exactly,
)
from primaldepth.io.sequences.bags.packing import MAX_UNPACKED

MAGIC = b"#ROSBAG V2.0\n"
_MESSAGE, _BAG, _INDEX, _CHUNK, _CONNECTION = 2, 3, 4, 5, 7
_MAX_RECORDS = 2**22
Fields = dict[bytes, bytes]


class _Record(NamedTuple):
    fields: Fields
    place: int  # of the data
    size: int

    @property
    def kind(self) -> int:
        return _whole(self.fields, b"op", 1)


class Ros1File(ChunkedFile):
    """A .bag file, which is walked once, when it is opened."""

    ros = 1

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with open_file(path) as file:
            for record in _records(file):
                self._take(file, record)

    def message(self, connection: int, first: int, second: int) -> bytes:
        """Return the bytes of the message at a place of a chunk."""
        cursor = Cursor(self._unpacked(first), second)
        while True:
            fields = _fields(cursor.take(cursor.number(4)))
            data = cursor.take(cursor.number(4))
            kind = _whole(fields, b"op", 1)
            if kind == _MESSAGE and _whole(fields, b"conn", 4) == connection:
                return data
            if kind != _CONNECTION:
                raise ValueError("a message is not where the index says")

    def _take(self, file: BufferedReader, record: _Record) -> None:
        kind, fields = record.kind, record.fields
        if kind == _BAG and _whole(fields, b"index_pos", 8) == 0:
            raise ValueError("it has no index")
        if kind == _CONNECTION:
            self._connect(fields, read_exactly(file, record.place, record.size, MAX_RECORD))
        elif kind == _CHUNK:
            packing = fields.get(b"compression", b"").decode()
            unpacked = _whole(fields, b"size", 4)
            self._chunks.append(Chunk(record.place, record.size, packing, unpacked))
        elif kind == _INDEX:
            table = numbers(read_exactly(file, record.place, record.size, MAX_UNPACKED), "<u4", 3)
            if not self._chunks or _whole(fields, b"ver", 4) != 1:
                raise ValueError("an index of an unknown version, or without its chunk")
            times = table[:, 0] * np.uint64(10**9) + table[:, 1]
            self._add_rows(_whole(fields, b"conn", 4), times, len(self._chunks) - 1, table[:, 2])

    def _connect(self, fields: Fields, data: bytes) -> None:
        if len(self.connections) >= MAX_CONNECTIONS:
            raise ValueError(f"more than {MAX_CONNECTIONS} connections")
        package, _, name = _fields(data).get(b"type", b"").decode().rpartition("/")
        kind = f"{package.removesuffix('/msg')}/msg/{name}"
        self.connections[_whole(fields, b"conn", 4)] = Connection(fields.get(b"topic", b"").decode(), kind)


def _records(file: BufferedReader) -> Iterator[_Record]:
    """Walk over the records of a file; data is not read."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin as a bag of version 2.0")
    place, end = len(MAGIC), file.seek(0, 2)
    for _ in range(_MAX_RECORDS):
        if place == end:
            return
        length = int.from_bytes(read_exactly(file, place, 4, 4), "little")
        head = read_exactly(file, place + 4, length + 4, MAX_RECORD)
        size, place = int.from_bytes(head[-4:], "little"), place + 8 + length
        if size > end - place:
            raise ValueError("cut short")
        yield _Record(_fields(head[:-4]), place, size)
        place += size
    raise ValueError(f"more than {_MAX_RECORDS} records")


def _fields(data: bytes) -> Fields:
    """Name -> value of a header: each pair after its length."""
    cursor, found = Cursor(data), dict[bytes, bytes]()
    while cursor.left:
        name, equals, value = cursor.take(cursor.number(4)).partition(b"=")
        if not equals:
            raise ValueError("a header without names")
        found[name] = value
    return found


def _whole(fields: Fields, name: bytes, size: int) -> int:
    value = fields.get(name, b"")
    if len(value) != size:
        raise ValueError(f"no '{name.decode()}' where it is needed")
    return int.from_bytes(value, "little")
