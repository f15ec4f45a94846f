"""`primaldepth train`: a recipe and rendered scenes become weights."""

import os
from pathlib import Path

import typer

from primaldepth.cli.options import data_folder
from primaldepth.cli.output import note, progress_bar, show
from primaldepth.cli.render import render_scenes
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError
from primaldepth.training.recipe import Recipe, read_recipe
from primaldepth.training.run import TrainingEvent, check_recipe, train
from primaldepth.training.scene_sets import missing_sets
from primaldepth.training.validation_plan import planned


def train_command(
    config: Path = typer.Argument(metavar="CONFIG", help="Recipe, a TOML file; see configs/."),
    changes: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Change a key of the recipe, such as stages.0.steps=100."
    ),
    data: Path | None = typer.Option(
        None,
        "--data",
        metavar="DIR",
        help="Scenes of `primaldepth render`, or where to render those of CONFIG.",
    ),
    out: Path = typer.Option(..., "--out", metavar="RUN", help="Folder of the run."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in RUN, if there is one."),
    validation: Path | None = typer.Option(
        None, "--validation", metavar="DIR", help="Folder of the protocols' data; else PRIMALDEPTH_DATA."
    ),
    device: str = typer.Option("auto", "--device", metavar="DEVICE", help="auto, cpu or cuda."),
    workers: int = typer.Option(
        1, "--workers", metavar="N", help="Scenes of the recipe rendered at the same time."
    ),
) -> None:
    """Train a network on given scenes or on those that CONFIG names; torchrun starts it on several GPUs."""
    recipe = read_recipe(config, changes)
    place = data_folder(validation)
    scenes = _scenes(recipe, data, out, place, workers)
    total = sum(stage.steps for stage in recipe.stages)
    with progress_bar("starting", total) as update:
        speed = "starting"

        def observer(event: TrainingEvent) -> None:
            nonlocal speed
            if event.kind == "log":
                speed = f"{event.values['steps_per_second']:.1f} steps/s"
            if event.kind != "step":
                _tell(event, recipe.stages[event.stage].part if event.stage < len(recipe.stages) else "done")
            update(speed, sum(stage.steps for stage in recipe.stages[: event.stage]) + event.step)

        kind = pick_device(device).type
        saved = train(recipe, scenes, out, data=place, device=kind, resume=resume, observer=observer)
    for path in saved.values():
        show(path)


def _scenes(recipe: Recipe, data: Path | None, out: Path, validation: Path | None, workers: int) -> Path:
    """Return the folder of the run's scenes, after rendering those of the recipe that are missing."""
    if data is None and not recipe.scenes:
        raise InputError("train", f"the recipe '{recipe.name}' names no scenes", "give some by --data")
    folder = data or out / "scenes"
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return folder  # several processes do not render; what is missing is an error
    missing = missing_sets(recipe, folder)
    if missing:  # what training would refuse is refused before hours of rendering
        check_recipe(recipe, processes=1)
        planned(recipe, validation)
    for place, wanted in missing:
        progress = render_scenes(place, wanted.render.resolved(), wanted.count, workers)
        if progress.failures:
            first = next(iter(progress.failures.values()))
            raise InputError(place, f"{len(progress.failures)} scenes were not rendered: {first}")
    return folder


def _tell(event: TrainingEvent, stage: str) -> None:
    numbers = ", ".join(
        f"{key} {value:.4g}" for key, value in event.values.items() if isinstance(value, float)
    )
    head = f"{stage} {event.step}/{event.steps}"
    if event.kind in ("note", "skipped"):
        note(f"{head}: {event.values['text']}")
    elif event.kind == "saved":
        note(f"{head}: wrote {event.values['path']} ({numbers})")
    else:
        note(f"{head}: {numbers}")
