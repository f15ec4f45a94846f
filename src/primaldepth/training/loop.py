"""The loop: stages of steps, on one device or many processes, that a kill only interrupts.

Every batch is fixed by the run's seed and its place in it, so a run that goes on from a checkpoint sees what
it would have seen, and several processes share out the batches that one would have had.
"""

import copy
import datetime as dt
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.core.seeds import derive_seed
from primaldepth.data.patches import Scenes
from primaldepth.data.sensors import sensor
from primaldepth.data.shards import Shards
from primaldepth.io.atomic import remove_leftovers, write_bytes
from primaldepth.io.locks import held
from primaldepth.networks import DepthNet, from_pretrained, save_model
from primaldepth.networks.card import ModelCard
from primaldepth.training.calibration import calibrate
from primaldepth.training.checkpoint import Checkpoint, Position, check_same_run, read_checkpoint
from primaldepth.training.journal import LOG, Journal
from primaldepth.training.losses import get_loss
from primaldepth.training.provenance import commit, describe
from primaldepth.training.recipe import Recipe, StageRecipe
from primaldepth.training.validation import Validator, summary
from primaldepth.training.work import Work

CHECKPOINT, CONFIG = "checkpoint.safetensors", "config.json"
LOG_EVERY, LOOK_EVERY = 50, 20  # steps; the second is how often the device is asked for a bad one


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell the user: `kind` is "step", "log", "validation", "saved", "skipped" or "note"."""

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
    """Run a recipe; the weight files written, by name, in the main process.

    Args:
        shards: folder of rendered scenes.
        out: folder of the run: checkpoint, log, weights. One that holds a run is refused unless `resume`.
        data: folder of the validation protocols.
        device: "cpu" or "cuda"; under torchrun each process takes its own.
        observer: told what happens, in the main process only.
    """
    fabric = _fabric(device)
    _check(recipe, fabric.world_size)
    main = fabric.global_rank == 0
    source = Shards(shards, verify=main)
    with held(out, "training in") if main else nullcontext():
        run = Run(recipe, source, out, data, fabric, observer, resume)
        try:
            for index in range(run.position.stage, len(recipe.stages)):
                run.stage(index)
        finally:
            run.close()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # its threads would outlive the interpreter, and abort it
    return run.written() if main else {}


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


class Run:
    """A run in one process: what stays the same over its stages, and where it stands."""

    def __init__(
        self,
        recipe: Recipe,
        source: Shards,
        out: Path,
        data: Path | None,
        fabric: Any,
        observer: Observer,
        resume: bool,
    ) -> None:
        self.recipe, self.source, self.out = recipe, source, out
        self.fabric, self.observer = fabric, observer
        self.main = fabric.global_rank == 0
        self.text = recipe.model_dump_json()
        self.stored = self._prepare(resume)
        self.scenes, held_out = _split(self.source, recipe, fabric.device)
        net = _network(recipe, at_start=self.stored is None)
        self.net = net.to(fabric.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.position = Position() if self.stored is None else self.stored.position
        if self.main:
            self.validator = Validator(recipe, held_out, data, fabric.device)
            for text in self.validator.missing:
                self.tell("note", text=f"not validated: {text}")
            self._check_validation()
            self.journal = Journal(out, self.total_step)

    @property
    def total_step(self) -> int:
        """Steps done in all stages."""
        return sum(stage.steps for stage in self.recipe.stages[: self.position.stage]) + self.position.step

    def _prepare(self, resume: bool) -> Checkpoint | None:
        """The checkpoint to go on from, or None at a start."""
        path, stored = self.out / CHECKPOINT, None
        if (path.exists() or _has_lines(self.out / LOG)) and not resume:
            raise InputError(f"{self.out}: holds a run; go on with --resume, or choose another folder")
        if path.exists():
            stored = read_checkpoint(path)
            check_same_run(self.out, stored, self.text, describe(self.source))
        if self.main:
            self._remove_leftovers()
            write_bytes(self.out / CONFIG, (self.recipe.model_dump_json(indent=2) + "\n").encode())
        return stored

    def _remove_leftovers(self) -> None:
        """Delete what a kill has left of the files that a run writes."""
        weights = self.weight_files().values()
        names = (CHECKPOINT, CONFIG, LOG, *(path.name for path in weights))
        cards = (path.with_suffix(".json").name for path in weights)
        remove_leftovers((self.out / name for name in (*names, *cards)), locked=True)

    def _check_validation(self) -> None:
        """Scores on other frames than before would be compared with the best one so far."""
        before, now = sorted(self.position.scores), self.validator.groups
        if before and before != now:
            raise InputError(
                f"{self.out}: was validated on {', '.join(before)}, and now on {', '.join(now) or 'nothing'}"
                "; say with --validation where the data is, or choose another folder"
            )

    def stage(self, index: int) -> None:
        """Train one stage to its end, keep its best weights and write them."""
        stage = self.recipe.stages[index]
        work = Work(self, index, stage)
        for step in range(self.position.step, stage.steps):
            work.step(step)
            self.position.step = step + 1
            self.tell("step")
            if not self._after(work, step + 1):
                break
        work.finish()
        if self.main and stage.save_as:
            self._save(stage)
        self.position = Position(stage=index + 1, seconds=self.position.seconds)
        self.stored = None
        self.checkpoint(work, done=True)

    def _after(self, work: Work, done: int) -> bool:
        """Log, validate and checkpoint where it is time to; False ends the stage."""
        last, every = done == work.stage.steps, self.recipe.validation.every
        log = last or done % LOG_EVERY == 0
        validate = last or (every > 0 and done % every == 0)
        keep = not last and done % self.recipe.checkpoint_every == 0
        if log or validate or keep or done % LOOK_EVERY == 0:
            work.stop_if_bad()
        if log:
            work.log()
        go_on = work.validate() if validate else True
        if keep and go_on:
            self.checkpoint(work)
        return go_on

    def checkpoint(self, work: Work, *, done: bool = False) -> None:
        """Write RUN/checkpoint.safetensors; `done`: the stage's state is no longer needed."""
        if not done:
            work.tick()
        if self.main:
            Checkpoint(
                self.text,
                describe(self.source),
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
        path, scores = self.weight_files()[str(stage.save_as)], self.position.scores
        if self.recipe.keep:
            net = partly(net, _network(self.recipe, at_start=True), self.recipe.keep)
            scores = summary(list(self.validator.see(net)))
        if stage.likelihood and net.is_for_any_scale and self.validator.looks:
            net = copy.deepcopy(net)
            scores = scores | calibrate(net, self.validator)
        card = ModelCard(
            name=str(stage.save_as),
            scale=self.recipe.scales[0] if len(self.recipe.scales) == 1 else None,
            settings=net.settings,
            created=dt.datetime.now(dt.UTC).replace(microsecond=0),
            config=self.recipe.model_dump(mode="json"),
            data=describe(self.source),
            seed=self.recipe.seed,
            commit=commit(),
            seconds=self.position.seconds,
            scores=scores,
        )
        save_model(path, net, card, half=self.recipe.half)
        self.tell("saved", path=str(path), **scores)

    def weight_files(self) -> dict[str, Path]:
        """What the stages write at their ends, by name."""
        names = [stage.save_as for stage in self.recipe.stages if stage.save_as]
        scales = self.recipe.scales
        ending = f"-x{scales[0]}" if len(scales) == 1 else ""
        return {name: self.out / f"{name}{ending}.safetensors" for name in names}

    def written(self) -> dict[str, Path]:
        """The weight files of a finished run."""
        files = self.weight_files()
        for path in files.values():
            if not path.exists():
                raise InputError(f"{path}: this run wrote it, and it is gone; train again in another folder")
        return files

    def close(self) -> None:
        """Flush the logs."""
        if self.main:
            self.journal.close()

    def tell(self, kind: str, **values: Any) -> None:
        """Report to the observer, in the main process."""
        if not self.main:
            return
        stages = self.recipe.stages
        steps = stages[min(self.position.stage, len(stages) - 1)].steps
        self.observer(Event(kind, self.position.stage, self.position.step, steps, values))


def partly(net: DepthNet, start: DepthNet, share: float) -> DepthNet:
    """The network with weights that are, to a `share`, those of `start`."""
    mixed, old = copy.deepcopy(net), start.state_dict()
    weights = net.state_dict()
    mixed.load_state_dict({name: torch.lerp(new, old[name].to(new), share) for name, new in weights.items()})
    return mixed


def _has_lines(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0


def _network(recipe: Recipe, *, at_start: bool) -> DepthNet:
    """As the recipe's seed, or at the start of a run the weights it starts from, make it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("weights", recipe.seed))
        try:
            net = DepthNet(recipe.net)
        except ValueError as error:
            raise InputError(f"recipe '{recipe.name}': net: {error}") from error
    if recipe.start is None or not at_start:
        return net
    start = from_pretrained(recipe.start)
    try:
        start = start.with_samples() if recipe.net.samples else start
        net.fcn.load_state_dict(start.fcn.state_dict())
        if net.pdn is not None and start.pdn is not None:
            net.pdn.load_state_dict(start.pdn.resampled(recipe.net.iterations).state_dict())
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"start {recipe.start}: weights of a network with {start.settings}, which do not fit "
            f"the recipe's {recipe.net}"
        ) from error
    return net


def _split(shards: Shards, recipe: Recipe, device: torch.device) -> tuple[Scenes, Scenes | None]:
    """Scenes to train on, and those held out."""
    held = min(recipe.data.held_out, len(shards) // 5)
    if not len(shards) - held:
        raise InputError(f"{shards.folder}: no finished scenes; render some first")
    training = Scenes.load(shards, device, 0, len(shards) - held)
    height, width = (int(side) for side in training.depth.shape[1:])
    for index, stage in enumerate(recipe.stages):
        if stage.patch > min(height, width):
            raise InputError(
                f"{shards.folder}: scenes of {width}x{height} are smaller than stages.{index}.patch, "
                f"{stage.patch}; lower it, or render larger scenes"
            )
    return training, Scenes.load(shards, device, len(shards) - held) if held else None


def _check(recipe: Recipe, processes: int) -> None:
    """What would otherwise be found out only when its stage begins."""
    for mix in recipe.data.mixture:
        sensor(mix.sensor, scale=recipe.scales[0])
        if other := set(mix.scale) - set(recipe.scales):
            raise InputError(
                f"recipe '{recipe.name}': data.mix: scale {min(other)} is not one of the recipe's"
            )
    for index, stage in enumerate(recipe.stages):
        where = f"recipe '{recipe.name}': stages.{index}"
        get_loss(stage.loss)
        if stage.part != "fcn" and not recipe.net.iterations:
            raise InputError(
                f"{where}: part '{stage.part}' needs a primal-dual part, but net.iterations is 0"
            )
        odd = [scale for scale in recipe.scales if stage.patch % scale]
        if odd and (len(recipe.scales) == 1 or recipe.data.blend > 1):
            raise InputError(f"{where}: patch {stage.patch} is not a multiple of the scale {odd[0]}")
        if stage.patch < max(recipe.scales):
            raise InputError(f"{where}: patch {stage.patch} is smaller than the scale {max(recipe.scales)}")
        if stage.batch % (recipe.accumulate * processes * recipe.data.blend):
            parts = f"{processes} processes in {recipe.accumulate} parts of {recipe.data.blend} kinds"
            raise InputError(f"{where}: batch {stage.batch} cannot be shared out evenly to {parts}")
