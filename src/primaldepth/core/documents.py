"""JSON and TOML as plain values, within limits that are checked before anything is built from the bytes.

A few bytes of JSON become many bytes of objects, brackets inside brackets use up the stack, and a number may
have a million digits. So a document is refused by its size, its nesting and its count of values first, which
costs one pass over its bytes. What is returned holds finite numbers, text that can be written again, lists
and dictionaries with text as keys; no key occurs twice.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from primaldepth.core.errors import FileFormatError, shortened

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest document that is parsed.

    Args:
        size: bytes.
        values: entries of all lists and tables together.
        depth: lists and tables inside each other.
        digits: characters of one number.
    """

    size: int = 2**20
    values: int = 2**17
    depth: int = 32
    digits: int = 100


DEFAULT = Limits()
RECORDED = Limits(size=2**24, values=2**20)
"""For documents with a line per frame or scene."""

_JSON_ESCAPE, _JSON_STRING = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"?')
# Each end is optional, so that the longest match is never given up; from Python 3.11 on repeats can say so
# (possessive "*+"), and then take no memory for the ways back.
_TOML_SKIPPED = re.compile(
    rb'"""(?:[^"\\]+|\\.|"(?!""))*@"{0,5}'
    rb"|'''(?:[^']+|'(?!''))*@'{0,5}"
    rb'|"(?:[^"\\\n]+|\\[^\n])*@"?'
    rb"|'[^'\n]*'?"
    rb"|#[^\n]*".replace(b"@", b"+" if sys.version_info >= (3, 11) else b""),
    re.DOTALL,
)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_IN_KEY = bytes(set(range(128)) - set(b"[]{},.=\n"))  # all that may lie between the dots of a TOML key
_STEP = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}


def parse_json(
    data: bytes | str, where: object, *, what: str = "JSON document", limits: Limits = DEFAULT
) -> Any:
    """Parse one JSON document.

    NaN, infinities, numbers beyond those of a float64, keys that occur twice, text other than UTF-8 and
    halves of surrogate pairs are refused.

    Args:
        data: the document, of unknown origin.
        where: names it in errors: a path, as a rule.
        what: it should be, for errors.
        limits: beyond which it is refused.

    Returns:
        Numbers, text, lists and dictionaries.

    Raises:
        FileFormatError: the document is not JSON or beyond the limits.
    """

    def build(text: str) -> Any:
        return json.loads(
            text,
            parse_int=lambda digits: int(_short_enough(digits, limits)),
            parse_float=lambda digits: _finite(digits, limits),
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_repeats,
        )

    return _parsed(data, where, what, limits, _bare_json, build)


def parse_toml(
    data: bytes | str, where: object, *, what: str = "TOML document", limits: Limits = DEFAULT
) -> dict[str, Any]:
    """Parse one TOML document as `parse_json` does; refuse dates, which JSON does not have.

    Args:
        data: text or bytes of unknown origin.
        where: path or name of the document, for errors.
        what: kind of document that is expected, for errors.
        limits: on its size, its nesting and the numbers in it.

    Returns:
        Values by key.

    Raises:
        FileFormatError: the document is not TOML, holds a date, or is beyond the limits.
    """

    def build(text: str) -> dict[str, Any]:
        return tomllib.loads(text, parse_float=lambda digits: _finite(digits, limits))

    found: dict[str, Any] = _parsed(data, where, what, limits, _bare_toml, build)
    return found


def check_values(values: Any, limits: Limits = DEFAULT) -> None:
    """Raise an error unless `values` are plain JSON-like values within the limits.

    Args:
        values: of unknown origin.
        limits: beyond which they are refused.

    Raises:
        ValueError: with what is wrong, without the document's name.
    """
    waiting, count = [(values, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > limits.depth or count > limits.values:
            raise ValueError(_too_deep(limits) if depth > limits.depth else _too_many(limits))
        if isinstance(value, dict):
            for key in value:
                _check_key(key)
            waiting.extend((each, depth + 1) for each in value.values())
        elif isinstance(value, list):
            waiting.extend((each, depth + 1) for each in value)
        else:
            _check_scalar(value, limits)


def _parsed(
    data: bytes | str,
    where: object,
    what: str,
    limits: Limits,
    bare: Callable[[bytes], bytes],
    build: Callable[[str], Any],
) -> Any:
    try:
        raw = data.encode() if isinstance(data, str) else data
        _check_size(raw, limits)
        _check_extent(bare(raw), limits)
        values = build(raw.decode("utf-8-sig"))
        check_values(values, limits)
        return values
    except ValueError as error:  # all that the parsers and the checks raise
        detail = " ".join(str(error).split())[:120]
        raise FileFormatError(where, f"not a {what} ({detail})", "export or copy it again") from error


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.size:
        raise ValueError(f"{len(raw)} bytes, more than {limits.size}")


def _bare_json(raw: bytes) -> bytes:
    """Return the document without its strings; a backslash outside of them ends the parser's work there."""
    return _JSON_STRING.sub(b"", _JSON_ESCAPE.sub(b"", raw))


def _bare_toml(raw: bytes) -> bytes:
    """Return the document without its strings and comments."""
    return _TOML_SKIPPED.sub(b"", raw)


def _check_extent(bare: bytes, limits: Limits) -> None:
    """Raise if a document nests too deeply or holds too many values, before it is parsed."""
    brackets = bare.translate(None, _NO_BRACKET)
    deepest = max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
    dotted = b"." * limits.depth in bare.translate(None, _IN_KEY)  # a.b.c nests too, in quadratic time
    if dotted or deepest > limits.depth:
        raise ValueError(_too_deep(limits))
    if bare.count(b",") + len(brackets) // 2 > limits.values:
        raise ValueError(_too_many(limits))


def _too_deep(limits: Limits) -> str:
    return f"nested deeper than {limits.depth}"


def _too_many(limits: Limits) -> str:
    return f"more than {limits.values} values"


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"a {type(key).__name__} as a key is not taken; use text")
    key.encode()  # raises a ValueError for half a surrogate pair


def _check_scalar(value: Any, limits: Limits) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("NaN and infinities are not taken")
    elif isinstance(value, int):
        if abs(value) >= 10**limits.digits:
            raise ValueError(_too_long(limits))
    elif value is not None:
        raise ValueError(f"a {type(value).__name__} is not taken; use text or numbers")


def _short_enough(digits: str, limits: Limits) -> str:
    if len(digits) > limits.digits:
        raise ValueError(_too_long(limits))
    return digits


def _too_long(limits: Limits) -> str:
    return f"a number of more than {limits.digits} characters"


def _finite(digits: str, limits: Limits) -> float:
    value = float(_short_enough(digits, limits))
    if not math.isfinite(value):
        raise ValueError(f"{shortened(digits)} is no finite number")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no finite number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {shortened(twice)} occurs twice")
    return found
