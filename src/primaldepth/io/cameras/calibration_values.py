"""Values of other programs' calibration files; what is missing or wrong is named with its file and key."""

import json
import math
from collections.abc import Mapping
from typing import Any

from primaldepth.core.documents import DEFAULT, parse_json
from primaldepth.core.errors import SHOWN, FileFormatError, MissingDependencyError, shortened
from primaldepth.io.files import PathLike, read_text

MAX_CALIBRATION = 2**24
"""Bytes of a file with a camera; a topic of ROS that was recorded as text has a camera per frame."""
_MOST_YAML = 2**16  # characters; a camera_info has less than 2000


def read_object(path: PathLike) -> dict[str, Any]:
    """Read the object in a JSON file, or the first document of a YAML file.

    Raises:
        FileFormatError: the file holds no object, or is beyond the limits of `core.documents`.
    """
    text = read_text(path, MAX_CALIBRATION)
    is_json = text.lstrip().startswith(("{", "["))
    values = parse_json(text, path, what="JSON calibration") if is_json else _yaml(path, text)
    if values is None:
        raise FileFormatError(path, "holds no values, expected those of a camera")
    if not isinstance(values, dict):
        raise FileFormatError(path, f"found a {type(values).__name__}, expected an object with named values")
    return values


def _yaml(path: PathLike, text: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            path, "YAML needs the package PyYAML", "install it, or save the file as JSON"
        ) from error
    head = _head(path, text)
    try:
        first = next(iter(yaml.load_all(head, _plain_loader(yaml))), None)
        plain = json.dumps(first, default=str)  # YAML also knows dates and sets
    except Exception as error:  # values that their tags do not fit raise almost anything
        detail = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileFormatError(path, f"not to be read as YAML ({detail})") from error
    return parse_json(plain, path, what="YAML calibration")


def _plain_loader(yaml: Any) -> Any:
    """PyYAML's safe loader without aliases, of which a few lines can stand for billions of values.

    Values inside too many others and keys that occur twice are refused, too.
    """

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not taken")
            self.depth += 1
            if self.depth > DEFAULT.depth:
                raise yaml.YAMLError(f"nested deeper than {DEFAULT.depth}")
            node = super().compose_node(parent, index)
            self.depth -= 1
            if isinstance(node, yaml.MappingNode):
                keys = [str(key.value) for key, _ in node.value]
                if len(set(keys)) < len(keys):
                    raise yaml.YAMLError("a key occurs twice")
            return node

    return Loader


def _head(path: PathLike, text: str) -> str:
    """The documents that lie wholly in the first characters: a second of a topic is many, YAML is slow."""
    if len(text) <= _MOST_YAML:
        return text
    end = text.rfind("\n---", 0, _MOST_YAML)
    if end < 0:
        raise FileFormatError(path, f"more than {_MOST_YAML} characters of YAML, too many for a camera")
    return text[:end]


def item(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> Any:
    """Return the value under the first of `names` that is there; raise if there is none."""
    for name in names:
        if name in values:
            return values[name]
    found = ", ".join(values)[:SHOWN] or "nothing"
    raise FileFormatError(where, f"found the keys {found}", f"expected '{' or '.join(names)}'")


def part(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the object under the first of `names`; raise if it is something else."""
    found = item(values, names, where)
    if not isinstance(found, dict):
        raise FileFormatError(where, f"'{names[0]}' is {shortened(found)}, expected an object")
    return found


def number(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> float:
    """Return the finite number under the first of `names`; raise if it is something else."""
    found = item(values, names, where)
    if not _is_number(found):
        raise FileFormatError(where, f"'{names[0]}' is {shortened(found)}, expected a finite number")
    return float(found)


def count(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> int:
    """Return the whole number under the first of `names`; raise if it is something else."""
    found = number(values, names, where)
    if found != int(found):
        raise FileFormatError(where, f"'{names[0]}' is {found}, expected a whole number")
    return int(found)


def numbers(
    values: Mapping[str, Any], names: tuple[str, ...], where: str, length: int | None = None
) -> list[float]:
    """Return the finite numbers under the first of `names`, those of nested lists in order."""
    found = _flat(item(values, names, where))
    expected = "numbers" if length is None else f"{length} numbers"
    if found is None or not all(map(_is_number, found)) or length not in (None, len(found)):
        raise FileFormatError(
            where, f"'{names[0]}' is {shortened(values.get(names[0]))}, expected {expected}"
        )
    return [float(each) for each in found]


def _flat(found: Any) -> list[Any] | None:
    if not isinstance(found, list):
        return None
    rows = [row if isinstance(row, list) else [row] for row in found]
    return [each for row in rows for each in row]


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)
