"""Run what the report needs, or take it from the cache, and report the progress."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from primaldepth.compute.process_pool import run_jobs
from primaldepth.core.frame import Method
from primaldepth.evaluation.cache import Key, ResultCache
from primaldepth.evaluation.protocol import Protocol
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.run import ScoringTask, evaluate

Watch = Callable[[str, str, int, int], None]
"""Called with (what is done, the last piece of it, how many pieces are done, how many there are)."""
Rows = dict[tuple[str, str, int], Row]
"""By method, scene and scale."""


@dataclass(frozen=True, slots=True)
class CachedRuns:
    """Runs methods on protocols, and takes from a cache what was run before.

    Args:
        data: folder of the benchmarks' inputs.
        device: that computes.
        jobs: processes at the same time.
        cache: None computes everything anew.
        watch: told of every row.
    """

    data: Path | None
    device: str
    jobs: int
    cache: ResultCache | None
    watch: Watch

    def rows(
        self,
        benchmark: Protocol,
        runs: Sequence[tuple[Method, Sequence[int]]],
        scenes: Sequence[str] | None = None,
    ) -> Rows:
        """Score every method at its scales; methods with the same scales share the processes.

        Args:
            runs: methods, each with its scales.
            scenes: all of the benchmark's if None.
        """
        found: Rows = {}
        scenes = benchmark.scenes if scenes is None else scenes
        total = sum(len(scales) for _, scales in runs) * len(scenes)
        stage = " ".join(word for word in (benchmark.name, benchmark.variant) if word)
        if total:
            self.watch(stage, "", 0, total)
        for scales in dict.fromkeys(tuple(scales) for _, scales in runs if scales):
            methods = [method for method, own in runs if tuple(own) == scales]
            for row in evaluate(
                benchmark,
                methods,
                self.data,
                scales,
                self.device,
                scenes=scenes,
                jobs=self.jobs,
                cache=self.cache,
            ):
                found[row.method, row.scene, row.scale] = row
                self.watch(stage, f"{row.method} {row.scene} x{row.scale}", len(found), total)
        return found

    def results(self, what: str, works: "Sequence[KeptOfTask]") -> list[dict[str, Any]]:
        """Return the result of every computation, in order; `what` names them in the progress."""
        found: list[dict[str, Any]] = []
        if works:
            self.watch(what, "", 0, len(works))
        for result in self._each(works):
            found.append(result)
            self.watch(what, "", len(found), len(works))
        return found

    def _each(self, works: "Sequence[KeptOfTask]") -> Iterator[dict[str, Any]]:
        keys = [work.key() if self.cache is not None else None for work in works]
        stored = [None if self.cache is None or key is None else self.cache.get(key) for key in keys]
        missing = [work for work, known in zip(works, stored, strict=True) if known is None]
        computed = run_jobs(missing, self.jobs)
        for key, known in zip(keys, stored, strict=True):
            result = next(computed) if known is None else known
            if known is None and self.cache is not None and key is not None:
                self.cache.put(key, result)
            yield result

    def task(self, benchmark: Protocol, method: Method, scene: str, scale: int) -> ScoringTask:
        """Return the task of one row, to be measured in other ways than `rows` does."""
        return ScoringTask(benchmark, method, benchmark.root(self.data), scene, scale, self.device)


@dataclass(frozen=True, slots=True)
class KeptOfTask(ABC):
    """A computation on the task of a row, cached under its own key; its result is plain data.

    Attributes:
        kept: entry of the cache's key that tells it from the row.
    """

    kept: ClassVar[tuple[str, str]]
    task: ScoringTask

    def key(self) -> Key | None:
        """Return the key of the row with that entry, or None if nothing is to be kept."""
        own = self.task.key()
        return None if own is None else {**own, self.kept[0]: self.kept[1]}

    @abstractmethod
    def __call__(self) -> dict[str, Any]:
        """Return the result, fit for JSON."""


class PeakMemory(KeptOfTask):
    """A row with the peak memory of its computation, less what the process held before."""

    kept = ("measured", "peak memory")

    def __call__(self) -> dict[str, Any]:
        """Return `Row.as_json` with "peak_mib" beside it, which is None where the system does not say."""
        before = _reset_peak(self.task.device)
        row = self.task().as_json()
        after = _peak_mib(self.task.device)
        return {**row, "peak_mib": None if before is None or after is None else after - before}


def _reset_peak(device: str) -> float | None:
    """Reset the peak; return the MiB in use now, or None where the system does not say."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        return _peak_mib(device)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # Linux
    except OSError:
        return None
    return _peak_mib(device)


def _peak_mib(device: str) -> float | None:
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return None if peak is None else int(peak[1]) / 1024
