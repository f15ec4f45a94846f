"""safetensors: the header is a tree of values before the data; files beside it name their checksums."""

import hashlib
import json
import random
import struct
from typing import Any

from benchmarks.attack.cases import Files
from benchmarks.attack.plain import damaged, odd, rearranged
from benchmarks.attack.text import edited, json_bytes

_TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "X", "")


def parsed(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and data."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def packed(header: Any, body: bytes) -> bytes:
    text = json_bytes(header)
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + body


def _span(rng: random.Random, header: dict[str, Any]) -> dict[str, Any]:
    """An array of another type, shape or place."""
    names = [name for name, each in header.items() if isinstance(each, dict) and "shape" in each]
    if not names:
        return header
    name = rng.choice(names)
    entry, choice = dict(header[name]), rng.randrange(5)
    if choice == 0:
        entry["dtype"] = rng.choice(_TYPES)
    elif choice == 1:
        entry["shape"] = rearranged(rng, entry["shape"])
    elif choice == 2:
        entry["shape"] = [odd(rng, 63) for _ in range(rng.choice((0, 1, 2, 70)))]
    elif choice == 3:
        entry["data_offsets"] = [odd(rng, 64), odd(rng, 64)]
    else:
        entry["data_offsets"] = header[rng.choice(names)].get("data_offsets", [0, 0])
    return {**header, name: entry}


def structured(rng: random.Random, data: bytes) -> bytes:
    """Edits of the header's values, of its length, or of the data."""
    try:
        header, body = parsed(data)
    except ValueError:
        return damaged(rng, data)
    choice = rng.random()
    if choice < 0.1:
        return struct.pack("<Q", odd(rng, 64)) + data[8:]
    if choice < 0.25:
        return packed(header, damaged(rng, body or b"\0"))
    for _ in range(rng.choice((1, 1, 2))):
        header = (
            _span(rng, header) if isinstance(header, dict) and rng.random() < 0.6 else edited(rng, header)
        )
    return packed(header, body)


def mend_card(rng: random.Random, files: Files) -> Files:
    """The checksum of the weights in the card, if that still is a card."""
    return _with_value(files, "net.json", ("sha256",), hashlib.sha256(files["net.safetensors"]).hexdigest())


def mend_manifest(rng: random.Random, files: Files) -> Files:
    """Size and checksum of the shard in the manifest."""
    names = [name for name in files if name.startswith("scenes-")]
    for name in names[:1]:
        data = files[name]
        files = _with_value(files, "manifest.json", ("shards", 0, "bytes"), len(data))
        files = _with_value(files, "manifest.json", ("shards", 0, "sha256"), hashlib.sha256(data).hexdigest())
    return files


def mend_part(rng: random.Random, files: Files) -> Files:
    """The checksum of the data in the header of a part."""
    found = dict(files)
    for name, data in files.items():
        try:
            header, body = parsed(data)
            header["__metadata__"]["sha256"] = hashlib.sha256(body).hexdigest()
        except (ValueError, KeyError, TypeError):
            continue
        found[name] = packed(header, body)
    return found


def _with_value(files: Files, name: str, path: tuple[str | int, ...], value: Any) -> Files:
    try:
        tree = json.loads(files[name])
        place = tree
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return files
    return {**files, name: json_bytes(tree)}
