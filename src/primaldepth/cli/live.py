"""`primaldepth live`: depth and point cloud of a camera while it runs."""

import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import typer

from primaldepth.cli.options import SET_HELP, STATIC_SCENE_HELP, declared, early_cameras, method_options
from primaldepth.cli.output import note, show_json
from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras
from primaldepth.live.page import Page, Screen
from primaldepth.live.sources import FRAMES_PER_SECOND, LiveSource, open_source
from primaldepth.methods.temporal import temporal_settings
from primaldepth.pipeline.output_checks import check_places
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Item
from primaldepth.pipeline.warnings import DepthWarning
from primaldepth.session import RECENT, Session

METHOD = "pdn-any-small"  # the best that runs at several frames per second without a GPU


def live(
    source: str = typer.Argument(
        metavar="SOURCE",
        help="simulated, realsense, oak, orbbec, realsense:FILE, orbbec:FILE, a recording, or a folder or "
        "glob of depth files.",
    ),
    images: str | None = typer.Argument(None, metavar="[IMAGES]", help="Images that go with depth files."),
    method: str = declared("method", METHOD),
    temporal: bool = typer.Option(False, "--temporal", help="Average over time, along the camera's motion."),
    static_scene: bool = typer.Option(False, "--static-scene", help=STATIC_SCENE_HELP),
    unit: str | None = declared("unit"),
    noise: str = declared("noise", "auto"),
    cameras: Path | None = typer.Option(
        None, "--cameras", metavar="FILE", help="As in upsample, in place of those of the source."
    ),
    device: str = declared("device", "auto"),
    option: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help=SET_HELP),
    frames: int | None = typer.Option(None, "--frames", metavar="N", help="Stop after so many frames."),
    rate: float = typer.Option(
        FRAMES_PER_SECOND, "--rate", metavar="R", help="Frames per second of files without time stamps."
    ),
    every: bool = typer.Option(False, "--every", help="Skip no frame of a recording, however slow."),
    out: Path | None = typer.Option(None, "--out", "-o", metavar="DIR", help="Write each depth map, as PNG."),
    cloud: Path | None = typer.Option(None, "--cloud", metavar="DIR", help="Write each point cloud, as PLY."),
    page: bool = typer.Option(True, "--page/--no-page", help="Show a page on 127.0.0.1."),
    port: int = typer.Option(8765, "--port", metavar="P", help="Of the page; 0 takes one that is free."),
    as_json: bool = typer.Option(False, "--json", help="Print frames and rate at the end."),
) -> None:
    """Show depth and point cloud of a camera or a recording while it runs."""
    if frames is not None and frames < 1:
        raise InputError("--frames", f"{frames}", "give 1 or more")
    temporal_settings(temporal, static_scene, ("--temporal", "--static-scene"))
    known = early_cameras(cameras)
    folders = {name: path for name, path in {"out": out, "cloud": cloud}.items() if path is not None}
    with ExitStack() as stack:
        session = stack.enter_context(
            Session(
                method=method,
                temporal=temporal,
                static_scene=static_scene,
                unit=unit,
                noise=noise,
                device=device,  # type: ignore[arg-type] # checked there
                options=method_options(option),
            )
        )
        taken = stack.enter_context(open_source(source, images, rate=rate, every=every, note=note))
        screen = Screen()
        if page:
            shown = stack.enter_context(Page(screen, taken.title, port))
            note(f"{shown.address}: depth and point cloud; Ctrl-C ends")
            tunnel = f"{shown.port}:127.0.0.1:{shown.port}"
            note(f"from another machine: ssh -L {tunnel} HOST, then the same address")
        _run(session, taken, screen, folders, known, frames)
    if as_json:
        show_json({"source": source, "frames": session.frames, "frames_per_second": round(session.rate, 2)})


def _run(
    session: Session,
    source: LiveSource,
    screen: Screen,
    folders: Mapping[str, Path],
    cameras: Cameras | Path | None,
    count: int | None,
) -> None:
    """Push every frame; skip one that cannot be used, with a note."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DepthWarning)
        warnings.showwarning = _tell  # restored at the end
        try:
            for name, item in source:
                _push(
                    session,
                    name,
                    item if cameras is None else replace(item, cameras=cameras),
                    screen,
                    folders,
                )
                if session.frames % RECENT == 0:
                    note(f"{session.frames} frames, {session.rate:.1f} frames/s")
                if session.frames == count:
                    break
        except KeyboardInterrupt:
            pass  # this is how a live view ends
    note(f"{source.title}: {session.frames} frames, {session.rate:.1f} frames/s")


def _push(session: Session, name: str, item: Item, screen: Screen, folders: Mapping[str, Path]) -> None:
    outputs = {each: folder / f"{name}{OUTPUTS[each].suffixes[0]}" for each, folder in folders.items()}
    check_places(outputs)
    try:
        outcome = session.push_item(item).outcome
    except InputError as error:
        note(f"{name}: skipped: {error}")
        return
    screen.show(outcome)
    for each, path in outputs.items():
        OUTPUTS[each].write(path, outcome.in_metres())


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    note(f"warning: {message}")
