"""`primaldepth report`: every table and figure of the paper beside ours."""

import datetime as dt
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import typer

from primaldepth.bench.timing import machine
from primaldepth.cli.evaluate import data_folder
from primaldepth.cli.output import note, progress_bar, show
from primaldepth.core.errors import InputError
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.io.atomic import check_place
from primaldepth.pipeline.run import pick_device
from primaldepth.report import (
    Bench,
    ReportSettings,
    Studies,
    lines,
    require_matplotlib,
    write_report,
)
from primaldepth.version import __version__


def report(
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder for the report."),
    data: Path | None = typer.Option(
        None, "--data", metavar="DIR", help="Folder with the benchmarks; PRIMALDEPTH_DATA if not given."
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        metavar="NAME",
        help="Row of the benchmark's table; repeat for several. All if not given.",
    ),
    device: str = typer.Option("auto", "--device", metavar="auto|cpu|cuda", help="Where to compute."),
    jobs: int = typer.Option(
        0, "--jobs", metavar="N", help="Frames computed at the same time; 0: one per core, or one on a GPU."
    ),
    no_cache: bool = typer.Option(
        False, "--no-cache", help="Compute everything; neither take results from the cache nor keep them."
    ),
) -> None:
    """Write every table and figure of the paper beside ours, as HTML and Markdown; resumes by itself."""
    require_matplotlib()
    if jobs < 0:
        raise InputError(f"--jobs {jobs}", "expected 0 or a number of processes")
    check_place("--out", out / "report.html")
    benchmark, place, folder = get_protocol("noisy-middlebury"), pick_device(device), data_folder(data)
    settings = ReportSettings.parse({"methods": tuple(method) or None}, "report")
    lines(settings, benchmark.scales)  # an unknown method is told before the work
    for scene in benchmark.scenes:
        for problem in benchmark.problems(benchmark.root(folder), scene):
            raise InputError(problem)
    workers = jobs or (1 if place.type == "cuda" else os.cpu_count() or 1)
    start = time.monotonic()
    with ExitStack() as stack:
        bench = Bench(folder, str(place), workers, None if no_cache else ResultCache(), Stages(stack))
        tof = [get_protocol(name) for name in ("tofmark", "tofmark-sim")]
        cameras = [get_protocol(name) for name in ("real-holdout", "aligned-holes")]
        studies = Studies(bench, settings, benchmark, tof, get_protocol("noise-free"), cameras)
        made = studies.report(_footer(place.type))
    page, *others = write_report(made, out)
    show(page)
    note(f"wrote {page} and {', '.join(path.name for path in others)} in {time.monotonic() - start:.0f} s")


def _footer(device: str) -> str:
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return f"primaldepth {__version__}, {machine(device)}, {today}."


class Stages:
    """A progress bar for the stage at work; each is announced once, also where no bar can be drawn."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._stage = ""
        self._update: Callable[[str | None, float], None]

    def __call__(self, stage: str, piece: str, done: int, total: int) -> None:
        """`done` of `total` pieces of the stage are there; `piece` was the last."""
        if stage != self._stage:
            self._stack.close()
            self._stage = stage
            note(f"{stage}: {total} to do, less what is known")
            self._update = self._stack.enter_context(progress_bar(stage, total))
        self._update(f"{stage} {piece}".strip(), done)
