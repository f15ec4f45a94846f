"""One stage at work: module, optimiser, averaged and best weights."""

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
from primaldepth.training.checkpoint import Checkpoint, Position
from primaldepth.training.journal import Journal
from primaldepth.training.recipe import Recipe, StageRecipe
from primaldepth.training.stage import StageLoss, average_of, clip_gradient, make_optimiser, rate_at, set_rate
from primaldepth.training.validation import Validator, selection_score, summary

CHECK_EVERY = 20


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
        module = StageLoss(run.net, stage)
        if run.stored is not None:
            run.net.load_state_dict(run.stored.weights)
        self.average = average_of(run.net, stage)
        self.best: dict[str, Tensor] = {}
        optimiser = make_optimiser(run.net, stage)
        if run.stored is not None and run.stored.optimiser:
            optimiser.load_state_dict(run.stored.optimiser)
            self.best = run.stored.best
            if self.average is not None:
                self.average.weights = run.stored.average
        self.module, self.optimiser = run.fabric.setup(module, optimiser)
        self._loss = torch.zeros((), device=run.fabric.device)
        self._bad = torch.full((), -1, device=run.fabric.device)
        self._logged, self._clock = run.position.step, time.perf_counter()

    def step(self, step: int) -> None:
        """One step of the optimiser."""
        recipe, stage = self.run.recipe, self.stage
        set_rate(self.optimiser, rate_at(stage, step))
        self.optimiser.zero_grad(set_to_none=True)
        for micro, batch in enumerate(self._batches(step)):
            more = micro + 1 < recipe.accumulate
            with self.run.fabric.no_backward_sync(self.module, enabled=more):
                loss = self.module(batch.maps, batch.truth, batch.valid, batch.unit) / recipe.accumulate
                self.run.fabric.backward(loss)
            self._loss += loss.detach()
        norm = clip_gradient(self.run.net.parameters(), stage)
        if self._may_step(norm, step):
            self.optimiser.step()
            if self.average is not None:
                self.average.update(self.run.net, step)

    def _batches(self, step: int) -> Iterator[Batch]:
        fabric, recipe, stage = self.run.fabric, self.run.recipe, self.stage
        count = stage.batch // recipe.accumulate
        own = count // fabric.world_size
        share = slice(fabric.global_rank * own, (fabric.global_rank + 1) * own)
        for micro in range(recipe.accumulate):
            place = (self.index, step, micro)
            yield draw_batch(self.run.scenes, recipe, count, stage.patch, place).part(share)

    def _may_step(self, norm: Tensor, step: int) -> bool:
        """Whether the gradient can be used.

        To stop it is enough to look from time to time: the device keeps the number of the first bad step,
        and what that step ruined is thrown away.
        """
        if self.run.recipe.on_nan == "skip":
            if not bool(torch.isfinite(norm)):
                self.run.tell("skipped", text=f"step {step}: the gradient is not finite")
                self._loss = torch.nan_to_num(self._loss)
                return False
            return True
        self._bad = torch.where((self._bad < 0) & ~torch.isfinite(norm), step, self._bad)
        if (step + 1) % CHECK_EVERY == 0 or step + 1 == self.stage.steps:
            self._stop_if_bad(int(self._bad))
        return True

    def _stop_if_bad(self, step: int) -> None:
        if step < 0:
            return
        from safetensors.torch import save

        path = self.run.out / f"bad-batch-stage{self.index}-step{step}.safetensors"
        for batch in self._batches(step):
            tensors = {name: value.cpu().contiguous() for name, value in batch.tensors().items()}
            write_bytes(path, save(tensors))
        raise TrainingError(
            f"stage {self.index}, step {step}: the gradient is not finite; the batch is in {path}. Lower the "
            "rate, or set on_nan to 'skip'; --resume goes on from the last checkpoint"
        )

    def log(self) -> None:
        """Loss and rate since the last log."""
        run, now = self.run, time.perf_counter()
        steps = run.position.step - self._logged
        run.position.seconds += now - self._clock
        speed = steps / max(now - self._clock, 1e-9)
        loss = float(run.fabric.all_reduce(self._loss / max(steps, 1), reduce_op="mean"))
        rate = rate_at(self.stage, run.position.step - 1)
        self._loss.zero_()
        self._logged, self._clock = run.position.step, now
        if run.main:
            run.journal.write(run.total_step, stage=self.index, loss=loss, rate=rate, steps_per_second=speed)
            self.run.tell("log", loss=loss, rate=rate, steps_per_second=speed)

    def validate(self) -> bool:
        """Score the averaged weights; False if there was no improvement for too long."""
        run, position = self.run, self.run.position
        stop = torch.zeros((), device=run.fabric.device)
        if run.main:
            weights = run.net.state_dict() if self.average is None else self.average.weights
            shadow = DepthNet(run.recipe.net).to(run.fabric.device)
            shadow.load_state_dict(weights)
            if self.stage.part == "fcn":
                shadow.pdn = None
            seen = list(run.validator.see(shadow))
            scores = summary(seen)
            run.journal.write(run.total_step, stage=self.index, **scores)
            run.journal.show(run.total_step, shadow, seen)
            self.run.tell("validation", **scores)
            score = selection_score(scores)
            if score is None or position.best is None or score < position.best:
                position.best, position.waited, position.scores = score, 0, scores
                self.best = {name: value.detach().clone() for name, value in weights.items()}
            else:
                position.waited += 1
            patience = run.recipe.validation.patience
            stop += float(bool(patience) and position.waited >= patience)
        self._clock = time.perf_counter()  # validation is not training time
        return not bool(run.fabric.broadcast(stop))

    def finish(self) -> None:
        """Leave the best weights in the network, in every process."""
        best = self.run.fabric.broadcast(self.best)
        if best:
            self.run.net.load_state_dict(best)
