"""`primaldepth evaluate`: methods over a frozen protocol."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
import typer

from primaldepth.cli.options import ENSEMBLE_HELP, ITERATIONS_HELP, SET_HELP, method_options
from primaldepth.cli.output import note, progress_bar, show_table
from primaldepth.cli.own_frames import PICTURE, print_verdict
from primaldepth.cli.score_tables import print_means
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Method
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.own_frames import OwnFrames, own_frames
from primaldepth.evaluation.protocol import chosen_scenes
from primaldepth.evaluation.protocols import Protocol, get_protocol, protocol_names
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.run import as_json
from primaldepth.evaluation.run import evaluate as run_protocol
from primaldepth.io import write_bytes
from primaldepth.io.atomic import check_place
from primaldepth.io.files import check_unlinked
from primaldepth.methods import create
from primaldepth.pipeline.pairing import pairs
from primaldepth.pipeline.run import pick_device
from primaldepth.report.own_frames import METHODS

DATA_HELP = "Folder with the protocol's data; PRIMALDEPTH_DATA if not given."


def data_folder(data: Path | None) -> Path | None:
    """Return --data, else PRIMALDEPTH_DATA, else None: protocols on rendered scenes need neither."""
    named = data or (Path(os.environ["PRIMALDEPTH_DATA"]) if os.environ.get("PRIMALDEPTH_DATA") else None)
    if named is not None and not named.is_dir():
        raise InputError(named, "not a folder")
    return named


def evaluate(
    protocol: str = typer.Argument(
        metavar="PROTOCOL|DEPTHS",
        help=f"One of {', '.join(protocol_names())}; or your own depth maps: a file, folder or glob.",
    ),
    images: str | None = typer.Argument(
        None, metavar="[IMAGES]", help="With your own depth maps: the images that show the same view."
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        metavar="NAME",
        help=f"Method to run; repeat for several. Of your own frames, if not given: {', '.join(METHODS)}.",
    ),
    reduce: int = typer.Option(
        0, "--reduce", metavar="N", help="Of your own frames: keep one sample of NxN; 4 if not given."
    ),
    unit: str | None = typer.Option(
        None, "--unit", metavar="mm|m|5000|256|disparity", help="Of your own depth files; most tell it."
    ),
    picture: Path = typer.Option(
        PICTURE, "--picture", metavar="PNG", help="Of your own frames: picture of the worst."
    ),
    scale: list[int] = typer.Option(
        [], "--scale", metavar="N", help="Scale to run; repeat for several. All if not given."
    ),
    scene: list[str] = typer.Option(
        [],
        "--scene",
        metavar="NAME",
        help="Scene to run, or all of a set or variant; repeat for several. All if not given.",
    ),
    data: Path | None = typer.Option(None, "--data", metavar="DIR", help=DATA_HELP),
    device: str = typer.Option("auto", "--device", metavar="auto|cpu|cuda", help="Where to compute."),
    jobs: int = typer.Option(
        0,
        "--jobs",
        metavar="N",
        help="Frames computed at the same time; 0: one per core, or one on a GPU.",
    ),
    ensemble: bool = typer.Option(False, "--ensemble", help=ENSEMBLE_HELP),
    iterations: int | None = typer.Option(None, "--iterations", metavar="N", help=ITERATIONS_HELP),
    option: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help=SET_HELP),
    no_cache: bool = typer.Option(
        False, "--no-cache", help="Compute everything; neither take results from the cache nor keep them."
    ),
    json_file: Path | None = typer.Option(
        None, "--json", metavar="FILE", help="Write every number to this file."
    ),
) -> None:
    """Score methods on a benchmark, or on your own frames; prints a table of errors."""
    chosen, folder = _protocol(protocol, images, reduce, unit), data_folder(data)
    own = chosen if isinstance(chosen, OwnFrames) else None
    if own is None and not method:
        raise typer.BadParameter("Missing option '--method': name the methods to run")
    options = method_options(option, iterations=iterations, ensemble=ensemble or None)
    runs = [create(name, options) for name in dict.fromkeys(method or METHODS)]
    scales = sorted(set(scale)) or list(chosen.scales)
    for each in scales:
        chosen.check(each)
    if jobs < 0:
        raise InputError(f"--jobs {jobs}", "expected 0 or a number of processes")
    for name, file in (("--json", json_file), ("--picture", picture if own else None)):
        if file is not None:
            check_place(name, file)
    if own and picture == PICTURE:  # the user has not named it
        check_unlinked(picture)
    parts = _parts(chosen, folder, scales, scene)
    place = pick_device(device)
    rows = _rows(chosen.name, parts, runs, place, jobs, None if no_cache else ResultCache())
    if json_file is not None:
        write_bytes(json_file, json.dumps(as_json(chosen, rows), indent=1, allow_nan=False).encode())
        note(f"wrote {json_file}")
    _show(chosen, parts, rows)
    if own is not None:
        print_verdict(own, rows, runs, place, picture)


def _rows(
    title: str,
    parts: "Sequence[_ChosenPart]",
    methods: Sequence[Method],
    device: torch.device,
    jobs: int,
    cache: ResultCache | None,
) -> list[Row]:
    """Run all methods on all parts, with a progress bar."""
    rows: list[Row] = []
    with progress_bar(title, len(methods) * sum(part.frames for part in parts)) as update:
        workers = jobs or (1 if device.type == "cuda" else os.cpu_count() or 1)
        for part in parts:
            for row in run_protocol(
                part.protocol,
                methods,
                part.root,
                part.scales,
                device,
                scenes=part.scenes,
                jobs=workers,
                cache=cache,
            ):
                rows.append(row)
                update(f"{row.method} {row.scene} x{row.scale} {row.rmse:.3f}", len(rows))
    return rows


def _show(protocol: Protocol, parts: "Sequence[_ChosenPart]", rows: list[Row]) -> None:
    """Print the tables that suit the protocol."""
    if protocol.scoring.tables:
        print_means(parts[0].protocol, rows)
    elif any(part.protocol.variant for part in parts):
        _print_sets(protocol, [part.protocol for part in parts], rows)
    else:
        _print(protocol, rows, parts[0].scenes)


def _protocol(name: str, images: str | None, reduce: int, unit: str | None) -> Protocol:
    """Return the frozen protocol of that name or, with images, that of the user's own frames."""
    if images is not None:
        if reduce < 0 or reduce == 1:
            raise InputError(f"--reduce {reduce}", "expected 2 or more")
        return own_frames(pairs(name, images, note), reduce or 4, unit)
    if reduce or unit is not None:
        raise InputError("--reduce and --unit are for your own frames", "evaluate DEPTHS IMAGES --reduce 4")
    return get_protocol(name)


@dataclass(frozen=True, slots=True)
class _ChosenPart:
    """A part of a protocol, and what is run of it."""

    protocol: Protocol
    root: Path
    scales: list[int]
    scenes: tuple[str, ...]

    @property
    def frames(self) -> int:
        return len(self.scales) * len(self.scenes)


def _parts(protocol: Protocol, data: Path | None, scales: list[int], names: list[str]) -> list[_ChosenPart]:
    """Return what has to be run; a changed input is refused at once."""
    if not names:
        for line in protocol.left_out(data):
            note(line)
    parts = protocol.parts(data)
    found = [
        _ChosenPart(part, _root(part, data, scenes), own, scenes)
        for part, scenes in zip(parts, chosen_scenes(parts, names), strict=True)
        if scenes and (own := [scale for scale in scales if scale in part.scales])
    ]
    if not found:
        raise InputError(protocol.name, f"nothing of {', '.join(names)} has the scales {scales}")
    return found


def _root(protocol: Protocol, data: Path | None, scenes: Sequence[str]) -> Path:
    """The folder of the inputs, made first where that is needed; a changed one is refused at once."""
    with ExitStack() as stack:
        root = protocol.root(data, _Watch(stack))
    for scene in scenes:
        for problem in protocol.problems(root, scene):
            raise InputError(problem)
    return root


class _Watch:
    """A bar for inputs that are made; it appears with the first news of them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._update: Callable[[str | None, float], None] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._update is None:
            note(f"{what}: {total - done} of {total} scenes to do, once")
            self._update = self._stack.enter_context(progress_bar(what, total))
        self._update(None, done)


def _print(protocol: Protocol, rows: list[Row], scenes: Sequence[str]) -> None:
    cells = {(row.method, row.scene, row.scale): row for row in rows}
    lines = []
    for name, scale in dict.fromkeys((row.method, row.scale) for row in rows):
        found = [cells[name, scene, scale] for scene in scenes]
        seconds = fmean(row.seconds for row in found)
        lines.append([name, f"x{scale}", *(f"{row.rmse:.3f}" for row in found), f"{seconds:.2f}"])
    title = f"{protocol.name} v{protocol.version}: RMSE [{protocol.unit}] where the truth is known"
    show_table(title, ["method", "scale", *scenes, "s/frame"], lines, left=2)


def _print_sets(protocol: Protocol, parts: Sequence[Protocol], rows: list[Row]) -> None:
    """One line for each set and method: the mean RMSE over the frames, scale by scale."""
    scales = list(dict.fromkeys(row.scale for row in rows))
    lines = []
    for part in parts:
        for method in dict.fromkeys(row.method for row in rows):
            own = [row for row in rows if (row.method, row.variant) == (method, part.variant)]
            means = [fmean(row.rmse for row in own if row.scale == scale) for scale in scales]
            frames, seconds = len({row.scene for row in own}), fmean(row.seconds for row in own)
            head = [part.variant, str(frames), part.unit, method]
            lines.append([*head, *(f"{mean:.3f}" for mean in means), f"{seconds:.2f}"])
    title = f"{protocol.name} v{protocol.version}: mean over the frames of the RMSE where the truth is known"
    columns = ["set", "frames", "unit", "method", *(f"x{scale}" for scale in scales), "s/frame"]
    show_table(title, columns, lines, left=4)
