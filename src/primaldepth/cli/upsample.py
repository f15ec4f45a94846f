"""`primaldepth upsample`: one pair of files, or many."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
import typer

from primaldepth.api import (
    DEFAULT_METHOD,
    Inputs,
    Spikes,
    check_meaning,
    check_noise,
    check_spikes,
    pick_device,
)
from primaldepth.cli.batch import Job, Targets, list_jobs
from primaldepth.cli.clock import Clock
from primaldepth.cli.distributed import Outcome, Task, check_engine, run_on_ray, worker_device
from primaldepth.cli.journal import Journal
from primaldepth.cli.loading import read_job
from primaldepth.cli.options import ENSEMBLE_HELP, ITERATIONS_HELP, SET_HELP, method_options
from primaldepth.cli.output import fail, note, progress_bar, show_json
from primaldepth.cli.predicting import predict
from primaldepth.cli.sequence import NAME as MEMORY
from primaldepth.cli.sequence import SequenceJournal
from primaldepth.cli.summary import ADVICE, residual, sentence, summary
from primaldepth.cli.writing import (
    check_fits,
    check_metric,
    result_for,
    write_cloud_file,
    write_measured,
    write_mesh_file,
    write_preview_file,
    write_sigma,
)
from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Method, Prediction, Sampling, check_sampling
from primaldepth.doubts import doubts
from primaldepth.evaluation.cache import method_identity
from primaldepth.geometry.cameras import Cameras, is_list, read_cameras
from primaldepth.geometry.meshing import MAX_JUMP, check_jump
from primaldepth.io import Kind, Unit
from primaldepth.io.atomic import remove_leftovers
from primaldepth.io.depth import write_values
from primaldepth.io.files import MAX_TEXT, read_file
from primaldepth.io.locks import held
from primaldepth.methods import create
from primaldepth.results import doubting_largest
from primaldepth.variational import Progress


@dataclass(frozen=True, slots=True)
class Request:
    """What holds for every pair of a batch."""

    method: str
    options: dict[str, str]
    unit: Unit | None
    kind: Kind | None
    noise: str
    cameras: Cameras | Path | None
    spikes: Spikes
    sampling: Sampling | None
    device: torch.device
    fill: bool
    jump: float
    temporal: bool = False


def upsample(
    depth: str = typer.Argument(metavar="DEPTH", help="Depth file, or a folder or quoted glob of them."),
    guide: str | None = typer.Argument(
        None, metavar="[GUIDE]", help="Image, folder or quoted glob of them, or video; none for a recording."
    ),
    out: Path = typer.Option(..., "--out", "-o", metavar="OUT", help="Output file; a folder for a batch."),
    method: str = typer.Option(
        DEFAULT_METHOD, "--method", metavar="NAME", help="See `primaldepth methods`.", show_default=True
    ),
    unit: str | None = typer.Option(
        None,
        "--unit",
        metavar="mm|m|NUMBER|disparity",
        help="Unit of DEPTH, where the file does not say; NUMBER: per metre, 5000 for TUM, 256 for KITTI.",
    ),
    kind: str | None = typer.Option(
        None, "--kind", metavar="z|radial|disparity", help="radial needs --cameras; the result is then z."
    ),
    confidence: Path | None = typer.Option(
        None, "--confidence", metavar="FILE", help="Confidence map of DEPTH's size; a folder for a batch."
    ),
    cameras: Path | None = typer.Option(
        None,
        "--cameras",
        metavar="FILE",
        help="JSON of the guide's camera, a camera_info of ROS (YAML or JSON), or its 3x3 matrix; "
        "with a depth camera in the JSON, DEPTH is registered into the guide's view.",
    ),
    noise: str = typer.Option(
        "auto",
        "--noise",
        metavar="auto|SIGMA|SENSOR",
        help="auto, a standard deviation in DEPTH's unit, or the name of a sensor.",
    ),
    device: str = typer.Option("auto", "--device", metavar="auto|cpu|cuda", help="Where to compute."),
    preview: Path | None = typer.Option(
        None, "--preview", metavar="PNG", help="Picture of input and result; a folder for a batch."
    ),
    cloud: Path | None = typer.Option(
        None, "--cloud", metavar="PLY|GLB", help="Point cloud in metres; a folder (of PLY) for a batch."
    ),
    measured: Path | None = typer.Option(
        None, "--measured", metavar="PNG", help="8-bit mask: 255 measured, 0 filled in; a folder for a batch."
    ),
    mesh: Path | None = typer.Option(
        None, "--mesh", metavar="GLB|PLY", help="Triangle mesh in metres; a folder (of GLB) for a batch."
    ),
    mesh_jump: float = typer.Option(
        MAX_JUMP, "--mesh-jump", metavar="R", help="Cut the mesh where neighbours differ by more than R z."
    ),
    sigma: Path | None = typer.Option(
        None,
        "--sigma",
        metavar="FILE",
        help="How far the result may be off (.npy, .exr, ...), by methods that know; a folder for a batch.",
    ),
    spikes: str = typer.Option(
        "drop", "--spikes", metavar="drop|keep", help="drop: samples far off all around them count as holes."
    ),
    sampling: str | None = typer.Option(
        None,
        "--sampling",
        metavar="average|point",
        help="A sample is the mean over its pixel or the depth at its centre; default: as --noise says.",
    ),
    holes: str = typer.Option(
        "fill", "--holes", metavar="fill|keep", help="keep: what was not measured stays a hole."
    ),
    tile: int | None = typer.Option(
        None, "--tile", metavar="PX", help="Run a network in tiles of this size: less memory, same result."
    ),
    ensemble: bool = typer.Option(False, "--ensemble", help=ENSEMBLE_HELP),
    iterations: int | None = typer.Option(None, "--iterations", metavar="N", help=ITERATIONS_HELP),
    option: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help=SET_HELP),
    engine: str = typer.Option("local", "--engine", metavar="NAME", help="local, or ray for a cluster."),
    gpus: float = typer.Option(
        0.0, "--gpus-per-task", metavar="X", help="With ray: GPUs of one pair, e.g. 0.25; 0 computes on CPUs."
    ),
    temporal: bool = typer.Option(
        False, "--temporal", help="A batch is a sequence: average over time, along the camera's motion."
    ),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="In a batch, also do again what an earlier run has finished."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report: an object, a list for a batch."),
) -> None:
    """Make a depth map of the guide's size. Folders or globs are a batch, paired by number, time or order."""
    if holes not in ("fill", "keep"):
        raise InputError(f"--holes: '{holes}' is not fill or keep")
    check_meaning(unit, kind)
    check_noise(noise)
    check_spikes(spikes)
    check_sampling(sampling)
    ray = check_engine(engine, gpus, temporal)
    request = Request(
        method=method,
        options=method_options(option, tile=tile, iterations=iterations, ensemble=ensemble or None),
        unit=unit,
        kind=cast("Kind | None", kind),
        noise=noise,
        cameras=None if cameras is None else _cameras(cameras),
        spikes=cast("Spikes", spikes),
        sampling=cast("Sampling | None", sampling),
        device=worker_device(device, gpus) if ray else pick_device(device),
        fill=holes == "fill",
        jump=check_jump(mesh_jump),
        temporal=temporal,
    )
    made = create(method, request.options)  # a wrong name or option is told before any file is read
    if sigma is not None and not getattr(made, "gives_sigma", False):
        raise InputError(f"--sigma: method '{method}' does not say how far it may be off; use pdn-any")
    targets = Targets(depth, guide, out, confidence, preview, cloud, measured, mesh, sigma)
    _run(targets, request, as_json, overwrite, gpus if ray else None)


def _cameras(path: Path) -> Cameras | Path:
    """A JSON file is read now, to be told early what is wrong; a bare matrix needs the size of each guide."""
    later = path.is_file() and (path.suffix.lower() != ".json" or is_list(path))
    return path if later else read_cameras(path)


def _run(targets: Targets, request: Request, as_json: bool, overwrite: bool, gpus: float | None) -> None:
    """Run the pairs, print the report, and say which of a batch failed."""
    jobs, batch = list_jobs(targets)
    if gpus is not None and not batch:
        raise InputError(f"--engine ray: {targets.depth} is one pair; give a folder, a recording or a video")
    if request.temporal and not batch:
        raise InputError(f"--temporal: {targets.depth} is one frame; give a folder, a recording or a video")
    with _sole_use(targets.folders) if batch else nullcontext():
        reports = _run_jobs(jobs, targets.out if batch else None, request, overwrite, gpus)
    if as_json:
        show_json(reports if batch else reports[0])
    failed = [report["depth"] for report in reports if "error" in report]
    if failed:
        fail(f"{len(failed)} of {len(jobs)} failed: {', '.join(failed)}")
        raise typer.Exit(1)


@contextmanager
def _sole_use(folders: Sequence[Path]) -> Iterator[None]:
    """Hold the output folders of a batch: two batches in one folder would replace each other's results."""
    with ExitStack() as stack:
        for folder in dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders):
            stack.enter_context(held(folder, "writing a batch to", name=""))
        yield


def _run_jobs(
    jobs: list[Job], folder: Path | None, request: Request, overwrite: bool, gpus: float | None
) -> list[dict[str, Any]]:
    """Run the pairs here or on a cluster; `folder` is where a batch goes."""
    remove_leftovers(path for job in jobs for _, path in job.outputs)
    journal = None if folder is None else _open_journal(folder, request)
    try:
        if gpus is not None and journal is not None:
            return _run_on_ray(jobs, request, journal, overwrite, gpus)
        return _run_all(jobs, request, journal, overwrite)
    except KeyboardInterrupt:
        if folder is not None:
            again = "the same command without --overwrite" if overwrite else "the same command"
            note(f"{folder}: stopped; {again} goes on from here")
        raise


def _open_journal(folder: Path, request: Request) -> Journal:
    remove_leftovers([folder / MEMORY])
    matrix = read_file(request.cameras, MAX_TEXT) if isinstance(request.cameras, Path) else b""
    settings = f"{request} {matrix!r} {method_identity(create(request.method, request.options))}"
    if not request.temporal:
        return Journal(folder, settings)
    return SequenceJournal(folder, settings, lambda job: _read(job, request), request.device)


def _run_all(
    jobs: list[Job], request: Request, journal: Journal | None, overwrite: bool
) -> list[dict[str, Any]]:
    """Run every pair; in a batch what is finished is kept, a failure is reported, and the others go on."""
    kept = {} if journal is None or overwrite else _kept(jobs, journal)
    clock = Clock(len(jobs) - len(kept))
    reports: list[dict[str, Any]] = []
    with progress_bar(request.method, clock.total) as update:

        def watch(state: Progress) -> None:
            update(f"{request.method} {state.iteration}", clock.done)

        method = create(request.method, request.options, progress=watch)
        for job in jobs:
            if job in kept and journal is not None:
                if journal.holds(job):
                    reports.append(kept[job])
                    continue
                clock.total += 1
            reports.append(_attempt(job, partial(_run_one, job, request, method, journal), journal, clock))
            update(None, clock.done)
    return reports


def _run_on_ray(
    jobs: list[Job], request: Request, journal: Journal, overwrite: bool, gpus: float
) -> list[dict[str, Any]]:
    """As `_run_all`, but the methods run on a cluster; files are read and written here."""
    reports = {} if overwrite else _kept(jobs, journal)
    missing = [job for job in jobs if job not in reports]
    task = Task(request.method, tuple(request.options.items()), request.device.type)
    with progress_bar(request.method, len(missing)) as update:
        clock = Clock(len(missing))
        for job, outcome in run_on_ray(missing, task, lambda job: _prepare(job, request), gpus):
            reports[job] = _attempt(job, partial(_collect, job, request, outcome), journal, clock)
            update(None, clock.done)
    return [reports[job] for job in jobs]


def _collect(job: Job, request: Request, outcome: Outcome) -> dict[str, Any]:
    return _finish(job, request, *outcome())


def _kept(jobs: list[Job], journal: Journal) -> dict[Job, dict[str, Any]]:
    kept = {job: {**report, "kept": True} for job, report in journal.kept(jobs).items()}
    if kept:
        note(f"{len(kept)} of {len(jobs)} are finished already and kept; --overwrite does them again")
    return kept


def _attempt(
    job: Job, run: Callable[[], dict[str, Any]], journal: Journal | None, clock: Clock
) -> dict[str, Any]:
    """The report of one pair; in a batch an error becomes one too."""
    try:
        report = run()
    except (PrimalDepthError, OSError) as error:
        if journal is None:
            raise
        clock.tick()
        message = str(error) if str(job.depth) in str(error) else f"{job.depth}: {error}"
        fail(message)
        return {"depth": str(job.depth), "error": message}
    clock.tick()
    note(sentence(report) + ("" if journal is None else f"; {clock}"))
    for doubt in report["warnings"]:
        note(f"{job.out}: warning: {doubt}")
    if journal is not None:
        journal.add(job, report)
    return report


def _read(job: Job, request: Request) -> Inputs:
    return read_job(
        job,
        unit=request.unit,
        kind=request.kind,
        noise=request.noise,
        cameras=request.cameras,
        spikes=request.spikes,
        sampling=request.sampling,
    )


def _run_one(job: Job, request: Request, method: Method, journal: Journal | None) -> dict[str, Any]:
    inputs = _prepare(job, request)
    start = time.perf_counter()
    prediction = _predict(method, inputs, request.device, journal)
    return _finish(job, request, inputs, prediction, time.perf_counter() - start)


def _prepare(job: Job, request: Request) -> Inputs:
    """Read, and check what can be checked before the work is done."""
    inputs = _read(job, request)
    check_fits(job.out, inputs)
    check_metric(job, inputs)
    if inputs.note is not None:
        note(f"{job.depth}: {inputs.note}")
    return inputs


def _finish(
    job: Job, request: Request, inputs: Inputs, prediction: Prediction, seconds: float
) -> dict[str, Any]:
    """Write the results and report them."""
    departure = residual(inputs, prediction)  # before the result is made, which takes memory too
    with doubting_largest(inputs):
        report = _write(job, inputs, prediction, request)
    report |= departure | {"seconds": round(seconds, 3)}
    return report | {"warnings": doubts(report, request.method, request.unit or request.kind, ADVICE)}


def _predict(method: Method, inputs: Inputs, device: torch.device, journal: Journal | None) -> Prediction:
    run = partial(journal.run, method, inputs.kind) if isinstance(journal, SequenceJournal) else method
    return predict(method.name, run, inputs.frame, device)


def _write(job: Job, inputs: Inputs, prediction: Prediction, request: Request) -> dict[str, Any]:
    kept = prediction if request.fill else prediction.measured_only()
    result = result_for(job.out, kept, inputs)
    write_values(job.out, result.values, result.valid, result.unit)
    if job.sigma is not None:
        write_sigma(job.sigma, prediction, inputs)
    if job.measured is not None:
        write_measured(job.measured, prediction)
    if job.preview is not None:
        write_preview_file(job.preview, inputs, prediction)
    if job.cloud is not None:
        write_cloud_file(job.cloud, inputs, kept)
    if job.mesh is not None:
        write_mesh_file(job.mesh, inputs, kept, request.jump)
    for path in (job.cloud, job.mesh):
        if path is not None and inputs.cameras is None:
            note(f"{path}: no --cameras given, so a camera with a 60 degree wide view was assumed")
    return summary(job, inputs, prediction, result, request.noise)
