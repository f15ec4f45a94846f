"""JPEG: segments are dropped, repeated, moved and rewritten; lengths are right unless they shall lie."""

import random
import struct

from benchmarks.attack.plain import damaged, odd, rearranged

Segment = tuple[int, bytes, bytes]  # marker, body, what follows it up to the next marker: the data of a scan
_BARE = (0x01, *range(0xD0, 0xDA))
_MARKERS = (0xC0, 0xC1, 0xC2, 0xC4, 0xD9, 0xDA, 0xDB, 0xDD, 0xE0, 0xE1, 0xE2, 0xEE, 0xFE)


def segments(data: bytes) -> list[Segment]:
    """Segments after the start of the image, as far as they can be followed."""
    found: list[Segment] = []
    at = 2
    while at + 2 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        length = 0 if marker in _BARE else _length(data, at + 2)
        body_end = at + 2 + length
        end = _scan_end(data, body_end) if marker == 0xDA else body_end
        found.append((marker, data[at + 4 : body_end], data[body_end:end]))
        at = end
    return found


def _length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _scan_end(data: bytes, at: int) -> int:
    while 0 <= (at := data.find(b"\xff", at)) < len(data) - 1:
        if data[at + 1] not in (0, *range(0xD0, 0xD8)):
            return at
        at += 2
    return len(data)


def packed(parts: list[Segment], lie: tuple[int, int] | None = None) -> bytes:
    """A file of these segments; `lie` is the number of one and the length it shall claim."""
    found = [b"\xff\xd8"]
    for index, (marker, body, scan) in enumerate(parts):
        found.append(bytes((0xFF, marker)))
        if marker not in _BARE:
            claimed = lie[1] if lie is not None and lie[0] == index else len(body) + 2
            found.append(struct.pack(">H", claimed % 65536) + body)
        found.append(scan)
    return b"".join(found)


def _edit_frame(rng: random.Random, parts: list[Segment]) -> list[Segment]:
    """Other sizes, numbers of components, sampling or tables."""
    found = list(parts)
    for index, (marker, body, scan) in enumerate(found):
        if marker in (0xC0, 0xC1, 0xC2) and len(body) > 6:
            changed = bytearray(body)
            at, size = rng.choice(((0, 1), (1, 2), (3, 2), (5, 1), (rng.randrange(len(body)), 1)))
            changed[at : at + size] = odd(rng, 8 * size).to_bytes(size, "big")
            found[index] = marker, bytes(changed), scan
    return found


def _body(rng: random.Random, parts: list[Segment]) -> list[Segment]:
    at = rng.randrange(len(parts))
    marker, body, scan = parts[at]
    if scan and rng.random() < 0.5:
        return [*parts[:at], (marker, body, damaged(rng, scan)), *parts[at + 1 :]]
    return [*parts[:at], (marker, damaged(rng, body or b"\0")[:65000], scan), *parts[at + 1 :]]


def _rename(rng: random.Random, parts: list[Segment]) -> list[Segment]:
    at = rng.randrange(len(parts))
    return [*parts[:at], (rng.choice(_MARKERS), *parts[at][1:]), *parts[at + 1 :]]


def _insert(rng: random.Random, parts: list[Segment]) -> list[Segment]:
    at = rng.randrange(len(parts) + 1)
    extra = rng.choice(_MARKERS), rng.randbytes(rng.choice((0, 1, 15, 300))), b""
    return [*parts[:at], extra, *parts[at:]]


def _scans(rng: random.Random, parts: list[Segment]) -> list[Segment]:
    """A scan again and again: each costs a pass over the image."""
    scans = [part for part in parts if part[0] == 0xDA]
    if not scans:
        return parts
    at = parts.index(scans[-1]) + 1
    return [*parts[:at], *([rng.choice(scans)] * rng.choice((1, 5, 50, 300))), *parts[at:]]


_EDITS = (_edit_frame, _edit_frame, _body, _body, _rename, _insert, _scans)


def structured(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the segments."""
    parts = segments(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not parts:
            return damaged(rng, data)
        parts = rearranged(rng, parts) if rng.random() < 0.4 else rng.choice(_EDITS)(rng, parts)
    lie = (rng.randrange(len(parts)), odd(rng, 16)) if parts and rng.random() < 0.15 else None
    return packed(parts, lie)
