"""TIFF: entries of the directories lie, strips overlap, directories are repeated, chained and nested."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.attack.plain import damaged, near, odd, rearranged

_SIZES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_TAGS = (254, 256, 257, 258, 259, 262, 266, 273, 274, 277, 278, 279, 284, 317, 320, 322, 323, 324, 325, 330,
         338, 339, 34665, 700, 33922, 50838)  # fmt: skip
_OFFSETS, _COUNTS = (273, 324), (279, 325)


@dataclass(frozen=True)
class DirectoryEntry:
    """One line of a directory; `value` are the bytes of the last field, numbers or the place of them."""

    tag: int
    kind: int
    count: int
    value: bytes


@dataclass(frozen=True)
class Shape:
    """Byte order and width of a file's numbers."""

    order: str
    big: bool

    @property
    def word(self) -> str:
        return self.order + ("Q" if self.big else "I")

    @property
    def entry(self) -> str:
        return self.order + ("HHQ8s" if self.big else "HHI4s")

    @property
    def many(self) -> str:
        return self.order + ("Q" if self.big else "H")


def shape_of(data: bytes) -> Shape:
    return Shape("<" if data[:2] == b"II" else ">", data[2:4] in (b"+\0", b"\0+"))


def directories(data: bytes) -> Iterator[tuple[int, list[DirectoryEntry], int]]:
    """Offset, entries and the place of the next offset, of every directory of the chain."""
    shape, seen = shape_of(data), set[int]()
    place = 8 if shape.big else 4
    while place + struct.calcsize(shape.word) <= len(data):
        (at,) = struct.unpack_from(shape.word, data, place)
        if at == 0 or at in seen or at + 8 > len(data):
            return
        seen.add(at)
        (count,) = struct.unpack_from(shape.many, data, at)
        first, size = at + struct.calcsize(shape.many), struct.calcsize(shape.entry)
        place = first + count * size
        if place > len(data):
            return
        yield (
            at,
            [DirectoryEntry(*struct.unpack_from(shape.entry, data, first + i * size)) for i in range(count)],
            place,
        )


def _packed(shape: Shape, entries: list[DirectoryEntry], following: int) -> bytes:
    lines = b"".join(struct.pack(shape.entry, e.tag, e.kind, e.count, e.value) for e in entries)
    return struct.pack(shape.many, len(entries) % 2**16) + lines + struct.pack(shape.word, following)


def _edit(rng: random.Random, shape: Shape, entry: DirectoryEntry) -> DirectoryEntry:
    """An entry whose tag, type, count or value is another."""
    width = len(entry.value)
    choice = rng.randrange(5)
    if choice == 0:
        return DirectoryEntry(rng.choice(_TAGS), entry.kind, entry.count, entry.value)
    if choice == 1:
        return DirectoryEntry(entry.tag, rng.choice((*_SIZES, 0, 14, 99)), entry.count, entry.value)
    if choice == 2:
        return DirectoryEntry(entry.tag, entry.kind, near(rng, entry.count, 8 * width), entry.value)
    number = int.from_bytes(entry.value, "little" if shape.order == "<" else "big")
    if entry.kind == 3 and shape.order == ">":
        number >>= 8 * (width - 2)
    changed = near(rng, number, 16 if entry.kind == 3 else 8 * width)
    form = shape.order + ("H" if entry.kind == 3 else "Q" if width == 8 else "I")
    return DirectoryEntry(entry.tag, entry.kind, entry.count, struct.pack(form, changed).ljust(width, b"\0"))


def _overlap(
    rng: random.Random, shape: Shape, data: bytearray, entries: list[DirectoryEntry]
) -> list[DirectoryEntry]:
    """All strips at one place, or a table of many strips anywhere in the file."""
    many = rng.choice((2, 5, 60, 2000))
    place = rng.randrange(8, max(len(data), 9))
    found = []
    for entry in entries:
        if entry.tag in (*_OFFSETS, *_COUNTS):
            number = place if entry.tag in _OFFSETS else rng.choice((1, 10, 100, len(data)))
            value = struct.pack(shape.word, len(data))
            data += struct.pack(shape.word, number) * many
            found.append(DirectoryEntry(entry.tag, 16 if shape.big else 4, many, value))
        else:
            found.append(entry)
    return found


def structured(rng: random.Random, data: bytes) -> bytes:
    """Rewrite the first directory, and perhaps chain it to others."""
    shape, chain = shape_of(data), list(directories(data))
    if not chain:
        return damaged(rng, data)
    changed = bytearray(data)
    _, entries, _ = rng.choice(chain)
    for _ in range(rng.choice((1, 1, 2, 3))):
        choice = rng.random()
        if choice < 0.6 and entries:
            at = rng.randrange(len(entries))
            entries = [*entries[:at], _edit(rng, shape, entries[at]), *entries[at + 1 :]]
        elif choice < 0.8:
            entries = rearranged(rng, entries)
        else:
            entries = _overlap(rng, shape, changed, entries)
    _append(rng, shape, changed, entries, chain)
    return bytes(changed)


def _append(
    rng: random.Random,
    shape: Shape,
    changed: bytearray,
    entries: list[DirectoryEntry],
    chain: list[tuple[int, list[DirectoryEntry], int]],
) -> None:
    """Put the directory at the end, as the first one or behind another, alone, repeated or in a ring."""
    if len(changed) % 2:
        changed += b"\0"
    at = len(changed)
    link = 8 if shape.big else 4
    if rng.random() < 0.3:
        link = chain[-1][2]
    copies = rng.choice((1, 1, 1, 3, 70))
    for index in range(copies):
        size = len(_packed(shape, entries, 0))
        last = rng.choice((0, 0, 0, at, 8, odd(rng)))
        changed += _packed(shape, entries, last if index == copies - 1 else len(changed) + size)
    struct.pack_into(shape.word, changed, link, at)
