"""A whole run: the stages of a recipe, on one device or many processes, that a kill only interrupts.

Every batch is fixed by the run's seed and its place in it, so a run that goes on from a checkpoint sees what
it would have seen, and several processes share out the batches that one would have had.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import InputError, MissingDependencyError, PrimalDepthError
from primaldepth.io.atomic import remove_leftovers, write_bytes
from primaldepth.io.locks import held
from primaldepth.sensors import sensor
from primaldepth.training.batches import StageBatches
from primaldepth.training.callbacks import checkpoints, logging, total_step, validation
from primaldepth.training.checkpoint import LIST, read_checkpoint, write_checkpoint
from primaldepth.training.losses import get_loss
from primaldepth.training.recipe import Recipe
from primaldepth.training.run_log import LOG, RunLog
from primaldepth.training.scene_sets import SceneSets
from primaldepth.training.stage_loop import Learner, NotFiniteError, train_stage
from primaldepth.training.state import Position, TrainState
from primaldepth.training.validation import Validator
from primaldepth.training.weights import (
    start_network,
    unfinished_file,
    weight_files,
    write_unfinished,
    write_weights,
)

CONFIG = "config.json"


class TrainingError(PrimalDepthError):
    """The run cannot go on."""


@dataclass(frozen=True, slots=True)
class TrainingEvent:
    """News for the user: `kind` is "step", "log", "validation", "saved", "skipped" or "note"."""

    kind: str
    stage: int
    step: int
    steps: int
    values: dict[str, Any]


Observer = Callable[[TrainingEvent], None]


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
    """Run a recipe.

    Args:
        recipe: what `read_recipe` returns.
        shards: folder of rendered scenes; or below which the sets lie that the recipe names.
        out: folder of the run: checkpoint, log, weights. One that holds a run is refused unless `resume`.
        data: folder of the validation protocols.
        device: "cpu" or "cuda"; under torchrun each process takes its own.
        resume: go on with the run in `out`, if there is one.
        observer: told what happens, in the main process only.

    Returns:
        the weight files written, by name; empty in all processes but the main one.

    Raises:
        InputError: the recipe, the scenes or the folder do not go together.
        TrainingError: a loss was not finite.
    """
    sets = SceneSets(recipe, shards, verify=os.environ.get("RANK", "0") == "0")
    fabric = _fabric(device)
    check_recipe(recipe, fabric.world_size)
    main = fabric.global_rank == 0
    with held(out, "training in") if main else nullcontext():
        run = _Run(recipe, sets, out, fabric, observer)
        state = run.start(resume)
        with run.opened(state, data):
            while state.position.stage < len(recipe.stages):
                state = run.stage(state)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # its threads would outlive the interpreter, and abort it
    files = weight_files(recipe, out) if main else {}
    for path in files.values():
        if not path.exists():
            raise InputError(path, "this run wrote it, and it is gone", "train again in another folder")
    return files


def _fabric(device: str) -> Any:
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise MissingDependencyError(
            f"training needs lightning-fabric ({error}); install it with: pip install 'primaldepth[train]'"
        ) from error
    here, everywhere = (int(os.environ.get(name, "1")) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    fabric = Fabric(
        accelerator=device,
        devices=here,
        num_nodes=everywhere // here,
        strategy="ddp" if everywhere > 1 else "auto",
    )
    fabric.launch()
    return fabric


class _Run:
    """A run in one process: what stays the same over its stages."""

    def __init__(self, recipe: Recipe, sets: SceneSets, out: Path, fabric: Any, observer: Observer) -> None:
        self.recipe, self.sets, self.out, self.fabric, self.observer = recipe, sets, out, fabric, observer
        self.text = recipe.model_dump_json()
        self.main = fabric.global_rank == 0
        self.validator: Validator | None = None
        self.log: RunLog | None = None

    def start(self, resume: bool) -> TrainState:
        """Return the state to go on from."""
        log = self.out / LOG
        begun = (self.out / LIST).exists() or (log.exists() and log.stat().st_size > 0)
        if begun and not resume:
            raise InputError(self.out, "holds a run", "go on with --resume, or choose another folder")
        state = read_checkpoint(self.out)
        if state is not None:
            state.check_same_run(self.out, self.text, self.sets.names)
        if self.main:
            finished = weight_files(self.recipe, self.out).values()
            weights = (*finished, *map(unfinished_file, finished))
            cards = (path.with_suffix(".json") for path in weights)
            own = (self.out / name for name in (LIST, CONFIG, LOG))
            remove_leftovers((*own, *weights, *cards), locked=True)
            write_bytes(self.out / CONFIG, (self.recipe.model_dump_json(indent=2) + "\n").encode())
        net = start_network(self.recipe, from_seed=state is not None)
        if state is None:
            return TrainState(self.text, self.sets.names, Position(), net.state_dict())
        state.check_fits(self.out, net)
        return state

    @contextmanager
    def opened(self, state: TrainState, data: Path | None) -> Iterator[None]:
        """Open validation and log in the main process.

        Raises:
            InputError: the run was validated on other frames: their scores would be compared.
        """
        if not self.main:
            yield
            return
        device = self.fabric.device
        self.validator = Validator(self.recipe, self.sets.held_out(device), data, device)
        for text in self.validator.missing:
            self.report("note", state.position, text=f"not validated: {text}")
        before, now = sorted(state.position.scores), self.validator.groups
        if before and before != now:
            raise InputError(
                self.out,
                f"was validated on {', '.join(before)}, and now on {', '.join(now) or 'nothing'}",
                "say with --validation where the data is, or choose another folder",
            )
        self.log = RunLog(self.out, total_step(self.recipe, state.position))
        with closing(self.log):
            yield

    def stage(self, state: TrainState) -> TrainState:
        """Train one stage to its end, write its weights and a checkpoint, and return the state after it."""
        recipe, index = self.recipe, state.position.stage
        callbacks = (
            logging(self.log, self.report),
            validation(recipe, self.validator, self.log, self.report),
            checkpoints(self.out if self.main else None, recipe.checkpoint_every, self._write_unfinished),
        )
        scenes = self.sets.training(index, self.fabric.device)
        batches = StageBatches(scenes, recipe, index, (self.fabric.global_rank, self.fabric.world_size))
        stage = recipe.stages[index]
        try:
            state = train_stage(state, stage, batches, recipe, self.fabric, callbacks, self._after_step)
        except NotFiniteError as error:
            raise self._bad_batch(batches, index, error.step) from error
        if self.validator is not None and stage.save_as:
            file = weight_files(recipe, self.out)[stage.save_as]
            scores = write_weights(file, recipe, state, self.validator, self.sets.assets, self.fabric.device)
            self.report("saved", state.position, path=str(file), **scores)
        state = state.next_stage()
        if self.main:
            write_checkpoint(self.out, state)
        self.fabric.barrier()
        return state

    def _write_unfinished(self, state: TrainState) -> None:
        """Write what a stage that will be saved has learned so far."""
        name = self.recipe.stages[state.position.stage].save_as
        if name:
            file = weight_files(self.recipe, self.out)[name]
            write_unfinished(file, self.recipe, state, self.sets.assets)

    def _after_step(self, learner: Learner, taken: bool) -> None:
        if not taken:
            text = f"step {learner.position.step - 1} left out: its loss or gradient is not finite"
            self.report("skipped", learner.position, text=text)
        self.report("step", learner.position)

    def _bad_batch(self, batches: StageBatches, stage: int, step: int) -> TrainingError:
        """Write the batch of a step that was not finite; return the error that names it."""
        from safetensors.torch import save

        path = self.out / f"bad-batch-stage{stage}-step{step}.safetensors"
        if self.main:
            parts = [batch.tensors() for batch in batches.whole(step)]
            whole = {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}
            write_bytes(path, save(whole))
        return TrainingError(
            f"stage {stage}, step {step}: loss or gradient is not finite; the batch is in {path}; "
            "go on without it by --resume --set on_nan=skip, or start again with a lower rate"
        )

    def report(self, kind: str, position: Position, **values: Any) -> None:
        """Report to the observer, in the main process."""
        if self.main:
            steps = self.recipe.stages[min(position.stage, len(self.recipe.stages) - 1)].steps
            self.observer(TrainingEvent(kind, position.stage, position.step, steps, values))


def check_recipe(recipe: Recipe, processes: int) -> None:
    """Raise InputError for what would otherwise be found out only when its stage begins."""
    for mix in recipe.data.mixture:
        sensor(mix.sensor, scale=recipe.scales[0])
        if other := set(mix.scale) - set(recipe.scales):
            raise InputError(
                f"recipe '{recipe.name}'", f"data.mix: scale {min(other)} is not one of the recipe's"
            )
    for index, stage in enumerate(recipe.stages):
        where = f"recipe '{recipe.name}': stages.{index}"
        get_loss(stage.loss)
        if stage.part != "fcn" and not recipe.net.iterations:
            raise InputError(where, f"part '{stage.part}' needs a primal-dual part, but net.iterations is 0")
        odd = [scale for scale in recipe.scales if stage.patch % scale]
        if odd and (len(recipe.scales) == 1 or recipe.data.blend > 1):
            raise InputError(where, f"patch {stage.patch} is not a multiple of the scale {odd[0]}")
        if stage.patch < max(recipe.scales):
            raise InputError(where, f"patch {stage.patch} is smaller than the scale {max(recipe.scales)}")
        if stage.batch % (recipe.accumulate * processes * recipe.data.blend):
            parts = f"{processes} processes in {recipe.accumulate} parts of {recipe.data.blend} kinds"
            raise InputError(where, f"batch {stage.batch} cannot be shared out evenly to {parts}")
