"""MATLAB 5: elements are dropped, repeated, nested and resized, deflated streams cut and lengthened."""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.attack.plain import damaged, near, odd, rearranged

_MATRIX, _DEFLATED = 14, 15
_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 255, 2**16 + 5, 2**31)


@dataclass(frozen=True)
class Element:
    """One top-level element: the parts of a matrix, each a type and its bytes.

    Args:
        deflated: it is stored as a zlib stream.
        size: that its tag claims, None for the right one.
        damage: of the deflated stream: what is cut off or put behind it.
    """

    parts: list[tuple[int, bytes]]
    deflated: bool = False
    size: int | None = None
    damage: str = ""


def elements(data: bytes) -> list[Element]:
    """The elements of a little-endian file."""
    found, at = [], 128
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + 8 + size]
        at += 8 + size
        deflated = kind == _DEFLATED
        if deflated:
            body = zlib.decompress(body)[8:]
        found.append(Element(_parts(body), deflated))
    return found


def _parts(body: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at + 8 <= len(body):
        kind, size = struct.unpack_from("<II", body, at)
        if kind >> 16:
            found.append((kind & 0xFFFF, body[at + 4 : at + 4 + (kind >> 16)]))
            at += 8
        else:
            found.append((kind, body[at + 8 : at + 8 + size]))
            at += 8 + -(-size // 8) * 8
    return found


def _tagged(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind % 2**32, len(body)) + body + bytes(-len(body) % 8)


def packed(head: bytes, found: list[Element]) -> bytes:
    """A file of these elements."""
    out = bytearray(head)
    for each in found:
        body = b"".join(_tagged(*part) for part in each.parts)
        kind = _MATRIX
        if each.deflated:
            kind = _DEFLATED
            body = _stream(struct.pack("<II", _MATRIX, len(body)) + body, each.damage)
        size = len(body) if each.size is None else each.size
        out += struct.pack("<II", kind, size % 2**32) + body
    return bytes(out)


@lru_cache(maxsize=8)
def _stream(raw: bytes, damage: str) -> bytes:
    """The raw bytes as one zlib stream, or as something near it."""
    whole = zlib.compress(raw)
    makers: dict[str, Callable[[], bytes]] = {
        "": lambda: whole,
        "cut": lambda: whole[:-6],
        "no checksum": lambda: whole[:-4],
        "wrong checksum": lambda: whole[:-4] + b"\0\1\2\3",
        "behind": lambda: whole + b"\0" * 9,
        "two": lambda: whole + zlib.compress(bytes(1000)),
        "longer": lambda: zlib.compress(raw[:-8] + bytes(8) + raw[-8:]),
        "bomb": lambda: zlib.compress(raw + bytes(20_000_000), 9),
    }
    return makers[damage]()


_DAMAGES = ("cut", "no checksum", "wrong checksum", "behind", "two", "longer", "bomb")


def _edit(rng: random.Random, element: Element) -> Element:
    choice = rng.randrange(7)
    parts = list(element.parts)
    at = rng.randrange(len(parts)) if parts else 0
    if choice == 0 or not parts:
        return replace(element, size=near(rng, 200))
    if choice == 1:
        return replace(element, deflated=True, damage=rng.choice(_DAMAGES))
    if choice == 2:
        return replace(element, parts=rearranged(rng, parts))
    kind, body = parts[at]
    if choice == 3:
        parts[at] = rng.choice(_TYPES), body
    elif choice == 4 and len(parts) > 1:  # dimensions
        numbers = [odd(rng, 31) for _ in range(rng.choice((0, 1, 2, 3, 40)))]
        parts[1] = 5, struct.pack(f"<{len(numbers)}i", *numbers)
    elif choice == 5:
        inner = b"".join(_tagged(*part) for part in parts)
        for _ in range(rng.choice((1, 3, 500))):
            inner = _tagged(_MATRIX, inner)
        parts[at] = _MATRIX, inner
    else:
        parts[at] = kind, damaged(rng, body or b"\0")
    return replace(element, parts=parts)


def structured(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the elements."""
    try:
        found = elements(data)
    except (zlib.error, struct.error):
        return damaged(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not found:
            break
        at = rng.randrange(len(found))
        found = (
            rearranged(rng, found)
            if rng.random() < 0.25
            else [*found[:at], _edit(rng, found[at]), *found[at + 1 :]]
        )
    return packed(data[:128], found)
