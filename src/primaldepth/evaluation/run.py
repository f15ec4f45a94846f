"""Run methods over a protocol and collect one row per scene and scale, at once or from the cache."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from primaldepth.compute.process_pool import run_jobs
from primaldepth.core.frame import Method
from primaldepth.evaluation import rows
from primaldepth.evaluation.cache import Key, ResultCache, machine_identity
from primaldepth.evaluation.code_version import code_version
from primaldepth.evaluation.protocol import Protocol
from primaldepth.evaluation.rows import Row, comparable
from primaldepth.methods.identity import method_identity


@dataclass(frozen=True, slots=True)
class ScoringTask:
    """One row to be computed; small enough to be sent to another process."""

    protocol: Protocol
    method: Method
    root: Path
    scene: str
    scale: int
    device: str

    def __call__(self) -> Row:
        """Compute the row."""
        return rows.compute_row(self.protocol, self.method, self.root, self.scene, self.scale, self.device)

    def key(self) -> Key | None:
        """Return everything the row depends on; None if the method's parameters cannot be named."""
        identity = method_identity(self.method)
        if identity is None:
            return None
        return {
            "method": identity,
            "protocol": [self.protocol.name, self.protocol.version, self.scene, self.scale],
            "variant": self.protocol.variant,
            "scoring": self.protocol.scoring.model_dump(mode="json"),
            "inputs": self.protocol.inputs(self.root, self.scene),
            "code": code_version(self.modules()),
            **machine_identity(self.device),
        }

    def modules(self) -> set[str]:
        """Return the modules that define what computes the row."""
        parts = [getattr(self.protocol, each.name) for each in fields(self.protocol)]
        names = {getattr(each, "__module__", "builtins") for each in (self.method, self.protocol, *parts)}
        own = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
        return {rows.__name__, *own}


def evaluate(
    protocol: Protocol,
    methods: Sequence[Method],
    data: Path | None,
    scales: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
    *,
    scenes: Sequence[str] | None = None,
    jobs: int = 1,
    cache: ResultCache | None = None,
) -> Iterator[Row]:
    """Yield rows by method, scale and scene, each as soon as it and those before it are computed.

    Args:
        protocol: which scenes, samples and metrics.
        methods: to be scored.
        data: folder of the inputs; see `Protocol.root`.
        scales: all of the protocol's if None.
        device: to compute on.
        scenes: all of the protocol's if None.
        jobs: processes that compute at the same time.
        cache: where rows are looked up and kept; None computes all of them.
    """
    root = protocol.root(data)
    tasks = [
        ScoringTask(protocol, comparable(method), root, scene, scale, str(device))
        for method in methods
        for scale in scales or protocol.scales
        for scene in (protocol.scenes if scenes is None else scenes)
    ]
    keys = [task.key() if cache is not None else None for task in tasks]
    stored = [cache.get(key) if cache is not None and key is not None else None for key in keys]
    computed = run_jobs([task for task, found in zip(tasks, stored, strict=True) if found is None], jobs)
    for key, found in zip(keys, stored, strict=True):
        if found is not None:
            yield Row.of(found)
            continue
        row = next(computed)
        if cache is not None and key is not None:
            cache.put(key, row.as_json())
        yield row


def as_json(protocol: Protocol, found: Sequence[Row]) -> dict[str, Any]:
    """Return rows in the documented layout of `evaluate --json`."""
    return {
        "protocol": protocol.name,
        "version": protocol.version,
        "units": protocol.scoring.units(),
        "rows": [row.as_json() for row in found],
    }
