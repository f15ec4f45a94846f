"""PNG: chunks are dropped, repeated, moved and rewritten; their checksums are right again afterwards."""

import random
import struct
import zlib
from collections.abc import Sequence

from benchmarks.attack.plain import counted, damaged, odd, rearranged, set_number

MAGIC = b"\x89PNG\r\n\x1a\n"
Chunk = tuple[bytes, bytes]
_NAMES = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"eXIf", b"tRNS", b"iCCP", b"acTL", b"fdAT", b"tEXt", b"ZZZZ")
_FIELDS = ((0, ">I"), (4, ">I"), (8, "B"), (9, "B"), (10, "B"), (11, "B"), (12, "B"))


def chunks(data: bytes) -> list[Chunk]:
    """Names and bodies, as far as the lengths lead."""
    return [(name, body) for name, body in counted(data, len(MAGIC), ">I4s", after=4)]


def packed(parts: Sequence[Chunk]) -> bytes:
    """A file of these chunks, checksums right."""
    return MAGIC + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )


def header(width: int, height: int, bits: int = 16, colour: int = 0) -> Chunk:
    return b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)


def mend(data: bytes) -> bytes:
    """The same with right checksums, so that damage reaches what lies behind them."""
    parts = chunks(data)
    return packed(parts) + data[len(packed(parts)) :] if data[:8] == MAGIC else data


def _edit_header(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    at, form = rng.choice(_FIELDS)
    found = list(parts)
    for index, (name, body) in enumerate(found):
        if name == b"IHDR":
            changed = bytearray(body)
            set_number(rng, changed, at, form)
            found[index] = name, bytes(changed)
    return found


def _second_header(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    sides = (1, 7, 64, 5000, 30000)
    bits, colour = rng.choice(((1, 0), (8, 0), (16, 0), (8, 2), (8, 3), (8, 6)))
    other = header(rng.choice(sides), rng.choice(sides), bits, colour)
    at = rng.randrange(len(parts) + 1)
    return [*parts[:at], other, *parts[at:]]


def _split(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    """Pixels in many chunks, some of them empty."""
    step, found = rng.choice((0, 1, 2, 7)), list[Chunk]()
    for name, body in parts:
        if name != b"IDAT":
            found.append((name, body))
        elif step == 0:
            found += [(name, b"")] * rng.choice((1, 3, 2000)) + [(name, body)]
        else:
            found += [(name, body[at : at + step]) for at in range(0, len(body), step)]
    return found


def _pixels(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    """Other pixels under a right checksum: altered, too long, too short, in two streams, not ended."""
    joined = b"".join(body for name, body in parts if name == b"IDAT")
    try:
        raw = zlib.decompress(joined)
    except zlib.error:
        return parts
    choice = rng.randrange(7)
    if choice == 0:
        stream = zlib.compress(damaged(rng, raw), rng.randrange(10))
    elif choice == 1:
        stream = zlib.compress(raw + bytes(rng.choice((1, 2, 100, 3_000_000))), 9)
    elif choice == 2:
        stream = zlib.compress(raw[: rng.randrange(len(raw) + 1)])
    elif choice == 3:
        stream = zlib.compress(raw) + zlib.compress(bytes(100_000))
    elif choice == 4:
        stream = zlib.compress(raw)[: -rng.randrange(1, 8)]
    elif choice == 5:
        deflate = zlib.compressobj(wbits=rng.choice((9, -15, 31)))
        stream = deflate.compress(raw) + deflate.flush()
    else:
        stream = damaged(rng, joined)
    found = [(name, body) for name, body in parts if name != b"IDAT"]
    at = max(len(found) - 1, 0)
    return [*found[:at], (b"IDAT", stream), *found[at:]]


def _body(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    at = rng.randrange(len(parts))
    name, body = parts[at]
    return [*parts[:at], (name, damaged(rng, body or b"\0")), *parts[at + 1 :]]


def _rename(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    at = rng.randrange(len(parts))
    return [*parts[:at], (rng.choice((*_NAMES, rng.randbytes(4))), parts[at][1]), *parts[at + 1 :]]


def _insert(rng: random.Random, parts: list[Chunk]) -> list[Chunk]:
    at = rng.randrange(len(parts) + 1)
    extra = rng.choice(_NAMES), rng.randbytes(rng.choice((0, 1, 13, 768, 40_000)))
    return [*parts[:at], extra, *parts[at:]]


_EDITS = (_edit_header, _edit_header, _second_header, _split, _pixels, _pixels, _body, _rename, _insert)


def structured(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the chunks."""
    parts = chunks(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not parts:
            return mend(damaged(rng, data))
        parts = rearranged(rng, parts) if rng.random() < 0.4 else rng.choice(_EDITS)(rng, parts)
    whole = packed(parts)
    if rng.random() < 0.1 and len(parts) > 1:  # a length that lies; everything behind it is read askew
        changed = bytearray(whole)
        struct.pack_into(">I", changed, 8 + 12 + len(parts[0][1]), odd(rng))
        return bytes(changed)
    return whole
