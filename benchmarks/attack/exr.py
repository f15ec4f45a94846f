"""EXR: attributes, channels, the table of chunks and the chunks are rewritten; offsets are right or lie."""

import random
import struct
import zlib
from dataclasses import dataclass, replace

from benchmarks.attack.plain import damaged, odd, rearranged, set_number

Attribute = tuple[bytes, bytes, bytes]  # name, type, body
_NAMES = (b"channels", b"compression", b"dataWindow", b"displayWindow", b"lineOrder", b"tiles", b"type",
          b"chunkCount", b"name", b"view", b"preview", b"x" * 255)  # fmt: skip


@dataclass(frozen=True)
class File:
    """Version and flags, attributes, chunks (from their row numbers on), and lies: (chunk, offset)."""

    flags: int
    attributes: list[Attribute]
    chunks: list[bytes]
    lies: tuple[tuple[int, int], ...] = ()


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.find(b"\0", at)
    return (data[at:end], end + 1) if end >= 0 else (b"", len(data))


def parsed(data: bytes) -> File:
    """The header, and the chunks in the order of the table of a scan line file."""
    (flags,) = struct.unpack_from("<I", data, 4)
    attributes: list[Attribute] = []
    at = 8
    while at < len(data) and data[at]:
        name, at = _text(data, at)
        kind, at = _text(data, at)
        size = int.from_bytes(data[at : at + 4], "little")
        attributes.append((name, kind, data[at + 4 : at + 4 + size]))
        at += 4 + size
    return File(flags, attributes, _chunks(data, at + 1))


def _chunks(data: bytes, at: int) -> list[bytes]:
    """Chunks end where the next one begins; the table ends where the first one begins."""
    first = int.from_bytes(data[at : at + 8], "little")
    if not at < first <= len(data):
        return [data[at:]]
    count = (first - at) // 8
    offsets = sorted(struct.unpack_from(f"<{count}Q", data, at))
    return [data[one:other] for one, other in zip(offsets, [*offsets[1:], len(data)], strict=True)]


def packed(file: File) -> bytes:
    """A file of these parts."""
    head = b"\x76\x2f\x31\x01" + struct.pack("<I", file.flags % 2**32)
    for name, kind, body in file.attributes:
        head += name + b"\0" + kind + b"\0" + struct.pack("<I", len(body)) + body
    head += b"\0"
    offsets, at = [], len(head) + 8 * len(file.chunks)
    for chunk in file.chunks:
        offsets.append(at)
        at += len(chunk)
    for index, offset in file.lies if offsets else ():
        offsets[index % len(offsets)] = offset
    return head + struct.pack(f"<{len(offsets)}Q", *offsets) + b"".join(file.chunks)


def _attributes(rng: random.Random, file: File) -> File:
    return replace(file, attributes=rearranged(rng, file.attributes))


def _attribute(rng: random.Random, file: File) -> File:
    """One attribute with another body, name or type."""
    if not file.attributes:
        return file
    at = rng.randrange(len(file.attributes))
    name, kind, body = file.attributes[at]
    choice = rng.randrange(4)
    if choice == 0:
        name = rng.choice(_NAMES)
    elif choice == 1:
        kind = rng.choice((b"int", b"box2i", b"chlist", b"string", b"", b"x" * 300))
    elif choice == 2:
        changed = bytearray(body)
        set_number(rng, changed, 4 * rng.randrange(len(body) // 4 + 1), "<i")
        body = bytes(changed)
    else:
        body = damaged(rng, body or b"\0")
    return replace(file, attributes=[*file.attributes[:at], (name, kind, body), *file.attributes[at + 1 :]])


def _order(rng: random.Random, file: File) -> File:
    return replace(file, chunks=rearranged(rng, file.chunks))


def _lie(rng: random.Random, file: File) -> File:
    """Chunks that overlap, or lie outside of the file."""
    if rng.random() < 0.5:
        same = odd(rng, 12)
        return replace(file, lies=tuple((index, same) for index in range(len(file.chunks))))
    return replace(file, lies=((rng.randrange(100), odd(rng, 64)),))


def _chunk(rng: random.Random, file: File) -> File:
    """One chunk with another row, size or content; the content may be deflated anew."""
    if not file.chunks:
        return file
    at = rng.randrange(len(file.chunks))
    chunk = bytearray(file.chunks[at])
    choice = rng.randrange(4)
    if choice < 2:
        set_number(rng, chunk, 4 * choice, "<i")
    elif choice == 2:
        chunk[8:] = damaged(rng, bytes(chunk[8:]) or b"\0")
    else:
        chunk[8:] = _deflated(rng, bytes(chunk[8:]))
        struct.pack_into("<i", chunk, 4, len(chunk) - 8)
    return replace(file, chunks=[*file.chunks[:at], bytes(chunk), *file.chunks[at + 1 :]])


def _deflated(rng: random.Random, body: bytes) -> bytes:
    try:
        raw = zlib.decompress(body)
    except zlib.error:
        return zlib.compress(body)
    return zlib.compress(rng.choice((raw + bytes(rng.choice((1, 3_000_000))), raw[:-1], damaged(rng, raw))))


def _flags(rng: random.Random, file: File) -> File:
    bit = rng.choice((0x200, 0x400, 0x800, 0x1000, 0x2000, 1, 2))
    return replace(file, flags=file.flags ^ bit)


_EDITS = (_attributes, _attribute, _attribute, _attribute, _order, _lie, _chunk, _chunk, _flags)


def structured(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the parts."""
    if len(data) < 8:
        return damaged(rng, data)
    file = parsed(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        file = rng.choice(_EDITS)(rng, file)
    return packed(file)
