"""`primaldepth render`: scenes with exact depth, in any number, into a folder of shards."""

from dataclasses import asdict
from pathlib import Path
from typing import cast, get_args

import typer

from primaldepth.cli.output import StagedBar, note, show, show_json
from primaldepth.core.errors import InputError
from primaldepth.data.manifest import MOST_SCENES
from primaldepth.data.shards import Shards
from primaldepth.io.atomic import check_extension, check_place
from primaldepth.io.picture_files import write_preview
from primaldepth.pictures.contact_sheet import contact_sheet
from primaldepth.scenes.job import Engine, RenderProgress, render_job
from primaldepth.scenes.scene_source import RenderSettings

SHOWN_FAILURES, SHOWN_SCENES = 10, 24


def render(
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder for the shards; resumed if begun."),
    count: int = typer.Option(..., "--count", metavar="N", help="Scenes in the folder in the end."),
    size: int = typer.Option(512, "--size", metavar="PX", help="Side of the images; tof has its own sizes."),
    samples: int = typer.Option(32, "--samples", metavar="N", help="Rays per pixel of the image."),
    seed: int = typer.Option(0, "--seed", metavar="S", help="Another seed, other scenes."),
    preset: str = typer.Option("rich", "--preset", metavar="NAME", help="paper, rich or tof."),
    textures: Path | None = typer.Option(
        None, "--textures", metavar="DIR", help="Folder of images; built-in patterns without."
    ),
    meshes: Path | None = typer.Option(
        None, "--meshes", metavar="DIR", help="Folder of OBJ files, placed among the generated shapes."
    ),
    variant: str = typer.Option("auto", "--variant", metavar="NAME", help="auto, cuda, llvm or scalar."),
    workers: int = typer.Option(1, "--workers", metavar="N", help="Scenes rendered at the same time."),
    engine: str = typer.Option("local", "--engine", metavar="NAME", help="local, or ray for a cluster."),
    preview: Path | None = typer.Option(
        None, "--preview", metavar="PNG", help="Contact sheet of the first scenes."
    ),
    verify: bool = typer.Option(False, "--verify", help="Check the shards that are there; repair them."),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report."),
) -> None:
    """Render training scenes. The same command goes on where it was stopped."""
    if engine not in get_args(Engine):
        raise InputError(f"--engine {engine}", "choose local or ray")
    if count < 1 or workers < 1:
        raise InputError("render", f"--count {count}, --workers {workers}", "both must be at least 1")
    if count > MOST_SCENES:
        raise InputError(
            "render", f"--count {count}", f"a folder has {MOST_SCENES} scenes at most, use several"
        )
    if preview is not None:
        check_extension("--preview", preview, (".png",))
        check_place("--preview", preview)
    asked = {"preset": preset, "size": size, "samples": samples, "seed": seed}
    folders = {"textures": textures, "meshes": meshes}
    settings = RenderSettings.parse({**asked, "variant": variant, **folders}, "render").resolved()
    progress = render_scenes(out, settings, count, workers, cast("Engine", engine), verify=verify)
    if preview is not None:
        _write_preview(preview, out)
    _report(progress, as_json)


def render_scenes(
    out: Path,
    settings: RenderSettings,
    count: int,
    workers: int,
    engine: Engine = "local",
    *,
    verify: bool = False,
) -> RenderProgress:
    """Render into a folder, with lines and a progress bar on standard error; see `render_job`.

    Args:
        out: folder of the shards.
        settings: of the scenes.
        count: scenes in the folder in the end.
        workers: scenes rendered at the same time.
        engine: where they are rendered.
        verify: whether to check the shards that are there.
    """
    with StagedBar() as bar:
        try:
            return render_job(
                out,
                settings,
                count,
                workers=workers,
                engine=engine,
                verify=verify,
                on_progress=lambda progress: _show(bar, progress, settings, out),
            )
        except KeyboardInterrupt:
            note(f"{out}: stopped; the same command goes on from here")
            raise


def _show(bar: StagedBar, progress: RenderProgress, settings: RenderSettings, out: Path) -> None:
    """Show the lines and the bar of a job."""
    there = f", {progress.done} of {progress.count} are there" if progress.done else ""
    scenes = f"{settings.preset} scenes with {settings.variant}"
    text = f"{progress.rate:.2f} images/s"
    if progress.failures:
        text += f", {len(progress.failures)} failed"
    bar.show(
        "starting",
        text if progress.rendered else None,
        progress.rendered + len(progress.failures),
        progress.to_do,
        *(f"{line}; its scenes are rendered again" for line in progress.damaged),
        f"{out}: {progress.to_do} {scenes} to render{there}",
    )


def _write_preview(preview: Path, out: Path) -> None:
    shards = Shards(out)
    shown = [shards[scene] for scene in range(min(SHOWN_SCENES, len(shards)))]
    if not shown:
        note(f"{preview}: not written, no shard is complete")
        return
    shards.check("depth", "valid", "image")
    write_preview(preview, contact_sheet(shown))
    note(f"wrote {preview}")


def _by_part(progress: RenderProgress) -> dict[str, dict[str, float]]:
    """Return what the mean scene took, part by part: seconds on the clock, and of the processor."""
    return {
        name: {kind: seconds / progress.rendered for kind, seconds in asdict(each).items()}
        for name, each in progress.parts.items()
        if progress.rendered
    }


def _report(progress: RenderProgress, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "rendered": progress.rendered,
                "seconds": progress.seconds,
                "images_per_second": progress.rate,
                "kernel_compiles": progress.compiles,
                "start_seconds": progress.start_seconds,
                "seconds_by_part": _by_part(progress),
            }
        )
    else:
        show(
            f"{progress.rendered} scenes in {progress.seconds:.1f} s, {progress.rate:.2f} images/s, "
            f"{progress.compiles} kernel compilations; {progress.done} of {progress.count} are there"
        )
    if progress.failures:
        shown = list(progress.failures.items())[:SHOWN_FAILURES]
        for scene, text in shown:
            note(f"scene {scene}: {text}")
        note(f"{len(progress.failures)} scenes failed twice; the same command tries them again")
        raise typer.Exit(1)
