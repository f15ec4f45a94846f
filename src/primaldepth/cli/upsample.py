"""`primaldepth upsample`: one pair of files, or many."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from primaldepth.cli.options import (
    ENSEMBLE_HELP,
    ITERATIONS_HELP,
    SET_HELP,
    STATIC_SCENE_HELP,
    declared,
    early_cameras,
    method_options,
    with_declared_options,
)
from primaldepth.cli.output import fail, note, progress_bar, show_json
from primaldepth.cli.remaining_time import RemainingTime
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError
from primaldepth.io.atomic import remove_leftovers
from primaldepth.methods import create
from primaldepth.methods.temporal import TemporalSettings, temporal_settings
from primaldepth.pipeline.batches import Batch, FinishedFrame, open_ledger, sole_use
from primaldepth.pipeline.ledger import Ledger
from primaldepth.pipeline.on_ray import check_engine, worker_device
from primaldepth.pipeline.output_checks import check_method
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.pairing import NamedFiles, list_items
from primaldepth.pipeline.request import Item, Request, declarations
from primaldepth.pipeline.warnings import Advice
from primaldepth.variational import SolverProgress

ADVICE = Advice.of_options("--{}", "--{} {}", keep_small="write .npy, .exr or .tiff to keep them")


@with_declared_options
def upsample(
    depth: str = typer.Argument(metavar="DEPTH", help="Depth file, or a folder or quoted glob of them."),
    guide: str | None = typer.Argument(
        None, metavar="[GUIDE]", help="Image, folder or quoted glob of them, or video; none for a recording."
    ),
    confidence: Path | None = typer.Option(
        None,
        "--confidence",
        metavar="FILE",
        help=f"{declarations(Item)['confidence'].help} A folder for a batch.",
    ),
    cameras: Path | None = declared("cameras"),
    time_apart: float | None = typer.Option(
        None,
        "--time-apart",
        metavar="SECONDS",
        min=0.0,
        help="How far a depth map and its image may be apart; 0.02 for TUM, 0.05 for bags, 0.1 for names.",
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
    static_scene: bool = typer.Option(False, "--static-scene", help=STATIC_SCENE_HELP),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="In a batch, also do again what an earlier run has finished."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report: an object, a list for a batch."),
    **asked: Any,
) -> None:
    """Make a depth map of the guide's size. Folders or globs are a batch, paired by number, time or order."""
    outputs = {name: asked.pop(name) for name in OUTPUTS}
    outputs = {name: path for name, path in outputs.items() if path is not None}
    filtered = temporal_settings(temporal, static_scene, ("--temporal", "--static-scene"))
    options = method_options(option, tile=tile, iterations=iterations, ensemble=ensemble or None)
    request = Request(
        **asked | {"options": options, "device": _device(asked["device"], engine, gpus, temporal)}
    )
    made = create(request.method, options)  # a wrong name or option is told before any file is read
    check_method(outputs, request, made)
    named = NamedFiles(depth, guide, outputs, confidence, early_cameras(cameras), time_apart, note)
    _run(named, request, as_json, overwrite, filtered, gpus if engine == "ray" else None)


def _device(device: str, engine: str, gpus: float, temporal: bool) -> str:
    """Return the device to compute on; raise if options do not go together."""
    ray = check_engine(engine, gpus, temporal)
    return worker_device(device, gpus) if ray else pick_device(device).type


def _run(
    named: NamedFiles,
    request: Request,
    as_json: bool,
    overwrite: bool,
    temporal: TemporalSettings | None,
    gpus: float | None,
) -> None:
    """Run the frames, print the report, and say which of a batch failed."""
    items, many = list_items(named)
    if gpus is not None and not many:
        raise InputError(
            "--engine ray", f"{named.depth} is one pair", "give a folder, a recording or a video"
        )
    if temporal is not None and not many:
        raise InputError("--temporal", f"{named.depth} is one frame", "give a folder, a recording or a video")
    with sole_use(named.outputs.values()) if many else nullcontext():
        ledger = open_ledger(named.outputs["out"], request, named.cameras, temporal) if many else None
        ended = _run_items(items, request, ledger, overwrite, gpus)
    if as_json:
        reports = [ended[item].json() for item in items]
        show_json(reports if many else reports[0])
    failed = [str(item.depth) for item in items if ended[item].error]
    if failed:
        fail(f"{len(failed)} of {len(items)} failed: {', '.join(failed)}")
        raise typer.Exit(1)


def _run_items(
    items: list[Item], request: Request, ledger: Ledger | None, overwrite: bool, gpus: float | None
) -> dict[Item, FinishedFrame]:
    """Run what no earlier run has finished, here or on a cluster."""
    remove_leftovers(path for item in items for path in item.outputs.values())
    kept = {} if ledger is None or overwrite else ledger.kept(items)
    if kept:
        note(f"{len(kept)} of {len(items)} are finished already and kept; --overwrite does them again")
    try:
        return _run_all(Batch(items, request, ADVICE, ledger, kept, gpus))
    except KeyboardInterrupt:
        if ledger is not None:
            again = "the same command without --overwrite" if overwrite else "the same command"
            note(f"{ledger.folder}: stopped; {again} goes on from here")
        raise


def _run_all(batch: Batch) -> dict[Item, FinishedFrame]:
    """Run every frame and print how each ended, with a progress bar."""
    request, clock = batch.request, RemainingTime(len(batch.items) - len(batch.kept))
    ended: dict[Item, FinishedFrame] = {}
    told: set[type | str] = set()
    with progress_bar(request.method, clock.total) as update:

        def watch(state: SolverProgress) -> None:
            update(f"{request.method} {state.iteration}", clock.done)

        for each in batch.run(create(request.method, request.options, progress=watch)):
            ended[each.item] = each
            if not each.kept:
                clock.total += each.item in batch.kept
                clock.tick()
                _tell(each, f"; {clock}" if batch.ledger else "", told)
                update(None, clock.done)
    return ended


def _tell(ended: FinishedFrame, rest: str, told: set[type | str]) -> None:
    """Print how a frame ended; a note or a warning that concerns the whole batch is printed once."""
    if ended.report is None:
        fail(ended.message)
        return
    for text in ended.notes:
        said = text.partition(": ")[2]  # without the file
        if said not in told:
            note(text)
        told.add(said)
    out = ended.item.outputs["out"]
    note(f"{out}: {ended.report.line}{rest}")
    for warning in ended.report.warnings:
        if type(warning) not in told:
            note(f"{out}: warning: {warning}")
        if warning.of_batch:
            told.add(type(warning))
