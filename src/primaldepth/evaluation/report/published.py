"""Figures that others have printed, with their source: data of this package, never computed here."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from primaldepth.core.documents import parse_json

Numbers = dict[str, float]
"""By scene."""


@dataclass(frozen=True, slots=True)
class Published:
    """What is compared with.

    Args:
        sources: key -> the publication in words.
        source_of: method -> key of the source of its row of noisy-middlebury.
        benchmark: (method, scale) -> RMSE of noisy-middlebury in disparities.
        energies: "fcn" or the energy after it -> RMSE at x8.
        windows: side of the window -> mean RMSE over the scenes at x8.
        tof: method -> RMSE of ToFMark in mm.
    """

    sources: dict[str, str]
    source_of: dict[str, str]
    benchmark: dict[tuple[str, int], Numbers]
    energies: dict[str, Numbers]
    windows: dict[int, float]
    tof: dict[str, Numbers]

    def in_table(self, method: str) -> bool:
        """Whether the row was printed in the table itself, not taken from elsewhere."""
        return self.source_of.get(method) == "riegler16"


@cache
def published() -> Published:
    """The figures, read once."""
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
    )


def _by_scene(table: dict[str, Any], values: list[float]) -> Numbers:
    return dict(zip(table["scenes"], values, strict=True))
