"""Videos: boxes of MP4 and chunks of AVI are dropped, repeated, moved, nested and given sizes that lie."""

import random
import struct
from dataclasses import dataclass, replace

from benchmarks.attack.plain import damaged, odd, rearranged

_INNER = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf", b"edts", b"udta", b"mvex", b"moof", b"traf")


@dataclass(frozen=True)
class FilmBox:
    """Name, content or boxes inside, and a size that lies."""

    name: bytes
    body: bytes = b""
    inner: tuple["FilmBox", ...] | None = None
    size: int | None = None


def boxes(data: bytes) -> list[FilmBox]:
    """The boxes of a file, as far as their sizes lead."""
    found, at = [], 0
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        if size < 8 or at + size > len(data):
            break
        name, body = data[at + 4 : at + 8], data[at + 8 : at + size]
        found.append(FilmBox(name, inner=tuple(boxes(body))) if name in _INNER else FilmBox(name, body))
        at += size
    return found


def packed(parts: list[FilmBox] | tuple[FilmBox, ...]) -> bytes:
    found = []
    for box in parts:
        body = packed(box.inner) if box.inner is not None else box.body
        size = len(body) + 8 if box.size is None else box.size
        found.append(struct.pack(">I", size % 2**32) + box.name + body)
    return b"".join(found)


def _edited(rng: random.Random, parts: list[FilmBox]) -> list[FilmBox]:
    """One edit, at a level drawn at random."""
    if not parts:
        return parts
    at = rng.randrange(len(parts))
    box = parts[at]
    if box.inner and rng.random() < 0.75:
        return [*parts[:at], replace(box, inner=tuple(_edited(rng, list(box.inner)))), *parts[at + 1 :]]
    choice = rng.randrange(6)
    if choice == 0:
        return rearranged(rng, parts)
    if choice == 1:
        new = replace(box, size=odd(rng))
    elif choice == 2:
        new = FilmBox(rng.choice(_INNER), inner=(box,))
        for _ in range(rng.choice((0, 5, 200))):
            new = FilmBox(b"trak", inner=(new,))
    elif choice == 3:
        new = replace(box, name=rng.choice((*_INNER, b"free", b"stts", b"stsz", b"stco", b"stsc", b"dref")))
    else:
        new = replace(box, body=_table(rng, box.body))
    return [*parts[:at], new, *parts[at + 1 :]]


def _table(rng: random.Random, body: bytes) -> bytes:
    """Most boxes are tables of 32-bit numbers behind a count."""
    changed = bytearray(body)
    if len(changed) >= 8 and rng.random() < 0.7:
        struct.pack_into(">I", changed, 4 * rng.randrange(len(changed) // 4), odd(rng))
        return bytes(changed)
    return damaged(rng, body or b"\0")


def structured_boxes(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the boxes."""
    parts = boxes(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        parts = _edited(rng, parts)
    return packed(parts)


def structured_riff(rng: random.Random, data: bytes) -> bytes:
    """AVI: the sizes and names of chunks, found by their names."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice((b"RIFF", b"LIST", b"avih", b"strh", b"strf", b"idx1", b"00dc", b"movi", b"indx"))
        at = changed.find(name)
        if at < 0 or at + 8 > len(changed):
            continue
        choice = rng.randrange(3)
        if choice == 0:
            struct.pack_into("<I", changed, at + 4, odd(rng))
        elif choice == 1:
            changed[at : at + 4] = rng.choice((b"JUNK", b"LIST", b"00dc", b"strh"))
        else:
            place = at + 8 + 4 * rng.randrange(12)
            if place + 4 <= len(changed):
                struct.pack_into("<I", changed, place, odd(rng))
    return bytes(changed)
