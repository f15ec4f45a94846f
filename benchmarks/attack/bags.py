"""ROS bags: records of bag and mcap files, rows of the database, and the messages inside of them."""

import random
import sqlite3
import struct
import tempfile
from pathlib import Path

from benchmarks.attack.plain import counted, damaged, odd, rearranged, set_number

_MAGIC_1 = b"#ROSBAG V2.0\n"
_MAGIC_MCAP = b"\x89MCAP0\r\n"
Record = tuple[bytes, bytes]


def _records_1(data: bytes) -> list[Record]:
    """(header, data) of each record of a bag of ROS 1."""
    parts = [part for (part,) in counted(data, len(_MAGIC_1), "<I")]
    return list(zip(parts[::2], parts[1::2], strict=False))  # one that is cut short is left out


def structured_bag(rng: random.Random, data: bytes) -> bytes:
    """Records rearranged, fields of their headers and their contents rewritten, lengths right or not."""
    parts = _records_1(data)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(parts)) if parts else 0
        if rng.random() < 0.3 or not parts:
            parts = rearranged(rng, parts)
            continue
        head, body = parts[at]
        if rng.random() < 0.5:
            head = damaged(rng, head or b"\0")
        else:
            body = _message(rng, body or b"\0")
        parts = [*parts[:at], (head, body), *parts[at + 1 :]]
    out = bytearray(_MAGIC_1)
    for head, body in parts:
        size = odd(rng) if rng.random() < 0.01 else len(body)
        out += struct.pack("<I", len(head)) + head + struct.pack("<I", size) + body
    return bytes(out)


def structured_mcap(rng: random.Random, data: bytes) -> bytes:
    """Records of an mcap: opcode, length, content."""
    parts, at = list[tuple[int, bytes]](), len(_MAGIC_MCAP)
    while at + 9 <= len(data) - len(_MAGIC_MCAP):
        size = int.from_bytes(data[at + 1 : at + 9], "little")
        parts.append((data[at], data[at + 9 : at + 9 + size]))
        at += 9 + size
    for _ in range(rng.choice((1, 1, 2))):
        if not parts or rng.random() < 0.3:
            parts = rearranged(rng, parts)
            continue
        here = rng.randrange(len(parts))
        code, body = parts[here]
        new = (rng.randrange(18), body) if rng.random() < 0.2 else (code, _message(rng, body or b"\0"))
        parts = [*parts[:here], new, *parts[here + 1 :]]
    out = bytearray(_MAGIC_MCAP)
    for code, body in parts:
        size = odd(rng, 64) if rng.random() < 0.02 else len(body)
        out += bytes((code,)) + struct.pack("<Q", size) + body
    return bytes(out + _MAGIC_MCAP)


def structured_db3(rng: random.Random, data: bytes) -> bytes:
    """Rows of the database of ROS 2: other messages, times, topics and types of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db3"
        path.write_bytes(data)
        base = sqlite3.connect(path)
        try:
            for _ in range(rng.choice((1, 1, 3))):
                _edit_row(rng, base)
            base.commit()
        except sqlite3.Error:
            pass
        finally:
            base.close()
        return path.read_bytes()


def _edit_row(rng: random.Random, base: sqlite3.Connection) -> None:
    choice = rng.randrange(6)
    rows = base.execute("select id, data from messages where typeof(data) = 'blob'").fetchall()
    if choice < 3 and rows:
        row, body = rng.choice(rows)
        base.execute("update messages set data = ? where id = ?", (_message(rng, body), row))
    elif choice == 3:
        value = rng.choice((None, "x", b"x", -1, 2**62, 1.5))
        column = rng.choice(("timestamp", "topic_id", "data"))
        base.execute(f"update messages set {column} = ?", (value,))  # noqa: S608 - a column of our own
    elif choice == 4:
        column = rng.choice(("name", "type", "serialization_format", "offered_qos_profiles"))
        value = rng.choice((None, "", "sensor_msgs/msg/Image", "x" * 3000, b"\xff", "[" * 2000))
        base.execute(f"update topics set {column} = ?", (value,))  # noqa: S608 - a column of our own
    else:
        base.execute(rng.choice(("drop table messages", "drop table topics", "delete from messages",
                                 "create table t (a)", "delete from topics")))  # fmt: skip


def _message(rng: random.Random, body: bytes) -> bytes:
    """A serialised message with another number or text in it."""
    if rng.random() < 0.4:
        return damaged(rng, body)
    changed = bytearray(body)
    head = 4 * rng.randrange(max(min(len(changed), 120) // 4, 1))
    set_number(rng, changed, head, rng.choice(("<I", "<I", "B")))
    for name in (b"16UC1", b"bgr8", b"plumb_bob"):
        if name in changed and rng.random() < 0.3:
            new = rng.choice((b"32FC1", b"mono8", b"rgba8", b"xxxxx", b"\xff\xff\xff\xff"))
            changed[:] = changed.replace(name, new.ljust(len(name))[: len(name)])
    return bytes(changed)
