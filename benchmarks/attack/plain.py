"""Damage that knows nothing of the format, and the pieces that every mutation of a format is made of."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
ODD = (
    *(0, 1, 2, 3, 4, 7, 8, 9, 16, 31, 64, 127, 128, 255, 256, 1000, 4096, 2**15 - 1, 2**15, 2**16 - 1, 2**16),
    *(2**20, 2**24, 2**28, 2**30, 2**31 - 1, 2**31, 2**32 - 16, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63),
    *(2**64 - 16, 2**64 - 1),
)
_FORMS = ("<I", ">I", "<H", ">H", "<Q", ">Q", "B")
MANY = (2, 3, 8, 100, 1000)


def odd(rng: random.Random, bits: int = 32) -> int:
    """A number that code tends to get wrong, of at most so many bits."""
    value = rng.choice((*ODD, rng.getrandbits(bits), rng.randrange(300)))
    return value % (1 << bits)


def near(rng: random.Random, value: int, bits: int = 32) -> int:
    """A number beside the right one, or an odd one."""
    steps = (value + 1, value - 1, value * 2, value // 2, value + 8, value - 8, -value, value ^ 1)
    return (rng.choice(steps) if rng.random() < 0.5 else odd(rng, bits)) % (1 << bits)


def set_number(rng: random.Random, data: bytearray, at: int, form: str) -> None:
    """Replace a stored number by one that lies."""
    size = struct.calcsize(form)
    if at < 0 or at + size > len(data):
        return
    (value,) = struct.unpack_from(form, data, at)
    bits = 8 * size
    number = near(rng, value, bits)
    if form[-1].islower():  # signed
        number = number - (1 << bits) if number >= 1 << (bits - 1) else number
    struct.pack_into(form, data, at, number)


def counted(data: bytes, at: int, form: str, after: int = 0) -> list[tuple[Any, ...]]:
    """The parts of a file from `at` on, as far as their lengths lead.

    `form` reads what stands before a part, its length first; what else it reads is returned before the part.
    `after` counts the bytes behind a part that are skipped.
    """
    found, head = [], struct.calcsize(form)
    while at + head + after <= len(data):
        length, *rest = struct.unpack_from(form, data, at)
        end = at + head + length
        if end + after > len(data):
            break
        found.append((*rest, data[at + head : end]))
        at = end + after
    return found


def rearranged(rng: random.Random, parts: Sequence[T]) -> list[T]:
    """Drop, repeat, exchange or move one of the parts, or repeat it many times."""
    found = list(parts)
    if not found:
        return found
    here, there = rng.randrange(len(found)), rng.randrange(len(found))
    choice = rng.randrange(6)
    if choice == 0:
        del found[here]
    elif choice == 1:
        found.insert(there, found[here])
    elif choice == 2:
        found[here], found[there] = found[there], found[here]
    elif choice == 3:
        found.insert(there, found.pop(here))
    elif choice == 4:
        found[here:here] = [found[here]] * rng.choice(MANY)
    else:
        found = found[: here + 1]
    return found


def _flip(rng: random.Random, data: bytearray, at: int) -> None:
    data[at] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray, at: int) -> None:
    data[at] = rng.randrange(256)


def _number(rng: random.Random, data: bytearray, at: int) -> None:
    form = rng.choice(_FORMS)
    packed = struct.pack(form, odd(rng, 8 * struct.calcsize(form)))
    data[at : at + len(packed)] = packed


def _noise(rng: random.Random, data: bytearray, at: int) -> None:
    data[at : at + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(1, 40))


def _run(rng: random.Random, data: bytearray, at: int) -> None:
    filling = bytes([rng.choice((0, 255, 0x39, 0x41))]) * rng.randrange(1, 60)
    data[at : at + rng.randrange(1, 60)] = filling


def _repeat(rng: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = data[at : at + rng.randrange(1, 40)] * rng.choice((1, 1, 1, 50))


def _delete(rng: random.Random, data: bytearray, at: int) -> None:
    del data[at : at + rng.randrange(1, 60)]


def _truncate(rng: random.Random, data: bytearray, at: int) -> None:
    del data[rng.randrange(len(data)) :]


def _extend(rng: random.Random, data: bytearray, at: int) -> None:
    data += rng.randbytes(rng.choice((1, 4, 100))) if rng.random() < 0.5 else bytes(rng.choice((1, 8, 5000)))


_EDITS: tuple[Callable[[random.Random, bytearray, int], None], ...] = (
    *(_flip, _flip, _flip, _set, _set, _number, _number, _number, _noise, _run, _repeat, _delete),
    *(_truncate, _extend),
)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """One to six edits of bytes, more of them near the beginning, where headers are."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if not changed:
            break
        head = rng.random() < 0.5
        at = rng.randrange(min(len(changed), 420) if head else len(changed))
        rng.choice(_EDITS)(rng, changed, at)
    return bytes(changed)


def flipped(rng: random.Random, data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """One to three bits changed within these ranges."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        low, high = rng.choice(spans)
        _flip(rng, changed, rng.randrange(low, high))
    return bytes(changed)


def spliced(rng: random.Random, one: bytes, other: bytes) -> bytes:
    """The head of one file and the tail of another."""
    return one[: rng.randrange(len(one) + 1)] + other[rng.randrange(len(other) + 1) :]
