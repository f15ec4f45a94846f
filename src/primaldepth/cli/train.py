"""`primaldepth train`: a recipe and rendered scenes become weights."""

import os
from pathlib import Path

import typer

from primaldepth.api import pick_device
from primaldepth.cli.output import note, progress_bar, show
from primaldepth.training.loop import Event, train
from primaldepth.training.recipe import read_recipe


def train_command(
    config: Path = typer.Argument(metavar="CONFIG", help="Recipe, a TOML file; see configs/."),
    changes: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Change a key of the recipe, such as stages.0.steps=100."
    ),
    data: Path = typer.Option(..., "--data", metavar="DIR", help="Scenes made by `primaldepth render`."),
    out: Path = typer.Option(..., "--out", metavar="RUN", help="Folder of the run."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in RUN, if there is one."),
    validation: Path | None = typer.Option(
        None, "--validation", metavar="DIR", help="Folder of the protocols' data; else PRIMALDEPTH_DATA."
    ),
    device: str = typer.Option("auto", "--device", metavar="DEVICE", help="auto, cpu or cuda."),
) -> None:
    """Train a network. torchrun starts the same command on several GPUs."""
    recipe = read_recipe(config, changes)
    place = validation or (Path(os.environ["PRIMALDEPTH_DATA"]) if "PRIMALDEPTH_DATA" in os.environ else None)
    total = sum(stage.steps for stage in recipe.stages)
    with progress_bar("starting", total) as update:
        speed = "starting"

        def observer(event: Event) -> None:
            nonlocal speed
            if event.kind == "log":
                speed = f"{event.values['steps_per_second']:.1f} steps/s"
            if event.kind != "step":
                _tell(event, recipe.stages[event.stage].part if event.stage < len(recipe.stages) else "done")
            update(speed, sum(stage.steps for stage in recipe.stages[: event.stage]) + event.step)

        kind = pick_device(device).type
        saved = train(recipe, data, out, data=place, device=kind, resume=resume, observer=observer)
    for path in saved.values():
        show(path)


def _tell(event: Event, stage: str) -> None:
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
