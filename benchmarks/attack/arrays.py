"""npy headers that lie, and npz archives whose members, directories and local headers disagree."""

import io
import random
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace

from benchmarks.attack.plain import damaged, near, odd, rearranged

_DESCRS = (
    "<f8",
    ">f4",
    "|u1",
    "<i8",
    "|b1",
    "<f2",
    "|O",
    "<c16",
    "|S1000000000",
    "<U3",
    "<m8[s]",
    "<f16",
    "V9",
)
_FIELDS = {"version": 16, "flags": 16, "method": 16, "crc": 32, "packed_size": 32, "size": 32, "offset": 32}


def npy(shape: tuple[int, ...], body: bytes = b"", descr: str = "<f8") -> bytes:
    """An array of this header and these bytes, whether they fit or not."""
    return _with_header(repr({"descr": descr, "fortran_order": False, "shape": shape}), body)


def _with_header(text: str, body: bytes, wide: bool = False) -> bytes:
    line = text.encode("latin1", "replace").ljust(117) + b"\n"
    if wide or len(line) > 65535:
        return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(line)) + line + body
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(line)) + line + body


def structured_npy(rng: random.Random, data: bytes) -> bytes:
    """Another shape, type or order in the header, or a header of another form."""
    length = int.from_bytes(data[8:10], "little")
    text, body = data[10 : 10 + length].decode("latin1").strip(), data[10 + length :]
    choice = rng.randrange(8)
    if choice < 3:
        numbers = [
            str(rng.choice((near(rng, 5), odd(rng, 64), -1))) for _ in range(rng.choice((0, 1, 2, 3, 9)))
        ]
        text = re.sub(r"\([\d, ]*\)", lambda _: f"({', '.join(numbers)},)", text)
    elif choice == 3:
        text = re.sub(r"'[<>|][^']*'", lambda _: repr(rng.choice(_DESCRS)), text)
    elif choice == 4:
        text = text.replace("False", rng.choice(("True", "None", "1", "[" * 200)))
    elif choice == 5:
        text = rng.choice(
            ("(" * 300, "{'a': " * 90, "9" * 9000, text[: rng.randrange(len(text))], "-" * 5000)
        )
    elif choice == 6:
        text = damaged(rng, text.encode("latin1")).decode("latin1")
    else:
        body = damaged(rng, body or b"\0")
    return _with_header(text, body, wide=rng.random() < 0.2)


@dataclass(frozen=True)
class Member:
    """One file of an archive; `local` and `central` replace fields of its two headers."""

    name: bytes
    content: bytes
    deflated: bool
    local: tuple[tuple[str, int], ...] = ()
    central: tuple[tuple[str, int], ...] = ()
    stream: bytes | None = None


def members(data: bytes) -> list[Member]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [
            Member(info.filename.encode(), archive.read(info), info.compress_type == zipfile.ZIP_DEFLATED)
            for info in archive.infolist()
        ]


def _raw(content: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(content) + deflate.flush()


def zipped(parts: list[Member], count: int | None = None, comment: bytes = b"") -> bytes:
    """An archive of these members."""
    body, directory = bytearray(), bytearray()
    for part in parts:
        stream = (
            part.stream if part.stream is not None else _raw(part.content) if part.deflated else part.content
        )
        true = {
            "version": 20,
            "flags": 0,
            "method": 8 if part.deflated else 0,
            "crc": zlib.crc32(part.content),
        }
        true |= {"packed_size": len(stream), "size": len(part.content), "offset": len(body)}
        near_, far = {**true, **dict(part.local)}, {**true, **dict(part.central)}
        body += b"PK\x03\x04" + _header(near_, part.name) + part.name + stream
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + _header(far, part.name)
        directory += struct.pack("<HHHII", 0, 0, 0, 0, far["offset"]) + part.name
    number = (len(parts) if count is None else count) % 65536
    end = struct.pack("<HHHHIIH", 0, 0, number, number, len(directory), len(body), len(comment) % 65536)
    return bytes(body + directory) + b"PK\x05\x06" + end + comment


def _header(fields: dict[str, int], name: bytes) -> bytes:
    sizes = (fields["crc"], fields["packed_size"], fields["size"])
    head = struct.pack("<HHHHH", fields["version"], fields["flags"], fields["method"], 0, 33)
    return head + struct.pack("<III", *sizes) + struct.pack("<HH", len(name) % 65536, 0)


def _edit(rng: random.Random, part: Member) -> Member:
    choice = rng.randrange(7)
    if choice < 2 and part.content[:6] == b"\x93NUMPY":
        return replace(part, content=structured_npy(rng, part.content))
    if choice == 2:
        return replace(part, content=damaged(rng, part.content))
    if choice == 3:
        return replace(
            part, name=rng.choice((b"depth.npy", b"depth", b"valid.npy", b"../x.npy", b"\xff", b""))
        )
    if choice == 4:
        stream = damaged(rng, _raw(part.content)) if part.deflated else part.content[:-1]
        return replace(part, stream=stream)
    lie = tuple((name, odd(rng, _FIELDS[name])) for name in rng.sample(list(_FIELDS), rng.choice((1, 1, 2))))
    if choice == 5:
        return replace(part, central=lie, local=lie if rng.random() < 0.5 else ())
    return replace(part, local=lie)


def structured_npz(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the members or of what the headers say of them."""
    parts = members(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not parts:
            break
        if rng.random() < 0.3:
            parts = rearranged(rng, parts)
        else:
            at = rng.randrange(len(parts))
            parts[at] = _edit(rng, parts[at])
    count = odd(rng, 16) if rng.random() < 0.1 else None
    return zipped(parts, count, rng.choice((b"", b"", b"", b"PK\x05\x06", rng.randbytes(30))))
