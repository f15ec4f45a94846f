"""`primaldepth evaluate`: methods over a frozen protocol."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import typer

from primaldepth.api import pick_device
from primaldepth.cli.options import ENSEMBLE_HELP, ITERATIONS_HELP, SET_HELP, method_options
from primaldepth.cli.output import note, progress_bar, show_table
from primaldepth.cli.places import check_place
from primaldepth.cli.score_tables import print_means
from primaldepth.core.errors import InputError
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.protocol import chosen_scenes
from primaldepth.evaluation.protocols import Protocol, get_protocol, protocol_names
from primaldepth.evaluation.run import Row, as_json
from primaldepth.evaluation.run import evaluate as run_protocol
from primaldepth.io import write_bytes
from primaldepth.methods import create

DATA_HELP = "Folder with the protocol's data; PRIMALDEPTH_DATA if not given."


def data_folder(data: Path | None) -> Path | None:
    """--data, or PRIMALDEPTH_DATA, or None; protocols on rendered scenes need neither."""
    named = data or (Path(os.environ["PRIMALDEPTH_DATA"]) if os.environ.get("PRIMALDEPTH_DATA") else None)
    if named is not None and not named.is_dir():
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
    """Score methods on a benchmark; prints RMSE per scene, or per set of scenes, and scale."""
    chosen, folder = get_protocol(protocol), data_folder(data)
    options = method_options(option, iterations=iterations, ensemble=ensemble or None)
    runs = [create(name, options) for name in dict.fromkeys(method)]
    scales = sorted(set(scale)) or list(chosen.scales)
    for each in scales:
        chosen.check(each)
    if jobs < 0:
        raise InputError(f"--jobs {jobs}: expected 0 or a number of processes")
    if json_file is not None:
        check_place("--json", json_file)
    parts = _parts(chosen, folder, scales, scene)
    place = pick_device(device)
    rows: list[Row] = []
    with progress_bar(chosen.name, len(runs) * sum(part.frames for part in parts)) as update:
        workers = jobs or (1 if place.type == "cuda" else os.cpu_count() or 1)
        cache = None if no_cache else ResultCache()
        for part in parts:
            for row in run_protocol(
                part.protocol,
                runs,
                part.root,
                part.scales,
                place,
                scenes=part.scenes,
                jobs=workers,
                cache=cache,
            ):
                rows.append(row)
                update(f"{row.method} {row.scene} x{row.scale} {row.rmse:.3f}", len(rows))
    if json_file is not None:
        write_bytes(json_file, json.dumps(as_json(chosen, rows), indent=1, allow_nan=False).encode())
        note(f"wrote {json_file}")
    if chosen.scoring.tables:
        print_means(parts[0].protocol, rows)
    elif any(part.protocol.variant for part in parts):
        _print_sets(chosen, [part.protocol for part in parts], rows)
    else:
        _print(chosen, rows, parts[0].scenes)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a protocol, and what is run of it."""

    protocol: Protocol
    root: Path
    scales: list[int]
    scenes: tuple[str, ...]

    @property
    def frames(self) -> int:
        return len(self.scales) * len(self.scenes)


def _parts(protocol: Protocol, data: Path | None, scales: list[int], names: list[str]) -> list[_Part]:
    """Return what has to be run; a changed input is refused at once."""
    if not names:
        for line in protocol.left_out(data):
            note(line)
    parts = protocol.parts(data)
    found = [
        _Part(part, _root(part, data, scenes), own, scenes)
        for part, scenes in zip(parts, chosen_scenes(parts, names), strict=True)
        if scenes and (own := [scale for scale in scales if scale in part.scales])
    ]
    if not found:
        raise InputError(f"{protocol.name}: nothing of {', '.join(names)} has the scales {scales}")
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
