"""One stage at work: module, optimiser, averaged and best weights."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from primaldepth.core.errors import PrimalDepthError
from primaldepth.data.patches import Scenes
from primaldepth.io.atomic import write_bytes
from primaldepth.networks import DepthNet
from primaldepth.training.batches import Batch, draw_batch
from primaldepth.training.checkpoint import Checkpoint, Position, check_fits
from primaldepth.training.journal import Journal
from primaldepth.training.recipe import Recipe, StageRecipe
from primaldepth.training.stage import (
    StageLoss,
    average_of,
    clip_gradient,
    make_optimiser,
    rate_at,
    restore_optimiser,
    set_rate,
)
from primaldepth.training.validation import Validator, summary

TOGETHER = 4
"""Steps whose batches are drawn in one go: a GPU waits less for many small operations."""


class TrainingError(PrimalDepthError):
    """The run cannot go on."""


class RunState(Protocol):
    """What a stage needs of its run; `validator` and `journal` exist in the main process only."""

    recipe: Recipe
    out: Path
    fabric: Any
    main: bool
    net: DepthNet
    scenes: Scenes
    position: Position
    stored: Checkpoint | None
    validator: Validator
    journal: Journal

    @property
    def total_step(self) -> int:
        """Steps done in all stages."""
        ...

    def tell(self, kind: str, **values: Any) -> None:
        """Report to the observer, in the main process."""
        ...


class Work:
    """A stage of a run, step by step."""

    def __init__(self, run: RunState, index: int, stage: StageRecipe) -> None:
        self.run, self.index, self.stage = run, index, stage
        run.net.train()
        half = run.recipe.precision == "bf16" and run.fabric.device.type == "cuda"
        module, stored = StageLoss(run.net, stage, bf16=half), run.stored
        if stored is not None:
            check_fits(run.out, stored, run.net)
            run.net.load_state_dict(stored.weights)
        self.average = average_of(run.net, stage)
        self.best: dict[str, Tensor] = {}
        optimiser = make_optimiser(run.net, stage)
        if stored is not None and stored.optimiser:
            restore_optimiser(optimiser, stored.optimiser)
            self.best = stored.best
            if self.average is not None:
                self.average.restore(stored.average)
        self.module, self.optimiser = run.fabric.setup(module, optimiser)
        self._loss = torch.tensor(run.position.loss, device=run.fabric.device)
        self._steps, self._seconds = run.position.unlogged, 0.0
        self._first_bad = torch.full((), -1, device=run.fabric.device)
        self._clock = time.perf_counter()
        self._drawn: tuple[int, list[Batch]] | None = None

    def step(self, step: int) -> None:
        """One step of the optimiser."""
        set_rate(self.optimiser, rate_at(self.stage, step))
        self.optimiser.zero_grad(set_to_none=True)
        loss = self._differentiated(step)
        norm = clip_gradient(self.run.net.parameters(), self.stage)
        if self._usable(loss + norm, step):
            self.optimiser.step()
            self._loss += loss
            self._steps += 1
            if self.average is not None:
                self.average.update(step)

    def _differentiated(self, step: int) -> Tensor:
        """Leave the gradient of the loss in the weights; the loss itself."""
        fabric, parts = self.run.fabric, self.run.recipe.accumulate
        total = torch.zeros((), device=fabric.device)
        for micro, batch in enumerate(self._batches(step)):
            with (
                fabric.no_backward_sync(self.module, enabled=micro + 1 < parts),
                torch.backends.cudnn.flags(enabled=True, benchmark=True),  # patches have one size
            ):
                loss = self.module(batch.maps, batch.truth, batch.valid, batch.unit) / parts
                fabric.backward(loss)
            total += loss.detach()
        return total

    def _batches(self, step: int) -> Iterator[Batch]:
        """The share of the step's patches that this process has."""
        fabric = self.run.fabric
        own = self.stage.batch // self.run.recipe.accumulate // fabric.world_size
        share = slice(fabric.global_rank * own, (fabric.global_rank + 1) * own)
        for batch in self._whole_batches(step):
            yield batch.part(share)

    def _whole_batches(self, step: int) -> Iterator[Batch]:
        """The batches of a step, one for each part of it; those of a few steps are drawn together."""
        group, place = divmod(step, TOGETHER)
        if self._drawn is None or self._drawn[0] != group:
            recipe, stage = self.run.recipe, self.stage
            count = TOGETHER * (stage.batch // recipe.accumulate)
            places = [(self.index, group, micro) for micro in range(recipe.accumulate)]
            batches = [draw_batch(self.run.scenes, recipe, count, stage.patch, at) for at in places]
            self._drawn = (group, batches)
        for batch in self._drawn[1]:
            own = len(batch.truth) // TOGETHER
            yield batch.part(slice(place * own, (place + 1) * own))

    def _usable(self, evidence: Tensor, step: int) -> bool:
        """Whether the step may be taken, which a number that is not finite speaks against.

        To stop it is enough to look from time to time: the device keeps the number of the first bad step,
        and what that step ruined is thrown away.
        """
        bad = ~torch.isfinite(evidence)
        if self.run.recipe.on_nan == "stop":
            self._first_bad = torch.where(bad & (self._first_bad < 0), step, self._first_bad)
            return True
        if not bool(self.run.fabric.all_reduce(bad.float(), reduce_op="sum")):
            return True
        self.run.tell("skipped", text=f"step {step} left out: its loss or gradient is not finite")
        return False

    def stop_if_bad(self) -> None:
        """Raise if a step was not finite; nothing must be logged, judged or kept before."""
        step = int(self.run.fabric.all_reduce(self._first_bad.clone(), reduce_op="max"))
        if step < 0:
            return
        path = self.run.out / f"bad-batch-stage{self.index}-step{step}.safetensors"
        if self.run.main:
            _write_batches(path, list(self._whole_batches(step)))
        raise TrainingError(
            f"stage {self.index}, step {step}: loss or gradient is not finite; the batch is in {path}; "
            "go on without it by --resume --set on_nan=skip, or start again with a lower rate"
        )

    def tick(self) -> None:
        """Bring the run's clock and the unlogged loss up to date."""
        now, position = time.perf_counter(), self.run.position
        position.seconds += now - self._clock
        self._seconds += now - self._clock
        self._clock = now
        position.loss = float(self.run.fabric.all_reduce(self._loss.clone(), reduce_op="mean"))
        position.unlogged = self._steps

    def log(self) -> None:
        """Loss and rate since the last log."""
        run, position = self.run, self.run.position
        self.tick()
        loss, speed = position.loss / max(self._steps, 1), self._steps / max(self._seconds, 1e-9)
        rate = rate_at(self.stage, position.step - 1)
        self._loss.zero_()
        self._steps, self._seconds, position.loss, position.unlogged = 0, 0.0, 0.0, 0
        if run.main:
            run.journal.write(run.total_step, stage=self.index, loss=loss, rate=rate, steps_per_second=speed)
            run.tell("log", loss=loss, rate=rate, steps_per_second=speed)

    def validate(self) -> bool:
        """Score the averaged weights; False if there was no improvement for too long."""
        self.tick()
        patience = self.run.recipe.validation.patience
        if self.run.main:
            self._judge(self.run.net.state_dict() if self.average is None else self.average.weights)
        tired = bool(patience) and self.run.position.waited >= patience
        self._clock = time.perf_counter()  # validation is not training time
        return not self.run.fabric.broadcast(tired)

    def _judge(self, weights: dict[str, Tensor]) -> None:
        """Validate, report, and keep the weights if they are the best so far."""
        run, position = self.run, self.run.position
        shadow = DepthNet(run.recipe.net).to(run.fabric.device)
        shadow.load_state_dict(weights)
        if self.stage.part == "fcn":
            shadow.pdn = None
        seen = list(run.validator.see(shadow))
        scores = summary(seen)
        score = run.validator.score(scores)
        shown = scores if score is None else {**scores, "score": score}
        run.journal.validation(run.total_step, self.index, shown, shadow, seen)
        run.tell("validation", **shown)
        if score is None or (math.isfinite(score) and (position.best is None or score < position.best)):
            position.best, position.waited, position.scores = score, 0, scores
            self.best = {name: value.detach().clone() for name, value in weights.items()}
        else:
            position.waited += 1

    def finish(self) -> None:
        """Leave the best weights in the network, in every process."""
        self.tick()
        best = self.run.fabric.broadcast({name: value.cpu() for name, value in self.best.items()})
        if best:
            self.run.net.load_state_dict(best)


def _write_batches(path: Path, batches: list[Batch]) -> None:
    from safetensors.torch import save

    parts = [batch.tensors() for batch in batches]
    write_bytes(path, save({name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}))
