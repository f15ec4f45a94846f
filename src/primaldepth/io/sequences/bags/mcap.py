"""MCAP, the container of ROS 2: records one after the other, most of them in chunks.

The file is walked once from record to record; what it says elsewhere of its own places is not used. Chunks
are only unpacked where no index after them says what they hold.
"""

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

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

MAGIC = b"\x89MCAP0\r\n"
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX = range(1, 8)
_MAX_RECORDS = 2**22
_BEFORE_DATA = 22  # bytes of a message record before the message
_ALONE = -1  # in place of a chunk's number: the message lies outside of them


class McapFile(ChunkedFile):
    """A .mcap file, which is walked once, when it is opened."""

    ros = 2

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._schemas: dict[int, str] = {}
        self._told: dict[int, set[int]] = {}  # connections of each chunk, by the index after it
        with open_file(path) as file:
            for kind, place, size in _records(file):
                self._take(file, kind, place, size)
        for number in range(len(self._chunks)):
            if not self._told.get(number, {_ALONE}) <= self.connections.keys():
                self._look_into(number)

    def message(self, connection: int, first: int, second: int) -> bytes:
        """Return the bytes of the message at a place of a chunk or of the file."""
        if first == _ALONE:
            with open_file(self.path) as file:
                size = int.from_bytes(read_exactly(file, second + 1, 8, 8), "little")
                cursor = Cursor(read_exactly(file, second + 9, size, MAX_UNPACKED))
        else:
            cursor = Cursor(self._unpacked(first), second)
            if cursor.number(1) != _MESSAGE:
                raise ValueError("a message is not where the index says")
            cursor = Cursor(cursor.take(cursor.number(8)))
        if cursor.number(2) != connection:
            raise ValueError("a message is not where the index says")
        cursor.take(_BEFORE_DATA - 2)
        return cursor.take(cursor.left)

    def _take(self, file: BufferedReader, kind: int, place: int, size: int) -> None:
        """Take in a record outside of chunks."""
        if kind in (_SCHEMA, _CHANNEL):
            self._describe(kind, Cursor(read_exactly(file, place, size, MAX_RECORD)))
        elif kind == _MESSAGE:
            self._add(Cursor(read_exactly(file, place, min(size, _BEFORE_DATA), size)), _ALONE, place - 9)
        elif kind == _CHUNK:
            head = Cursor(read_exactly(file, place, min(size, 64), size), 16)
            unpacked, checksum, packing = head.number(8), head.number(4), head.text()
            inner = head.number(8)
            if inner > size - head.place:
                raise ValueError("a chunk is longer than its record")
            self._chunks.append(Chunk(place + head.place, inner, packing, unpacked, checksum))
        elif kind == _MESSAGE_INDEX:
            self._add_index(Cursor(read_exactly(file, place, size, MAX_UNPACKED)))

    def _add_index(self, cursor: Cursor) -> None:
        number, connection = len(self._chunks) - 1, cursor.number(2)
        if number < 0:
            raise ValueError("an index without its chunk")
        table = numbers(cursor.take(cursor.number(4)), "<u8", 2)
        self._told.setdefault(number, set()).add(connection)
        self._add_rows(connection, table[:, 0], number, table[:, 1])

    def _look_into(self, number: int) -> None:
        """Read the messages and topics of a chunk that no index lists."""
        cursor, known = Cursor(self._unpacked(number)), number in self._told
        while cursor.left:
            place, kind = cursor.place, cursor.number(1)
            content = Cursor(cursor.take(cursor.number(8)))
            if kind == _MESSAGE and not known:
                self._add(content, number, place)
            elif kind in (_SCHEMA, _CHANNEL):
                self._describe(kind, content)

    def _add(self, cursor: Cursor, first: int, second: int) -> None:
        connection, _, time = cursor.number(2), cursor.number(4), cursor.number(8)
        self._add_rows(connection, np.array([time], np.uint64), first, np.array([second], np.uint64))

    def _describe(self, kind: int, cursor: Cursor) -> None:
        """A schema names the type of messages, a channel the topic."""
        number = cursor.number(2)
        if max(len(self._schemas), len(self.connections)) >= MAX_CONNECTIONS:
            raise ValueError(f"more than {MAX_CONNECTIONS} topics")
        if kind == _SCHEMA:
            self._schemas[number] = cursor.text()
            return
        schema, topic, encoding = cursor.number(2), cursor.text(), cursor.text()
        kind_of = self._schemas.get(schema, "") if encoding == "cdr" else ""
        self.connections.setdefault(number, Connection(topic, kind_of))


def _records(file: BufferedReader) -> Iterator[tuple[int, int, int]]:
    """Walk over the records of a file: (kind, place and size of the content), which is not read."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin as MCAP")
    place, end = len(MAGIC), file.seek(0, 2) - len(MAGIC)
    if read_exactly(file, end, len(MAGIC), len(MAGIC)) != MAGIC:
        raise ValueError("its end is missing")
    for _ in range(_MAX_RECORDS):
        if place >= end:
            return
        head = read_exactly(file, place, 9, 9)
        size, place = int.from_bytes(head[1:], "little"), place + 9
        if size > end - place:
            raise ValueError("cut short")
        yield head[0], place, size
        place += size
    raise ValueError(f"more than {_MAX_RECORDS} records")
