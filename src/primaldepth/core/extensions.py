"""Find what other installed packages add by entry points: methods and sensors, each by name."""

import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from primaldepth.core.errors import InputError

T = TypeVar("T")


class ExtensionWarning(UserWarning):
    """An installed package offers a name that cannot be loaded; everything else works."""


@dataclass(frozen=True, slots=True)
class Extensions(Generic[T]):
    """One kind of thing that installed packages add by name.

    Args:
        group: group of the entry points, such as "primaldepth.methods".
        noun: what a name stands for, in messages.
        checked: returns the loaded object if it can be used under its name; raises TypeError if not.
    """

    group: str
    noun: str
    checked: Callable[[str, object], T]

    def find(self, name: str, own: Collection[str]) -> T | None:
        """Load what an installed package offers under `name`; None if no package offers it.

        Args:
            name: name of the entry point.
            own: names of this package, which no other may take.

        Returns:
            The loaded object, or None.

        Raises:
            InputError: two packages offer the name, or the one that does cannot be loaded.
        """
        offers = _offers(self.group, tuple(sys.path)).get(name, ())
        packages = [*(["primaldepth"] if name in own else []), *map(_package, offers)]
        if len(packages) > 1:
            both = " and ".join(packages)
            raise InputError(f"{self.noun} '{name}'", f"defined by {both}", "uninstall all but one of them")
        return self._load(offers[0]) if offers else None

    def load_all(self, own: Collection[str]) -> dict[str, T]:
        """Load what all installed packages offer; warn of those that cannot be loaded, and skip them.

        Args:
            own: names of this package, which no other may take.

        Returns:
            What was loaded, by name.

        Raises:
            InputError: two packages offer the same name.
        """
        found = {}
        for name, offers in _offers(self.group, tuple(sys.path)).items():
            if len(offers) > 1 or name in own:
                self.find(name, own)  # raises
            try:
                found[name] = self._load(offers[0])
            except InputError as error:
                warnings.warn(str(error), ExtensionWarning, stacklevel=3)
        return found

    def _load(self, entry: EntryPoint) -> T:
        try:
            return self.checked(entry.name, entry.load())
        except Exception as error:  # whatever the code of another package raises
            raise InputError(
                f"{self.noun} '{entry.name}'",
                f"package {_package(entry)} cannot be loaded ({type(error).__name__}: {error})",
                "update or uninstall that package",
            ) from error


@lru_cache(maxsize=8)
def _offers(group: str, path: Sequence[str]) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; `path` is sys.path, where packages are looked up."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=group):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module
