"""TOML files that extend each other, with changes of single keys on top."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from primaldepth.core.documents import Limits, parse_toml
from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.files import read_toml

LIMITS = Limits(size=2**16)
MOST_EXTENDED = 16


def read_layered(path: Path, changes: Sequence[str] = (), *, what: str = "TOML file") -> dict[str, Any]:
    """Read a file, the file that it names by `extends` below it, and changes above it.

    Tables are merged key by key; everything else, lists too, is replaced.

    Args:
        path: of the file.
        changes: `a.b=value`, values as in TOML or plain text; a number names an entry of a list.
        what: the file is, for errors.

    Raises:
        InputError: a file cannot be read, extends itself, or a change names no place.
    """
    values = _extended(path, what)
    for change in changes:
        _change(values, change)
    return values


def _extended(path: Path, what: str, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    path = Path(os.path.realpath(path))  # a loop of links is an error when it is opened
    if path in seen:
        raise InputError(path, f"extends itself by way of {seen[-1].name}")
    if len(seen) >= MOST_EXTENDED:
        raise InputError(seen[0], f"extends more than {MOST_EXTENDED} recipes, one after the other")
    values = read_toml(path, what=what, limits=LIMITS)
    base = values.pop("extends", None)
    if base is None:
        return values
    if not isinstance(base, str) or "\0" in base:
        raise InputError(path, "'extends' must be the name of a file")
    return _merged(_extended(path.parent / base, what, (*seen, path)), values)


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; everything else, lists too, is replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _change(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise InputError(f"--set {change}", "expected KEY=VALUE, such as stages.0.steps=100")
    try:
        value = parse_toml(f"value = {text}", "--set", limits=LIMITS)["value"]
    except FileFormatError:
        value = text
    *path, last = key.split(".", LIMITS.depth)
    place: Any = values
    for part in path:
        place = _step_into(place, part, change)
    if isinstance(place, list):
        place[_index(place, last, change)] = value
    else:
        place[last] = value


def _step_into(place: Any, part: str, change: str) -> Any:
    is_list = isinstance(place, list)
    found = place[_index(place, part, change)] if is_list else place.setdefault(part, {})
    if not isinstance(found, dict | list):
        raise InputError(f"--set {change}", f"'{part}' is a value, not a table")
    return found


def _index(place: list[Any], part: str, change: str) -> int:
    if not part.isdecimal() or len(part) > 9 or int(part) >= len(place):
        raise InputError(f"--set {change}", f"'{part}' is not one of the {len(place)} entries, 0 and on")
    return int(part)
