"""Values of other programs' calibration files; what is missing or wrong is named with its file and key."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from primaldepth.core.errors import FileFormatError, MissingDependencyError, PrimalDepthError

PathLike = str | os.PathLike[str]
_MOST_YAML = 2**16  # characters; a camera_info has less than 2000


def read_text(path: PathLike) -> str:
    """The file as text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: not a readable text file ({error})") from error


def read_object(path: PathLike) -> dict[str, Any]:
    """The object in a JSON file, or the first document of a YAML file."""
    text = read_text(path)
    values = _json(path, text) if text.lstrip().startswith(("{", "[")) else _yaml(path, text)
    if values is None:
        raise FileFormatError(f"{path}: holds no values, expected those of a camera")
    if not isinstance(values, dict):
        raise FileFormatError(
            f"{path}: found a {type(values).__name__}, expected an object with named values"
        )
    return values


def _json(path: PathLike, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, or endless numbers or brackets
        raise FileFormatError(f"{path}: not JSON ({_detail(error)})") from error


def _yaml(path: PathLike, text: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            f"{path}: YAML needs the package PyYAML; install it, or save the file as JSON"
        ) from error
    try:
        first = next(iter(yaml.load_all(_head(path, text), _without_aliases(yaml))), None)
        return json.loads(json.dumps(first, default=str))  # YAML also knows dates, sets and endless numbers
    except PrimalDepthError:
        raise
    except Exception as error:  # values that their tags do not fit raise almost anything
        raise FileFormatError(f"{path}: not to be read as YAML ({_detail(error)})") from error


def _detail(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _without_aliases(yaml: Any) -> Any:
    """PyYAML's safe loader without aliases: a few lines of them can stand for billions of values."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not taken")
            return super().compose_node(parent, index)

    return Loader


def _head(path: PathLike, text: str) -> str:
    """The documents that lie wholly in the first characters: a second of a topic is many, YAML is slow."""
    if len(text) <= _MOST_YAML:
        return text
    end = text.rfind("\n---", 0, _MOST_YAML)
    if end < 0:
        raise FileFormatError(f"{path}: more than {_MOST_YAML} characters of YAML, too many for a camera")
    return text[:end]


def item(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> Any:
    """The value under the first of these names that is there."""
    for name in names:
        if name in values:
            return values[name]
    found = ", ".join(map(str, values))[:200] or "nothing"
    raise FileFormatError(f"{where}: found the keys {found}; expected '{' or '.join(names)}'")


def part(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> dict[str, Any]:
    """An object inside another."""
    found = item(values, names, where)
    if not isinstance(found, dict):
        raise FileFormatError(f"{where}: '{names[0]}' is {_short(found)}, expected an object")
    return found


def number(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> float:
    """A finite number."""
    found = item(values, names, where)
    if not _is_number(found):
        raise FileFormatError(f"{where}: '{names[0]}' is {_short(found)}, expected a finite number")
    return float(found)


def count(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> int:
    """A whole number."""
    found = number(values, names, where)
    if found != int(found):
        raise FileFormatError(f"{where}: '{names[0]}' is {found}, expected a whole number")
    return int(found)


def numbers(
    values: Mapping[str, Any], names: tuple[str, ...], where: str, length: int | None = None
) -> list[float]:
    """A list of finite numbers, nested lists in order."""
    found = _flat(item(values, names, where))
    expected = "numbers" if length is None else f"{length} numbers"
    if found is None or not all(map(_is_number, found)) or length not in (None, len(found)):
        raise FileFormatError(f"{where}: '{names[0]}' is {_short(values.get(names[0]))}, expected {expected}")
    return [float(each) for each in found]


def _flat(found: Any) -> list[Any] | None:
    if not isinstance(found, list):
        return None
    rows = [row if isinstance(row, list) else [row] for row in found]
    return [each for row in rows for each in row]


def _is_number(found: Any) -> bool:
    if not isinstance(found, int | float) or isinstance(found, bool):
        return False
    try:
        return math.isfinite(found)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def _short(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
