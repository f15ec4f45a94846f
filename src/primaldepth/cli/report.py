"""`primaldepth report`: every table and figure of the paper beside ours."""

import datetime as dt
import time
from functools import partial
from pathlib import Path

import typer

from primaldepth.bench.timing import machine
from primaldepth.cli.options import JOBS_HELP, NO_CACHE_HELP, data_folder, processes
from primaldepth.cli.output import StagedBar, note, show
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.io.atomic import check_place
from primaldepth.report.cached_runs import CachedRuns
from primaldepth.report.figures import require_matplotlib
from primaldepth.report.plan import ReportSettings, lines
from primaldepth.report.report_files import write_report
from primaldepth.report.studies import Studies
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
    jobs: int = typer.Option(0, "--jobs", metavar="N", help=JOBS_HELP),
    no_cache: bool = typer.Option(False, "--no-cache", help=NO_CACHE_HELP),
) -> None:
    """Write every table and figure of the paper beside ours, as HTML and Markdown; resumes by itself."""
    require_matplotlib()
    place = pick_device(device)
    workers = processes(jobs, place)
    check_place("--out", out / "report.html")
    benchmark, folder = get_protocol("noisy-middlebury"), data_folder(data)
    settings = ReportSettings.parse({"methods": tuple(method) or None}, "report")
    lines(settings, benchmark.scales)  # an unknown method is told before the work
    for scene in benchmark.scenes:
        for problem in benchmark.problems(benchmark.root(folder), scene):
            raise InputError(problem)
    start = time.monotonic()
    with StagedBar() as bar:
        cache = None if no_cache else ResultCache()
        runs = CachedRuns(folder, str(place), workers, cache, partial(_watch, bar))
        tof = [get_protocol(name) for name in ("tofmark", "tofmark-sim")]
        cameras = [get_protocol(name) for name in ("real-holdout", "aligned-holes")]
        studies = Studies(runs, settings, benchmark, tof, get_protocol("noise-free"), cameras)
        made = studies.report(_footer(place.type))
    page, *others = write_report(made, out)
    show(page)
    note(f"wrote {page} and {', '.join(path.name for path in others)} in {time.monotonic() - start:.0f} s")


def _footer(device: str) -> str:
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    return f"primaldepth {__version__}, {machine(device)}, {today}."


def _watch(bar: StagedBar, stage: str, piece: str, done: int, total: int) -> None:
    """Show progress; each stage is announced once, also where no bar can be drawn."""
    bar.show(stage, f"{stage} {piece}".strip(), done, total, f"{stage}: {total} to do, less what is known")
