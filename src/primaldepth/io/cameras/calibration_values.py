"""Values of other programs' calibration files; what is missing or wrong is named with its file and key."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from primaldepth.core.documents import DEFAULT, parse_json
from primaldepth.core.errors import SHOWN, FileFormatError, shortened
from primaldepth.io.files import PathLike, as_object, optional, read_text
from primaldepth.io.formats.base import decoding

OFF_CENTRE = 0.1  # of the image: lenses stay nearer, a matrix for 3/4 of the pixels does not
MAX_CALIBRATION = 2**24
"""Bytes of a file with a camera; a topic of ROS that was recorded as text has a camera per frame."""
_MOST_YAML = 2**16  # characters; a camera_info has less than 2000


@dataclass(frozen=True, slots=True)
class Keys:
    """The named values of a calibration, or of a part of it.

    A value is asked for by the names that it may have; the first that is there counts. What is missing or of
    another type is a `FileFormatError`.

    Args:
        values: by name.
        where: path of the file and place in it, for errors.
    """

    values: Mapping[str, Any]
    where: str

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def item(self, *names: str) -> Any:
        """Return a value of any type."""
        for name in names:
            if name in self.values:
                return self.values[name]
        found = ", ".join(self.values)[:SHOWN] or "nothing"
        raise FileFormatError(self.where, f"found the keys {found}", f"expected '{' or '.join(names)}'")

    def part(self, *names: str) -> "Keys":
        """Return an object."""
        found = self.item(*names)
        if not isinstance(found, dict):
            raise self._wrong(names, "an object")
        return Keys(found, f"{self.where}: {names[0]}")

    def number(self, *names: str) -> float:
        """Return a finite number."""
        found = self.item(*names)
        if not _is_number(found):
            raise self._wrong(names, "a finite number")
        return float(found)

    def count(self, *names: str) -> int:
        """Return a whole number."""
        found = self.number(*names)
        if found != int(found):
            raise self._wrong(names, "a whole number")
        return int(found)

    def numbers(self, *names: str, length: int | None = None) -> list[float]:
        """Return `length` or any number of finite numbers, those of nested lists in order."""
        found = self.item(*names)
        rows = found if isinstance(found, list) else [None]
        flat: list[Any] = [each for row in rows for each in (row if isinstance(row, list) else [row])]
        if not all(map(_is_number, flat)) or length not in (None, len(flat)):
            raise self._wrong(names, "numbers" if length is None else f"{length} numbers")
        return [float(each) for each in flat]

    def _wrong(self, names: tuple[str, ...], expected: str) -> FileFormatError:
        found = shortened(self.item(*names))
        return FileFormatError(self.where, f"'{names[0]}' is {found}, expected {expected}")


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)


def read_keys(path: PathLike) -> Keys:
    """Read the object in a JSON file, or the first document of a YAML file.

    Raises:
        FileFormatError: the file holds no object, or is beyond the limits of `core.documents`.
    """
    text = read_text(path, MAX_CALIBRATION)
    is_json = text.lstrip().startswith(("{", "["))
    values = parse_json(text, path, what="JSON calibration") if is_json else _yaml(path, text)
    if values is None:
        raise FileFormatError(path, "holds no values, expected those of a camera")
    return Keys(as_object(values, path), str(path))


def _yaml(path: PathLike, text: str) -> Any:
    if text.lstrip().startswith("%YAML:"):
        raise FileFormatError(
            path,
            "a file of OpenCV's FileStorage, which is no plain YAML",
            'write its numbers as JSON, {"guide": {...}}',
        )
    yaml = optional("yaml", "ros", path)
    head = _head(path, text)
    with decoding(path, "not to be read as YAML"):
        first = next(iter(yaml.load_all(head, _plain_loader(yaml))), None)
        plain = json.dumps(first, default=str)  # YAML also knows dates and sets
    return parse_json(plain, path, what="YAML calibration")


def _plain_loader(yaml: Any) -> Any:
    """Return PyYAML's safe loader without aliases: a few lines of them can stand for billions of values.

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
    """Return the YAML documents that lie wholly in the first characters: to read them all would be slow."""
    if len(text) <= _MOST_YAML:
        return text
    end = text.rfind("\n---", 0, _MOST_YAML)
    if end < 0:
        raise FileFormatError(path, f"more than {_MOST_YAML} characters of YAML, too many for a camera")
    return text[:end]


def check_central(where: object, cx: float, cy: float, size: tuple[int, int], hint: str) -> None:
    """Raise an error if the principal point is so far off the middle that K must be of another resolution."""
    width, height = size
    if max(abs(cx / width - 0.5), abs(cy / height - 0.5)) > OFF_CENTRE:
        found = (
            f"the principal point ({cx:.1f}, {cy:.1f}) is far from the middle of an image of {width}x{height}"
        )
        raise FileFormatError(where, found, hint)
