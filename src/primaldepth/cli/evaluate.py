"""`primaldepth evaluate`: methods over a frozen protocol."""

import json
import os
from pathlib import Path

import torch
import typer

from primaldepth.api import pick_device
from primaldepth.cli.output import note, progress_bar, show_table
from primaldepth.cli.places import check_place
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Method
from primaldepth.evaluation.protocols import Protocol, get_protocol, protocol_names
from primaldepth.evaluation.run import Row, as_json
from primaldepth.evaluation.run import evaluate as run_protocol
from primaldepth.io import write_bytes
from primaldepth.methods import create

DATA_HELP = "Folder with the protocol's data; PRIMALDEPTH_DATA if not given."


def data_folder(data: Path | None) -> Path:
    """--data, or PRIMALDEPTH_DATA."""
    named = data or (Path(os.environ["PRIMALDEPTH_DATA"]) if os.environ.get("PRIMALDEPTH_DATA") else None)
    if named is None:
        raise InputError("no data folder: give --data DIR or set PRIMALDEPTH_DATA")
    if not named.is_dir():
        raise InputError(f"{named}: not a folder")
    return named


def evaluate(
    protocol: str = typer.Argument(metavar="PROTOCOL", help=f"One of {', '.join(protocol_names())}."),
    method: list[str] = typer.Option(
        ..., "--method", metavar="NAME", help="Method to run; repeat for several."
    ),
    scale: list[int] = typer.Option(
        [], "--scale", metavar="N", help="Scale to run; repeat for several. All if not given."
    ),
    data: Path | None = typer.Option(None, "--data", metavar="DIR", help=DATA_HELP),
    device: str = typer.Option("auto", "--device", metavar="auto|cpu|cuda", help="Where to compute."),
    json_file: Path | None = typer.Option(
        None, "--json", metavar="FILE", help="Write every number to this file."
    ),
) -> None:
    """Score methods on a benchmark; prints RMSE per scene and scale."""
    chosen, folder = get_protocol(protocol), data_folder(data)
    runs = [create(name) for name in dict.fromkeys(method)]
    scales = sorted(set(scale)) or list(chosen.scales)
    if json_file is not None:
        check_place("--json", json_file)
    _check(chosen, folder, scales)
    rows = _run(chosen, runs, folder, scales, pick_device(device))
    if json_file is not None:
        write_bytes(json_file, json.dumps(as_json(chosen, rows), indent=1).encode())
        note(f"wrote {json_file}")
    _print(chosen, rows, scales)


def _check(protocol: Protocol, folder: Path, scales: list[int]) -> None:
    """Refuse a missing scale or a changed file before the first method runs."""
    for scale in scales:
        if scale not in protocol.scales:
            known = ", ".join(map(str, protocol.scales))
            raise InputError(f"--scale {scale}: {protocol.name} has the scales {known}")
    root = protocol.root(folder)
    for scene in protocol.scenes:
        for problem in protocol.problems(root / scene, scene):
            raise InputError(problem)


def _run(
    protocol: Protocol, runs: list[Method], folder: Path, scales: list[int], device: torch.device
) -> list[Row]:
    rows: list[Row] = []
    total = len(runs) * len(scales) * len(protocol.scenes)
    with progress_bar(protocol.name, total) as update:
        for row in run_protocol(protocol, runs, folder, scales, device):
            rows.append(row)
            update(f"{row.method} {row.scene} x{row.scale} {row.rmse:.3f}", len(rows))
    return rows


def _print(protocol: Protocol, rows: list[Row], scales: list[int]) -> None:
    cells = {(row.method, row.scene, row.scale): row for row in rows}
    methods = list(dict.fromkeys(row.method for row in rows))
    lines = []
    for name in methods:
        for scale in scales:
            found = [cells[name, scene, scale] for scene in protocol.scenes]
            seconds = sum(row.seconds for row in found) / len(found)
            lines.append([name, f"x{scale}", *(f"{row.rmse:.3f}" for row in found), f"{seconds:.2f}"])
    title = f"{protocol.name} v{protocol.version}: RMSE [{protocol.unit}] where the truth is known"
    show_table(title, ["method", "scale", *protocol.scenes, "s/frame"], lines, left=2)
