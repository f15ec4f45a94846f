"""`primaldepth evaluate`: methods over a frozen protocol."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import typer

from primaldepth.cli.options import (
    DATA_HELP,
    ENSEMBLE_HELP,
    ITERATIONS_HELP,
    JOBS_HELP,
    NO_CACHE_HELP,
    SET_HELP,
    data_folder,
    method_options,
    processes,
)
from primaldepth.cli.output import StagedBar, note, progress_bar
from primaldepth.cli.score_tables import print_scores, print_verdict
from primaldepth.compute.device import pick_device
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
from primaldepth.report.frame_picture import METHODS

PICTURE = Path("worst-frame.png")


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
        help=f"Method to run; repeat for several. Own frames, if not given: {', '.join(METHODS)}.",
    ),
    reduce: int | None = typer.Option(
        None, "--reduce", metavar="N", help="Own frames: keep one sample of NxN; 4 if not given."
    ),
    unit: str | None = typer.Option(
        None, "--unit", metavar="mm|m|5000|256|disparity", help="Own frames: unit, where files do not say."
    ),
    picture: Path = typer.Option(
        PICTURE, "--picture", metavar="PNG", help="Own frames: picture of the one with the largest error."
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
    jobs: int = typer.Option(0, "--jobs", metavar="N", help=JOBS_HELP),
    ensemble: bool = typer.Option(False, "--ensemble", help=ENSEMBLE_HELP),
    iterations: int | None = typer.Option(None, "--iterations", metavar="N", help=ITERATIONS_HELP),
    option: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help=SET_HELP),
    no_cache: bool = typer.Option(False, "--no-cache", help=NO_CACHE_HELP),
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
    place = pick_device(device)
    workers = processes(jobs, place)
    for name, file in (("--json", json_file), ("--picture", picture if own else None)):
        if file is not None:
            check_place(name, file)
    if own and picture == PICTURE:  # the user has not named it
        check_unlinked(picture)
    parts = _parts(chosen, folder, scales, scene)
    rows = _rows(chosen.name, parts, runs, place, workers, None if no_cache else ResultCache())
    if json_file is not None:
        write_bytes(json_file, json.dumps(as_json(chosen, rows), indent=1, allow_nan=False).encode())
        note(f"wrote {json_file}")
    print_scores(chosen, [part.protocol for part in parts], parts[0].scenes, rows)
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
        for part in parts:
            for row in run_protocol(
                part.protocol,
                methods,
                part.root,
                part.scales,
                device,
                scenes=part.scenes,
                jobs=jobs,
                cache=cache,
            ):
                rows.append(row)
                update(f"{row.method} {row.scene} x{row.scale} {row.rmse:.3f}", len(rows))
    return rows


def _protocol(name: str, images: str | None, reduce: int | None, unit: str | None) -> Protocol:
    """Return the frozen protocol of that name or, with images, that of the user's own frames."""
    if images is not None:
        factor = 4 if reduce is None else reduce
        if factor < 2:
            raise InputError(f"--reduce {factor}", "expected 2 or more")
        return own_frames(pairs(name, images, note), factor, unit)
    if Path(name).exists():
        raise InputError("Missing argument 'IMAGES'", f"{name} holds depth maps", "give their images")
    if reduce is not None or unit is not None:
        raise InputError("--reduce and --unit are for your own frames", "evaluate DEPTHS IMAGES --reduce 4")
    return get_protocol(name)


@dataclass(frozen=True, slots=True)
class _ChosenPart:
    """A part of a protocol, with the scales and scenes to run and the folder of its inputs."""

    protocol: Protocol
    root: Path
    scales: list[int]
    scenes: tuple[str, ...]

    @property
    def frames(self) -> int:
        return len(self.scales) * len(self.scenes)


def _parts(protocol: Protocol, data: Path | None, scales: list[int], names: list[str]) -> list[_ChosenPart]:
    """Return the parts to run; raise if an input was changed."""
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
    """Return the folder of the inputs, after making it if needed; raise if an input was changed."""
    with StagedBar() as bar:
        root = protocol.root(
            data,
            lambda what, done, total: bar.show(
                what, None, done, total, f"{what}: {total - done} of {total} scenes to do, once"
            ),
        )
    for scene in scenes:
        for problem in protocol.problems(root, scene):
            raise InputError(problem)
    return root
