"""What a run has found, by reader: how inputs ended, the slowest, the largest, and every kind of fault."""

import os
import platform
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.attack.watch import InputOutcome
from primaldepth.version import __version__

_EXAMPLES = 3


@dataclass
class ReaderCounts:
    """One reader's inputs."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    faults: int = 0
    slowest: tuple[float, str] = (0.0, "")
    growth: tuple[float, str] = (0.0, "")

    def add(self, name: str, outcome: InputOutcome) -> None:
        self.inputs += 1
        self.read += outcome.ended == "read"
        self.refused += outcome.ended == "refused"
        self.faults += bool(outcome.faults)
        self.slowest = max(self.slowest, (round(outcome.seconds, 3), name))
        self.growth = max(self.growth, (round(outcome.growth_mib, 1), name))


@dataclass
class Summary:
    """Everything that is reported of a run."""

    seed: int
    rows: dict[str, ReaderCounts] = field(default_factory=dict)
    faults: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    shown: int = 0

    def add(self, name: str, outcome: InputOutcome, how: str) -> list[str]:
        """Count one input; returns a line for each kind of fault that was not seen before."""
        reader = name.partition(":")[0]
        self.rows.setdefault(reader, ReaderCounts()).add(name, outcome)
        new = []
        for kind, detail in outcome.faults:
            where = reader if name.rpartition(":")[2].isdecimal() else name
            key = (where, kind, _general(detail))
            self.counts[key] = self.counts.get(key, 0) + 1
            known = self.faults.setdefault(key, [])
            if not known:
                new.append(f"{name} ({how}): {kind}: {detail}")
            if len(known) < _EXAMPLES:
                known.append(name)
        return new

    def show_progress(self, total: int) -> None:
        """Print a line after every tenth of the inputs."""
        done = sum(row.inputs for row in self.rows.values())
        if done >= self.shown + total / 10:
            self.shown = done
            seconds = time.perf_counter() - self.started
            print(f"{done} of {total} inputs, {seconds:.0f} s", file=sys.stderr, flush=True)

    @property
    def failed(self) -> bool:
        return bool(self.faults)

    def report(self) -> dict[str, Any]:
        """Plain values for a file."""
        rows = self.rows.values()
        return {
            "version": __version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "seed": self.seed,
            "inputs": sum(row.inputs for row in rows),
            "read": sum(row.read for row in rows),
            "refused": sum(row.refused for row in rows),
            "with_faults": sum(row.faults for row in rows),
            "seconds": round(time.perf_counter() - self.started, 1),
            "slowest": max((row.slowest for row in rows), default=None),
            "largest_growth_mib": max((row.growth for row in rows), default=None),
            "readers": {name: vars(row) for name, row in sorted(self.rows.items())},
            "faults": [
                {"reader": reader, "kind": kind, "detail": detail, "count": self.counts[key], "inputs": names}
                for key, names in sorted(self.faults.items())
                for reader, kind, detail in [key]
            ],
        }


def _general(detail: str) -> str:
    """The detail without what differs from input to input."""
    place = re.search(r"\((\w+\.py:\d+|outside of the package)\)$", detail)
    if place is not None:
        return f"{detail.partition(':')[0]} at {place[1]}"
    return re.sub(r"\S*/input/\S*|\d+(\.\d+)?", "N", detail)[:80]
