"""Run methods over a protocol and collect one row per scene and scale."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.frame import Method
from primaldepth.evaluation.metrics import mae, rmse
from primaldepth.evaluation.protocols import Case, Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a table, with what it took to get it."""

    method: str
    scene: str
    scale: int
    rmse: float
    mae: float
    seconds: float


def score(method: Method, case: Case, device: torch.device | str = "cpu") -> Row:
    """Run the method on the case; the prediction is not rounded."""
    frame = case.frame.to(device)
    start = time.perf_counter()
    depth = method(frame).depth
    if depth.is_cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    errors = (depth.cpu(), case.truth.cpu(), case.known.cpu())
    return Row(method.name, case.scene, case.scale, rmse(*errors), mae(*errors), seconds)


def evaluate(
    protocol: Protocol,
    methods: Sequence[Method],
    data: Path,
    scales: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
) -> Iterator[Row]:
    """Rows as they come, method by method, scale by scale."""
    for method in methods:
        for scale in scales or protocol.scales:
            for scene in protocol.scenes:
                yield score(method, protocol.load(data, scene, scale), device)


def as_json(protocol: Protocol, rows: Sequence[Row]) -> dict[str, Any]:
    """The documented layout of `evaluate --json`."""
    return {
        "protocol": protocol.name,
        "version": protocol.version,
        "rows": [asdict(row) for row in rows],
    }
