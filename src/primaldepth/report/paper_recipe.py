"""The paper's own training beside ours, as `benchmarks/quality/paper_recipe.py` measured it."""

import json
from collections.abc import Sequence
from importlib import resources
from typing import Annotated, NamedTuple

from pydantic import Field

from primaldepth.core.settings import Count, Positive, Settings
from primaldepth.evaluation.protocol import Protocol
from primaldepth.networks.card import ModelCard
from primaldepth.networks.zoo import SHIPPED, card_of
from primaldepth.report import tables
from primaldepth.report.blocks import Paragraph, Section, Table, TableColumn
from primaldepth.report.cached_runs import Rows
from primaldepth.report.columns import Value, assemble, mean, ours
from primaldepth.report.published import published

CONFIG = "configs/paper-x8.toml"


class TrainedNetwork(Settings):
    """A network that came out of a stage of the run.

    Args:
        like: name of the same network in the paper's table.
        steps: of the optimiser, from the start of the run to the end of the stage.
        seconds: they took.
        rmse: scene of noisy-middlebury -> RMSE.
    """

    like: str
    steps: Count
    seconds: Positive
    rmse: dict[str, Positive]


class PaperRecipe(Settings):
    """Networks that the paper's recipe gave, and what their training cost.

    Args:
        scale: of the recipe.
        scenes: that were trained on.
        machine: it was trained on.
        networks: in the order of the stages.
    """

    scale: Count
    scenes: Count
    machine: str
    networks: Annotated[tuple[TrainedNetwork, ...], Field(min_length=1)]


class _RecipeLine(NamedTuple):
    """A row of the table: RMSE of every scene, and what the training cost."""

    name: str
    rmse: list[Value]
    steps: int | None = None
    seconds: float | None = None


def paper_recipe() -> PaperRecipe | None:
    """Return the figures of the run, or None if there are none yet."""
    file = resources.files("primaldepth.report").joinpath("paper_recipe.json")
    return PaperRecipe.parse(json.loads(file.read_text("utf-8")), file.name) if file.is_file() else None


def section(protocol: Protocol, rows: Rows, run: PaperRecipe | None) -> Section:
    """Return what the paper printed, what its recipe gave here, and what our recipe gave.

    Args:
        protocol: of the benchmark.
        rows: of our methods.
        run: figures of the run, or None if there are none yet.
    """
    if run is None:
        text = f"`{CONFIG}`, the paper's own training, was not run to its end yet; its rows are left out."
        return Section("The paper's training", "recipe", (Paragraph(text, notice=True),))
    about = (
        f"`{CONFIG}` run to its end on {run.machine}: SGD with momentum on {run.scenes} scenes of boxes, "
        "spheres and planes, 25 epochs of the convolutions, then 10 of everything. RMSE at "
        f"x{run.scale}; steps and seconds are those of all stages up to the network."
    )
    lines = [_lines(network, protocol.scenes, rows, run.scale) for network in run.networks]
    table = _table([line for own in lines for line in own], protocol.scenes)
    result = "Geometric means: " + " ".join(map(_sentence, lines))
    return Section("The paper's training", "recipe", (Paragraph(about), table, Paragraph(result)))


def steps_of(card: ModelCard) -> int:
    """Return the steps of the optimiser from the start of a run to the end of the card's stage."""
    stages = card.config["stages"]
    last = [stage["save_as"] for stage in stages].index(card.name)
    return sum(int(stage["steps"]) for stage in stages[: last + 1])


def _lines(network: TrainedNetwork, scenes: Sequence[str], rows: Rows, scale: int) -> tuple[_RecipeLine, ...]:
    """Return three rows: as printed, trained by the paper's recipe, and as it is shipped."""
    name, path = network.like, SHIPPED[network.like].present.get(scale)
    printed = published().benchmark.get((name, scale), {})
    found = [
        _RecipeLine(f"{name}, as printed", [printed.get(scene) for scene in scenes]),
        _RecipeLine(
            f"{name}, the paper's recipe",
            [network.rmse.get(scene) for scene in scenes],
            network.steps,
            network.seconds,
        ),
    ]
    if path is not None:
        card, own = card_of(path), [tables.rmse(rows, name, scene, scale) for scene in scenes]
        found.append(_RecipeLine(f"{name}, our recipe", own, steps_of(card), card.seconds))
    return tuple(found)


def _table(lines: Sequence[_RecipeLine], scenes: Sequence[str]) -> Table:
    columns = [
        ours(TableColumn(scene.title()), [line.rmse[index] for line in lines], 2)
        for index, scene in enumerate(scenes)
    ]
    columns.append(ours(TableColumn("geometric mean"), [mean(line.rmse) for line in lines], 2))
    columns.append(ours(TableColumn("steps"), [line.steps for line in lines], 0, marked=False))
    columns.append(ours(TableColumn("training [s]"), [line.seconds for line in lines], 0, marked=False))
    return assemble([line.name for line in lines], columns, first="network")


def _sentence(lines: Sequence[_RecipeLine]) -> str:
    """Say how the geometric means and the costs of one network compare."""
    parts = []
    for line in lines:
        value = mean(line.rmse)
        cost = f" after {line.steps:,} steps, {line.seconds:.0f} s" if line.seconds is not None else ""
        if value is not None:
            parts.append(f"{line.name}: {value:.2f}{cost}")
    return f"{'; '.join(parts)}."
