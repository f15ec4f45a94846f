"""Figures that others have printed, with their source: data of this package, never computed here."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from primaldepth.core.documents import parse_json

Numbers = dict[str, float]
"""By scene."""


@dataclass(frozen=True, slots=True)
class Family:
    """Published networks that learned from the same kind of data.

    Args:
        about: what they were trained on.
        source: the publications in words.
        rows: method -> (set of noise-free, scale) -> mean RMSE.
    """

    about: str
    source: str
    rows: dict[str, dict[tuple[str, int], float]]


@dataclass(frozen=True, slots=True)
class Published:
    """Published figures that ours are compared with.

    Args:
        sources: key -> the publication in words.
        source_of: method -> key of the source of its row of noisy-middlebury.
        benchmark: (method, scale) -> RMSE of noisy-middlebury in disparities.
        energies: "fcn" or the energy after it -> RMSE at x8.
        windows: side of the window -> mean RMSE over the scenes at x8.
        tof: method -> RMSE of ToFMark in mm.
        noise_free: families of networks on the sets of noise-free, by name.
        noise_free_bicubic: (set, scale) -> mean RMSE of Pillow's bicubic enlargement on the complete set.
    """

    sources: dict[str, str]
    source_of: dict[str, str]
    benchmark: dict[tuple[str, int], Numbers]
    energies: dict[str, Numbers]
    windows: dict[int, float]
    tof: dict[str, Numbers]
    noise_free: dict[str, Family]
    noise_free_bicubic: dict[tuple[str, int], float]

    def in_table(self, method: str) -> bool:
        """Whether the row was printed in the table itself, not taken from elsewhere."""
        return self.source_of.get(method) == "riegler16"


@cache
def published() -> Published:
    """Return the published figures, read once."""
    text = resources.files("primaldepth.evaluation").joinpath("published.json").read_text(encoding="utf-8")
    stored = parse_json(text, "published.json")
    table = stored["noisy-middlebury"]
    return Published(
        sources=stored["sources"],
        source_of={method: row["source"] for method, row in table["rows"].items()},
        benchmark={
            (method, int(scale)): _by_scene(table, values)
            for method, row in table["rows"].items()
            for scale, values in row["rmse"].items()
        },
        energies={name: _by_scene(stored["energies"], v) for name, v in stored["energies"]["rows"].items()},
        windows={int(side): value for side, value in stored["windows"]["rows"].items()},
        tof={name: _by_scene(stored["tofmark"], v) for name, v in stored["tofmark"]["rows"].items()},
        noise_free={name: _family(each) for name, each in stored["noise-free"]["families"].items()},
        noise_free_bicubic=_by_set(stored["noise-free"]["bicubic"]),
    )


def _family(stored: dict[str, Any]) -> Family:
    rows = {method: _by_set(values) for method, values in stored["rows"].items()}
    return Family(stored["about"], stored["source"], rows)


def _by_set(stored: dict[str, dict[str, float]]) -> dict[tuple[str, int], float]:
    return {(name, int(scale)): value for name, values in stored.items() for scale, value in values.items()}


def _by_scene(table: dict[str, Any], values: list[float]) -> Numbers:
    return dict(zip(table["scenes"], values, strict=True))
