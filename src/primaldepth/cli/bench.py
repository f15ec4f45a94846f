"""`primaldepth bench`: how fast kernels, networks and the renderer run on this machine."""

import datetime as dt
from dataclasses import asdict

import typer

from primaldepth.bench.kernels import BenchRow, bench_kernels
from primaldepth.bench.models import bench_models
from primaldepth.bench.scene_rendering import bench_render
from primaldepth.bench.timing import machine
from primaldepth.cli.output import note, show_json, show_table
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError


def bench(
    what: str = typer.Argument(metavar="WHAT", help="kernels, models or render."),
    device: str = typer.Option("auto", "--device", metavar="DEVICE", help="auto, cpu or cuda."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Measure speed: median of repeated runs, the reference in the same run, and the floor."""
    kinds = {"kernels": bench_kernels, "models": bench_models, "render": bench_render}
    if what not in kinds:
        raise InputError("bench", f"'{what}' is not one of {', '.join(kinds)}")
    place = pick_device(device).type
    note(f"measuring {what} on {machine(place)}; a minute or two")
    rows = kinds[what](place)
    if as_json:
        today = dt.datetime.now(dt.timezone.utc).date().isoformat()
        show_json({"date": today, "machine": machine(place), "rows": [asdict(row) for row in rows]})
        return
    columns = ["what", "backend", "ms", "reference ms", "speed-up", "floor ms", "MiB", "reference MiB"]
    show_table(machine(place), columns, [_line(row) for row in rows], left=2)


def _line(row: BenchRow) -> list[str]:
    floor = "-" if row.floor_ms is None else f"{row.floor_ms:.2f}"
    times = [f"{row.ms:.2f}", f"{row.reference_ms:.2f}", f"{row.speedup:.2f}x", floor]
    memory = ["-" if peak is None else f"{peak:.0f}" for peak in (row.peak_mib, row.reference_peak_mib)]
    return [row.name, row.backend, *times, *memory]
