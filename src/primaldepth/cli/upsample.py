"""`primaldepth upsample`: one pair of files, or many."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import typer

from primaldepth.api import DEFAULT_METHOD, Inputs, as_depth_map, load_inputs, pick_device
from primaldepth.cli.batch import Job, Targets, list_jobs
from primaldepth.cli.output import fail, note, progress_bar, show_json
from primaldepth.cli.writing import write_cloud_file, write_preview_file
from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Method, Prediction
from primaldepth.io import Kind, Unit, output_unit, write_depth
from primaldepth.methods import create
from primaldepth.variational import Progress


@dataclass(frozen=True, slots=True)
class Request:
    """What holds for every pair of a batch."""

    method: str
    options: dict[str, str]
    unit: Unit | None
    kind: Kind | None
    noise: str
    cameras: Path | None
    device: str
    fill: bool


def upsample(
    depth: str = typer.Argument(help="Depth file, or a folder or quoted glob of them."),
    guide: str = typer.Argument(help="Image file, or a folder or quoted glob of them."),
    out: Path = typer.Option(..., "--out", "-o", help="Output file; a folder for a batch."),
    method: str = typer.Option(DEFAULT_METHOD, "--method", help="See `primaldepth methods`."),
    unit: str | None = typer.Option(
        None, "--unit", help="mm, m, 5000, 256 or disparity; else told by the file."
    ),
    kind: str | None = typer.Option(None, "--kind", help="z, radial or disparity."),
    confidence: Path | None = typer.Option(
        None, "--confidence", help="Confidence map; a folder for a batch."
    ),
    cameras: Path | None = typer.Option(None, "--cameras", help="JSON file with the guide's camera."),
    noise: str = typer.Option(
        "auto", "--noise", help="auto, a standard deviation in the input's unit, or a sensor."
    ),
    device: str = typer.Option("auto", "--device", help="auto, cpu or cuda."),
    preview: Path | None = typer.Option(None, "--preview", help="Picture of input and result (PNG)."),
    cloud: Path | None = typer.Option(None, "--cloud", help="Point cloud (PLY or GLB)."),
    holes: str = typer.Option("fill", "--holes", help="fill, or keep: what was not measured stays a hole."),
    option: list[str] = typer.Option([], "--set", help="KEY=VALUE for the method; repeat for several."),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report."),
) -> None:
    """Make a depth map of the guide's size. Folders and globs make a batch, paired in sorted order."""
    if holes not in ("fill", "keep"):
        raise InputError(f"--holes: '{holes}' is not fill or keep")
    jobs, batch = list_jobs(Targets(depth, guide, out, confidence, preview, cloud))
    units = (cast("Unit | None", unit), cast("Kind | None", kind))
    request = Request(method, _options(option), *units, noise, cameras, device, holes == "fill")
    create(method, request.options)  # a wrong name or option is told before any file is read
    pick_device(device)
    reports, failures = _run_all(jobs, request, batch)
    if as_json:
        show_json(reports if batch else reports[0])
    if failures:
        note(f"{failures} of {len(jobs)} failed")
        raise typer.Exit(1)


def _options(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set: '{pair}' is not KEY=VALUE")
    return dict(pair.split("=", 1) for pair in pairs)


def _run_all(jobs: list[Job], request: Request, batch: bool) -> tuple[list[dict[str, Any]], int]:
    """Run every pair; in a batch a failure is reported and the others go on."""
    reports: list[dict[str, Any]] = []
    failures = 0
    with progress_bar(request.method, len(jobs)) as update:

        def watch(state: Progress) -> None:
            update(f"{request.method} {state.iteration}", len(reports))

        method = create(request.method, request.options, progress=watch)
        for job in jobs:
            try:
                reports.append(_run_one(job, request, method))
            except PrimalDepthError as error:
                if not batch:
                    raise
                fail(str(error))
                failures += 1
                reports.append({"depth": str(job.depth), "error": str(error)})
            update(None, len(reports))
    return reports, failures


def _run_one(job: Job, request: Request, method: Method) -> dict[str, Any]:
    inputs = load_inputs(
        job.depth,
        job.guide,
        unit=request.unit,
        kind=request.kind,
        noise=request.noise,
        confidence=job.confidence,
        cameras=request.cameras,
    )
    start = time.perf_counter()
    prediction = method(inputs.frame.to(pick_device(request.device)))
    seconds = time.perf_counter() - start
    result = as_depth_map(prediction, inputs, fill=request.fill)
    result = replace(result, unit=output_unit(job.out, result.unit))
    write_depth(job.out, result)
    if job.preview is not None:
        write_preview_file(job.preview, inputs, prediction)
    if job.cloud is not None and not write_cloud_file(job.cloud, inputs, prediction):
        note(f"{job.cloud}: no --cameras given, so a camera with a 60 degree wide view was assumed")
    report = _report(job, inputs, prediction) | {"unit": result.unit, "seconds": round(seconds, 3)}
    note(_sentence(report))
    return report


def _report(job: Job, inputs: Inputs, prediction: Prediction) -> dict[str, Any]:
    frame = inputs.frame
    sigma = None if frame.sigma is None else float(frame.sigma[frame.valid].median())
    return {
        "depth": str(job.depth),
        "guide": str(job.guide),
        "out": str(job.out),
        "kind": inputs.kind,
        "input_size": list(frame.low_size[::-1]),
        "output_size": list(frame.high_size[::-1]),
        "noise_sigma": sigma,
        "measured_fraction": float(prediction.measured.float().mean()),
        "info": dict(prediction.info),
    }


def _sentence(report: dict[str, Any]) -> str:
    low, high = report["input_size"], report["output_size"]
    noise = "" if report["noise_sigma"] is None else f", noise {_noise_text(report)}"
    filled = 100.0 * (1.0 - report["measured_fraction"])
    return (
        f"{report['out']}: {low[0]}x{low[1]} to {high[0]}x{high[1]} in {report['seconds']:.1f} s, "
        f"unit {report['unit']}{noise}, {filled:.1f} % filled in where nothing was measured"
    )


def _noise_text(report: dict[str, Any]) -> str:
    sigma = report["noise_sigma"]
    return f"{sigma:.3g} px" if report["kind"] == "disparity" else f"{1000 * sigma:.3g} mm"
