"""Multipart bodies: parts are dropped, repeated and moved; headers and boundaries are rewritten.

A file of this kind is the Content-Type on its first line and the body after it.
"""

import random
from dataclasses import dataclass, replace

from benchmarks.attack.cases import Mutant, Promise, Seed
from benchmarks.attack.plain import damaged, odd, rearranged

NAME = "body.form"
_HEADERS = (
    b"Content-Disposition: form-data", b'Content-Disposition: form-data; name=""', b"Content-Disposition:",
    b'Content-Disposition: attachment; name="depth"', b"Content-Transfer-Encoding: base64",
    b"Content-Type: multipart/mixed; boundary=c", b"X: " + b"y" * 20_000, b"\0: \0", b": x", b"no colon",
    b"Content-Disposition: form-data; name*=utf-8''d%65pth", b"Content-Disposition: form-data; name=depth",
)  # fmt: skip
_TYPES = (
    b"multipart/form-data", b"multipart/form-data; boundary=", b"multipart/form-data; boundary=c",
    b'multipart/form-data; boundary="b"', b"multipart/form-data; boundary=b; boundary=c", b"text/plain", b"",
    b"multipart/form-data; boundary=" + b"b" * 5000, b"multipart/form-data; boundary=b; charset=utf-16",
    b"multipart/form-data; boundary=b; charset=rot13", b"application/x-www-form-urlencoded", b"\xff",
    b"multipart/form-data; boundary=b; charset=idna",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One field with its headers."""

    headers: tuple[bytes, ...]
    body: bytes

    @property
    def name(self) -> bytes:
        return self.headers[0].partition(b'name="')[2].partition(b'"')[0] if self.headers else b""


def part(name: str, body: bytes, filename: str | None = None) -> Part:
    header = f'Content-Disposition: form-data; name="{name}"'
    return Part(((header + (f'; filename="{filename}"' if filename else "")).encode(),), body)


def packed(
    parts: list[Part], end: bytes = b"--b--\r\n", kind: bytes = b"multipart/form-data; boundary=b"
) -> bytes:
    """The Content-Type, a line's end, the body."""
    lines = [
        b"--b\r\n" + b"".join(each + b"\r\n" for each in p.headers) + b"\r\n" + p.body + b"\r\n"
        for p in parts
    ]
    return kind + b"\n" + b"".join(lines) + end


def parsed(data: bytes) -> list[Part]:
    """The parts of a body that `packed` made."""
    pieces = data.partition(b"\n")[2].split(b"--b\r\n")[1:]
    pieces[-1] = pieces[-1].removesuffix(b"--b--\r\n")
    found = []
    for piece in pieces:
        head, _, body = piece.partition(b"\r\n\r\n")
        found.append(Part(tuple(head.split(b"\r\n")), body.removesuffix(b"\r\n")))
    return found


def _edit(rng: random.Random, here: Part) -> Part:
    choice = rng.randrange(4)
    if choice == 0:
        return replace(here, headers=tuple(rearranged(rng, (*here.headers, rng.choice(_HEADERS)))))
    if choice == 1:
        return replace(here, headers=(rng.choice(_HEADERS),))
    if choice == 2:
        return replace(here, headers=(damaged(rng, here.headers[0] or b"x"),) if here.headers else ())
    return replace(here, body=damaged(rng, here.body or b"x") * rng.choice((1, 1, 3)))


def mutated(rng: random.Random, seeds: list[Seed]) -> Mutant:
    """A body that must be refused, one whose parts are edited, or one whose bytes are."""
    origin = rng.randrange(len(seeds))
    data = seeds[origin].files[NAME]
    parts = parsed(data)
    choice = rng.random()
    promise: Promise = "any"
    if choice < 0.08:
        how, promise, new = (
            "not ended",
            "refused",
            packed(parts, rng.choice((b"", b"--b", b"--b\r\n", b"--c--\r\n"))),
        )
    elif choice < 0.16:
        at = rng.randrange(len(parts) + 1)
        how, promise, new = "repeated field", "refused", packed([*parts[:at], rng.choice(parts), *parts[at:]])
    elif choice < 0.22:
        how, new = "type", packed(parts, kind=rng.choice(_TYPES))
    elif choice < 0.7:
        how, new = "parts", packed(_edited(rng, parts))
    else:
        how, new = "bytes", damaged(rng, data)
    return Mutant({NAME: new}, how, promise, origin)


def _edited(rng: random.Random, parts: list[Part]) -> list[Part]:
    for _ in range(rng.choice((1, 1, 2))):
        if not parts:
            break
        at = rng.randrange(len(parts))
        if rng.random() < 0.3:
            parts = rearranged(rng, parts)
        elif rng.random() < 0.1:
            parts = [*parts, *(part(f"f{odd(rng)}", b"1") for _ in range(rng.choice((1, 1200))))]
        else:
            parts = [*parts[:at], _edit(rng, parts[at]), *parts[at + 1 :]]
    return parts
