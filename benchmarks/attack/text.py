"""Trees of values (JSON) and lines of words (YAML, TOML, CSV): values, keys and lines are exchanged."""

import json
import random
import re
from typing import Any

from benchmarks.attack.plain import damaged, rearranged

Path = tuple[str | int, ...]
_DEEPEST = 30
_NUMBERS = (0, -1, 1, 1.5, -0.0, 1e-320, 1e308, -1e308, 2**31, 2**63, 2**64, 10**30, 10**400)
_TEXTS = (
    "",
    "x",
    "NaN",
    "../../../../etc/passwd",
    "/dev/zero",
    "\0",
    "é" * 50,
    "x" * 20_000,
    "1e999",
    "\ud800",
)
_WORDS = (b"nan", b"inf", b"-inf", b"1e999", b"9" * 5000, b"0x10", b"1_0", b"-0", b"", b"[", b"]", b"{",
          b"}", b'"', b"'''", b"\\", b"\0", b"\xff", b"\xef\xbb\xbf", b"&a *a",
          b"!!python/object/apply:os.system [id]", b"!!int ''", b"<<: *x", b"---", b"...", b"%TAG ! x", b"=",
          b"#", b"[" * 3000, b"{a: " * 500, b"a." * 3000, b"1979-05-27T07:32:00Z", b"\\ud800", b"true",
          b"null", b"~")  # fmt: skip


def odd_value(rng: random.Random) -> Any:
    """A value that no one expects."""
    choice = rng.randrange(7)
    if choice < 2:
        return rng.choice(_NUMBERS)
    if choice == 2:
        return rng.choice((float("nan"), float("inf"), -float("inf")))
    if choice == 3:
        return rng.choice(_TEXTS)
    if choice == 4:
        return rng.choice((None, True, False, [], {}, [[]], {"": None}))
    if choice == 5:
        return [rng.choice(_NUMBERS)] * rng.choice((1, 3, 9, 5000))
    return _nested(rng.choice((3, 60, 900)), rng.random() < 0.5)


def _nested(depth: int, as_list: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if as_list else {"a": value}
    return value


def places(value: Any, path: Path = ()) -> list[Path]:
    """Where every value of a tree is, down to a depth that this program itself can follow."""
    found = [path]
    if len(path) >= _DEEPEST:
        return found
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:50]):
            found += places(inner, (*path, index))
    return found


def replaced(value: Any, path: Path, new: Any) -> Any:
    """The tree with another value at one place."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], rest, new)}
    return [replaced(each, rest, new) if index == key else each for index, each in enumerate(value)]


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def edited(rng: random.Random, value: Any) -> Any:
    """The tree with one value exchanged, or one key dropped, renamed or added, or one list rearranged."""
    path = rng.choice(places(value))
    here = _at(value, path)
    if isinstance(here, dict) and here and rng.random() < 0.6:
        key = rng.choice(list(here))
        rest = {name: each for name, each in here.items() if name != key}
        new = rng.choice((rest, {**rest, key + "x": here[key]}, {**here, rng.choice(_TEXTS): odd_value(rng)}))
        return replaced(value, path, new)
    if isinstance(here, list) and here and rng.random() < 0.6:
        return replaced(value, path, rearranged(rng, here))
    if isinstance(here, float) and rng.random() < 0.3:
        return replaced(value, path, here * rng.choice((-1, 0, 1000, 1e-9, 1e300)))
    return replaced(value, path, odd_value(rng))


def json_bytes(value: Any) -> bytes:
    """JSON, with NaN and infinities as Python writes them, and half characters kept."""
    return json.dumps(value).encode("utf-8", "surrogatepass")


def structured_json(rng: random.Random, data: bytes) -> bytes:
    """One to three edits of the tree, and perhaps one of the text."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return structured_words(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = edited(rng, value)
    text = json_bytes(value)
    choice = rng.random()
    if choice < 0.08:
        return b'{"a": 1, ' * 1 + text.lstrip()[1:] if text.startswith(b"{") else text
    if choice < 0.12:
        return rng.choice(
            (b"\xef\xbb\xbf" + text, text.decode().encode("utf-16"), text + text, b"[" * 2000 + text)
        )
    return text


def structured_words(rng: random.Random, data: bytes) -> bytes:
    """Lines and words exchanged: for YAML, TOML, CSV and plain text."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        choice = rng.random()
        if choice < 0.35:
            data = b"\n".join(rearranged(rng, data.split(b"\n")))
        elif choice < 0.85:
            data = _word(rng, data)
        else:
            data = damaged(rng, data or b"\n")
    return data


def _word(rng: random.Random, data: bytes) -> bytes:
    """Put another word, an odd one or one of the text's own, in the place of one."""
    found = list(re.finditer(rb"[^\s,:=\[\]{}]+", data))
    if not found:
        return data + rng.choice(_WORDS)
    here = rng.choice(found)
    new = rng.choice(found)[0] if rng.random() < 0.3 else rng.choice(_WORDS)
    if rng.random() < 0.3:
        new = str(rng.choice(_NUMBERS)).encode()
    return data[: here.start()] + new + data[here.end() :]
