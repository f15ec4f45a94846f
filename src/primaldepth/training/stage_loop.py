"""One stage of training: `train_stage` takes a state to the end of its stage, step by step."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from primaldepth.networks import DepthNet
from primaldepth.networks.precision import usual_dtype
from primaldepth.operators.pairwise import pick_backend
from primaldepth.training.batches import StageBatches, TrainingBatch
from primaldepth.training.optimisation import (
    averaged,
    clip_gradient,
    make_optimiser,
    rate_factor,
    rate_schedule,
    restore_optimiser,
    sums_of,
    update_average,
)
from primaldepth.training.recipe import Recipe, StageRecipe
from primaldepth.training.recorded_step import StepRecorder, with_fixed_shapes
from primaldepth.training.stage import StageLoss
from primaldepth.training.state import TrainState

LOOK_EVERY = 20  # steps after which the device is asked whether one of them was not finite


class Callback(NamedTuple):
    """Something that happens between steps, in every process alike.

    Args:
        every: number of steps between two calls; 0 for none.
        act: called with the learner; False ends the stage, and the callbacks after this one are left out.
        at_end: whether it is called after the last step, too.
    """

    every: int
    act: Callable[["Learner"], bool]
    at_end: bool = True

    def due(self, done: int, steps: int) -> bool:
        """Return whether it is time when `done` of the stage's steps are done."""
        return self.at_end if done == steps else self.every > 0 and done % self.every == 0


class NotFiniteError(Exception):
    """The loss or the gradient of a step was not finite."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


def train_stage(
    state: TrainState,
    stage: StageRecipe,
    data: StageBatches,
    recipe: Recipe,
    fabric: Any,
    callbacks: Sequence[Callback] = (),
    on_step: Callable[["Learner", bool], None] = lambda *_: None,
) -> TrainState:
    """Train one stage from where the state stands.

    Args:
        state: at the start of the stage or amid it.
        stage: the recipe of the stage.
        data: its batches.
        recipe: of the whole run.
        fabric: device and processes.
        callbacks: called in this order when they are due.
        on_step: called after every step with whether it was taken.

    Returns:
        the state at the end, whose weights are the best ones of the stage.

    Raises:
        NotFiniteError: a step was not finite, and `recipe.on_nan` is "stop".
    """
    learner = Learner(state, stage, recipe, fabric)
    for step in range(state.position.step, stage.steps):
        on_step(learner, learner.step(data.batches(step)))
        due = [each for each in callbacks if each.due(step + 1, stage.steps)]
        if due or (step + 1) % LOOK_EVERY == 0:
            learner.stop_if_bad()
        if not all(each.act(learner) for each in due):
            break
    return learner.finished()


class Learner:
    """A state at work: the network, its optimiser, schedule and average on a device.

    `position` and `best` are those of the state, brought forward by steps and callbacks.
    """

    def __init__(self, state: TrainState, stage: StageRecipe, recipe: Recipe, fabric: Any) -> None:
        self.stage, self.recipe, self.fabric, self._start = stage, recipe, fabric, state
        self.position, self.best = replace(state.position), state.best
        net = DepthNet(recipe.net)
        net.load_state_dict(state.weights)
        self.net = net.to(fabric.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._average = averaged(self.net) if stage.ema else None
        if self._average is not None and state.average:
            self._average.module.load_state_dict(state.average)
        fast = fabric.device.type == "cuda" or usual_dtype(net, fabric.device) == torch.bfloat16
        half = recipe.precision == "bf16" and fast
        module = StageLoss(self.net.train(), stage, bf16=half)
        optimiser = make_optimiser(self.net, stage)
        if state.optimiser:
            restore_optimiser(optimiser, state.optimiser)
        self._schedule = rate_schedule(optimiser, stage, self.position.step)
        self._module, self._optimiser = fabric.setup(module, optimiser)
        self._loss = torch.tensor(self.position.loss, device=fabric.device)
        self._first_bad = torch.full((), -1, device=fabric.device)
        self._recorder = self._new_recorder()
        self._seconds, self._clock = 0.0, time.perf_counter()

    @property
    def candidate(self) -> nn.Module:
        """The network that is validated and kept: the averaged one, if there is one."""
        return self.net if self._average is None else self._average.module

    def _new_recorder(self) -> StepRecorder | None:
        """Return what plays steps back, or None where a step needs the host or other processes amid it."""
        alone = self.fabric.world_size == 1 and self.recipe.accumulate == 1
        solver = self.net.pdn
        fused = self.stage.part == "fcn" or solver is None or solver.is_fused
        if not (self.fabric.device.type == "cuda" and alone and fused and self.recipe.on_nan == "stop"):
            return None
        if pick_backend(self._loss) != "triton":
            return None
        return StepRecorder(self._updated, with_fixed_shapes(self.recipe, self.stage))

    def step(self, batches: Iterable[TrainingBatch]) -> bool:
        """Make one step of the optimiser, unless it is left out; return whether it was taken."""
        if self._recorder is None:
            loss, evidence = self._differentiated(batches)
            taken = self._usable(evidence)
            if not taken:
                self._optimiser.zero_grad(set_to_none=True)  # without a gradient nothing changes
            self._optimiser.step()
        else:
            for batch in batches:  # only one
                loss, evidence = self._recorder(batch)
            taken = self._usable(evidence)
        self._schedule.step()
        if taken:
            self._loss += loss
            self.position.unlogged += 1
            if self._average is not None:
                update_average(self._average, self.net, self.stage, self.position.step)
        self.position.step += 1
        return taken

    def _updated(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Make a step without asking whether it may be taken; return as `_differentiated`."""
        found = self._differentiated([batch])
        self._optimiser.step()
        return found

    def _differentiated(self, batches: Iterable[TrainingBatch]) -> tuple[Tensor, Tensor]:
        """Leave the limited gradient of the loss in the weights.

        Returns:
            The loss, and a number that is finite if the loss and its gradient are.
        """
        self._optimiser.zero_grad(set_to_none=True)
        parts = self.recipe.accumulate
        total = torch.zeros((), device=self.fabric.device)
        for micro, batch in enumerate(batches):
            with (
                self.fabric.no_backward_sync(self._module, enabled=micro + 1 < parts),
                torch.backends.cudnn.flags(enabled=True, benchmark=True),  # patches have one size
            ):
                loss = self._module(batch.maps, batch.truth, batch.valid, batch.unit) / parts
                self.fabric.backward(loss)
            total += loss.detach()
        return total, total + clip_gradient(self.net.parameters(), self.stage)

    def _usable(self, evidence: Tensor) -> bool:
        """Return whether the step may be taken: not if loss or gradient is not finite.

        If such a step is to stop the run, the device only keeps its number for `stop_if_bad`: what is learned
        after it is thrown away, and nothing waits for the device in every step.
        """
        bad = ~torch.isfinite(evidence)
        if self.recipe.on_nan == "stop":
            new = bad & (self._first_bad < 0)
            self._first_bad = torch.where(new, self.position.step, self._first_bad)
            return True
        return not bool(self.fabric.all_reduce(bad.float(), reduce_op="sum"))

    def stop_if_bad(self) -> None:
        """Raise NotFiniteError if a step was not finite; to be called before anything is logged or kept."""
        step = int(self.fabric.all_reduce(self._first_bad.clone(), reduce_op="max"))
        if step >= 0:
            raise NotFiniteError(step)

    def bring_up_to_date(self) -> None:
        """Add the time and the loss since the last call to `position`."""
        now = time.perf_counter()
        self.position.seconds += now - self._clock
        self._seconds += now - self._clock
        self._clock = now
        self.position.loss = float(self.fabric.all_reduce(self._loss.clone(), reduce_op="mean"))

    def restart_clock(self) -> None:
        """Leave out the time since `bring_up_to_date`: validation is not training time."""
        self._clock = time.perf_counter()

    def tally(self) -> dict[str, float]:
        """Return mean loss, rate and speed of the steps since the last tally."""
        self.bring_up_to_date()
        steps, loss = self.position.unlogged, self.position.loss
        rate = self.stage.rate * rate_factor(self.stage, self.position.step - 1)
        speed = steps / max(self._seconds, 1e-9)
        self._loss.zero_()
        self._seconds, self.position.loss, self.position.unlogged = 0.0, 0.0, 0
        return {"loss": loss / max(steps, 1), "rate": rate, "steps_per_second": speed}

    def keep_candidate(self) -> None:
        """Take the weights of `candidate` as the best ones."""
        self.best = {name: value.detach().clone() for name, value in self.candidate.state_dict().items()}

    def state(self) -> TrainState:
        """Return the state as it is now, with tensors that the next step changes."""
        self.bring_up_to_date()
        return replace(
            self._start,
            position=self.position,
            weights=self.net.state_dict(),
            average={} if self._average is None else self._average.module.state_dict(),
            best=self.best,
            optimiser=sums_of(self._optimiser),
        )

    def finished(self) -> TrainState:
        """Return the state at the end of the stage, the best weights in every process."""
        self.bring_up_to_date()
        best = self.fabric.broadcast({name: value.cpu() for name, value in self.best.items()})
        weights = best or self.net.state_dict()
        return replace(
            self._start, position=self.position, weights=weights, average={}, best={}, optimiser={}
        )
