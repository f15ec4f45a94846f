"""The loop: stages of steps, on one device or many processes, that a kill only interrupts.

Every batch is fixed by the run's seed and its place in it, so a run that goes on from a checkpoint sees what
it would have seen, and several processes share out the batches that one would have had.
"""

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.core.seeds import derive_seed
from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.io.atomic import write_bytes
from primaldepth.networks import DepthNet, from_pretrained, save_model
from primaldepth.networks.card import ModelCard
from primaldepth.training.checkpoint import Checkpoint, Position, check_recipe, read_checkpoint
from primaldepth.training.journal import Journal
from primaldepth.training.provenance import commit, describe
from primaldepth.training.recipe import Recipe, StageRecipe
from primaldepth.training.validation import Validator
from primaldepth.training.work import Work

CHECKPOINT, CONFIG = "checkpoint.safetensors", "config.json"
LOG_EVERY = 50


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell the user: `kind` is "log", "validation", "saved", "skipped" or "note"."""

    kind: str
    stage: int
    step: int
    steps: int
    values: dict[str, Any]


Observer = Callable[[Event], None]


def train(
    recipe: Recipe,
    shards: Path,
    out: Path,
    *,
    data: Path | None = None,
    device: str = "cpu",
    resume: bool = False,
    observer: Observer = lambda _: None,
) -> dict[str, Path]:
    """Run a recipe; the weight files written, by name.

    Args:
        shards: folder of rendered scenes.
        out: folder of the run: checkpoint, log, weights. One that holds a run is refused unless `resume`.
        data: folder of the validation protocols.
        device: "cpu" or "cuda"; under torchrun each process takes its own.
        observer: told what happens, in the main process only.
    """
    run = Run(recipe, shards, out, data, _fabric(recipe, device), observer, resume)
    for index in range(run.position.stage, len(recipe.stages)):
        run.stage(index)
    run.journal.close()
    return run.saved


def _fabric(recipe: Recipe, device: str) -> Any:
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise MissingDependencyError(
            f"training needs lightning-fabric ({error}); install it with: pip install 'primaldepth[train]'"
        ) from error
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    fabric = Fabric(
        accelerator=device,
        devices=processes,
        strategy="ddp" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else "auto",
        precision="bf16-mixed" if recipe.precision == "bf16" and device == "cuda" else "32-true",
    )
    fabric.launch()
    return fabric


class Run:
    """A run in one process: what stays the same over its stages, and where it stands."""

    def __init__(
        self,
        recipe: Recipe,
        shards: Path,
        out: Path,
        data: Path | None,
        fabric: Any,
        observer: Observer,
        resume: bool,
    ) -> None:
        self.recipe, self.out, self.fabric, self.observer = recipe, out, fabric, observer
        self.main = fabric.global_rank == 0
        self.text = recipe.model_dump_json()
        self.saved: dict[str, Path] = {}
        stored = self._prepare(resume)
        self.source = Shards(shards)
        self.scenes, held_out = _split(self.source, recipe, fabric.device)
        self.net = _network(recipe).to(fabric.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.position = Position() if stored is None else stored.position
        self.stored = stored
        if self.main:
            self.validator = Validator(recipe, held_out, data, fabric.device)
            self.journal = Journal(out, self.total_step)
            for text in self.validator.missing:
                self.tell("note", text=f"not validated: {text}")

    @property
    def total_step(self) -> int:
        """Steps done in all stages."""
        return sum(stage.steps for stage in self.recipe.stages[: self.position.stage]) + self.position.step

    def _prepare(self, resume: bool) -> Checkpoint | None:
        path = self.out / CHECKPOINT
        if path.exists() and not resume:
            raise InputError(f"{self.out}: holds a run; go on with --resume, or choose another folder")
        if path.exists():
            stored = read_checkpoint(path, self.fabric.device)
            check_recipe(path, stored.recipe, self.text)
            return stored
        if self.main:
            self.out.mkdir(parents=True, exist_ok=True)
            write_bytes(self.out / CONFIG, (self.recipe.model_dump_json(indent=2) + "\n").encode())
        return None

    def stage(self, index: int) -> None:
        """Train one stage to its end, keep its best weights and write them."""
        stage = self.recipe.stages[index]
        _check_stage(stage, self.recipe, self.fabric.world_size)
        work = Work(self, index, stage)
        for step in range(self.position.step, stage.steps):
            work.step(step)
            self.position.step = step + 1
            if not self._after(work, step):
                break
        work.finish()
        if self.main and stage.save_as:
            self._save(stage)
        self.position = Position(stage=index + 1, seconds=self.position.seconds)
        self.stored = None
        self.checkpoint(work, done=True)

    def _after(self, work: Work, step: int) -> bool:
        """Log, validate and checkpoint where it is time to; False ends the stage."""
        recipe, last = self.recipe, step + 1 == work.stage.steps
        if (step + 1) % LOG_EVERY == 0 or last:
            work.log()
        every = recipe.validation.every
        go_on = True
        if (every and (step + 1) % every == 0) or last:
            go_on = work.validate()
        if (step + 1) % recipe.checkpoint_every == 0 and not last and go_on:
            self.checkpoint(work)
        return go_on

    def checkpoint(self, work: Work, *, done: bool = False) -> None:
        """Write RUN/checkpoint.safetensors; `done`: the stage's state is no longer needed."""
        self.fabric.barrier()
        if self.main:
            Checkpoint(
                self.text,
                self.position,
                self.net.state_dict(),
                {} if done or work.average is None else work.average.weights,
                {} if done else work.best,
                {} if done else work.optimiser.state_dict(),
            ).write(self.out / CHECKPOINT)
        self.fabric.barrier()

    def _save(self, stage: StageRecipe) -> None:
        net = self.net
        if stage.part == "fcn" and net.pdn is not None:
            bare = net.settings.model_copy(update={"iterations": 0})
            net = DepthNet(bare)
            net.fcn.load_state_dict(self.net.fcn.state_dict())
        path = self.out / f"{stage.save_as}-x{self.recipe.scale}"
        card = ModelCard(
            name=str(stage.save_as),
            scale=self.recipe.scale,
            settings=net.settings,
            created=dt.datetime.now(dt.UTC).replace(microsecond=0),
            config=self.recipe.model_dump(mode="json"),
            data=describe(self.source),
            seed=self.recipe.seed,
            commit=commit(),
            seconds=self.position.seconds,
            scores=self.position.scores,
        )
        save_model(path, net, card)
        self.saved[str(stage.save_as)] = path.with_suffix(path.suffix + ".safetensors")
        self.tell("saved", path=str(path), **self.position.scores)

    def tell(self, kind: str, **values: Any) -> None:
        """Report to the observer, in the main process."""
        if not self.main:
            return
        stages = self.recipe.stages
        steps = stages[min(self.position.stage, len(stages) - 1)].steps
        self.observer(Event(kind, self.position.stage, self.position.step, steps, values))


def _network(recipe: Recipe) -> DepthNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("weights", recipe.seed))
        net = DepthNet(recipe.net)
    if recipe.start is None:
        return net
    start = from_pretrained(recipe.start)
    net.fcn.load_state_dict(start.fcn.state_dict())
    if net.pdn is not None and start.pdn is not None:
        net.pdn.load_state_dict(start.pdn.state_dict())
    return net


def _split(shards: Shards, recipe: Recipe, device: torch.device) -> tuple[Scenes, Scenes | None]:
    """Scenes to train on, and those held out."""
    held = min(recipe.data.held_out, len(shards) // 5)
    if not len(shards) - held:
        raise InputError(f"{shards.folder}: no finished scenes; render some first")
    training = Scenes.load(shards, device, 0, len(shards) - held)
    return training, Scenes.load(shards, device, len(shards) - held) if held else None


def _check_stage(stage: StageRecipe, recipe: Recipe, processes: int) -> None:
    if stage.patch % recipe.scale:
        raise InputError(f"patch {stage.patch} is not a multiple of the scale {recipe.scale}")
    if stage.batch % (recipe.accumulate * processes):
        raise InputError(
            f"batch {stage.batch} cannot be shared out to {processes} processes in {recipe.accumulate} parts"
        )
