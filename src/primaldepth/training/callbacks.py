"""What happens between the steps of a stage: log, validation, checkpoint.

Every process calls them, because they gather from all; only the main one has a log, a validator and a file.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from primaldepth.training.checkpoint import write_checkpoint
from primaldepth.training.recipe import Recipe
from primaldepth.training.run_log import RunLog
from primaldepth.training.stage import stage_network
from primaldepth.training.stage_loop import Callback, Learner
from primaldepth.training.state import Position, TrainState
from primaldepth.training.validation import Validator, selection_score, summary

LOG_EVERY = 50  # steps
Reporter = Callable[..., None]


def total_step(recipe: Recipe, position: Position) -> int:
    """Return the number of steps done in all stages."""
    return sum(stage.steps for stage in recipe.stages[: position.stage]) + position.step


def logging(log: RunLog | None, report: Reporter) -> Callback:
    """Return the callback that logs mean loss, rate and speed every `LOG_EVERY` steps."""

    def write(learner: Learner) -> bool:
        values: dict[str, Any] = learner.tally()
        if log is not None:
            step = total_step(learner.recipe, learner.position)
            log.write(step, stage=learner.position.stage, **values)
            report("log", learner.position, **values)
        return True

    return Callback(LOG_EVERY, write)


def validation(recipe: Recipe, validator: Validator | None, log: RunLog | None, report: Reporter) -> Callback:
    """Return the callback that scores the candidate and ends a stage that no longer improves.

    Args:
        recipe: of the run.
        validator: scores networks; None in all processes but the main one.
        log: where scores are written.
        report: called with them.
    """
    patience = recipe.validation.patience

    def validate(learner: Learner) -> bool:
        learner.bring_up_to_date()
        if validator is not None and log is not None:
            _judge(learner, validator, log, report)
        tired = bool(patience) and learner.position.waited >= patience
        learner.restart_clock()
        return not learner.fabric.broadcast(tired)

    return Callback(recipe.validation.every, validate)


def _judge(learner: Learner, validator: Validator, log: RunLog, report: Reporter) -> None:
    """Score the candidate, log the scores, and keep its weights if they are the best so far."""
    position, weights = learner.position, learner.candidate.state_dict()
    net = stage_network(learner.recipe.net, learner.stage, weights).to(learner.fabric.device)
    results = list(validator.results(net))
    scores = summary(results)
    score = selection_score(scores, validator.parts)
    shown = scores if score is None else {**scores, "score": score}
    log.validation(total_step(learner.recipe, position), position.stage, shown, net, results)
    report("validation", position, **shown)
    if score is None or (math.isfinite(score) and (position.best is None or score < position.best)):
        position.best, position.waited, position.scores = score, 0, scores
        learner.keep_candidate()
    else:
        position.waited += 1


def checkpoints(
    folder: Path | None, every: int, also: Callable[[TrainState], None] = lambda _: None
) -> Callback:
    """Return the callback that writes checkpoints during a stage, in the process that has a folder.

    Args:
        folder: of the run, or None.
        every: steps between two checkpoints.
        also: called with the state after its checkpoint is written, in that process.
    """

    def write(learner: Learner) -> bool:
        state = learner.state()
        if folder is not None:
            write_checkpoint(folder, state)
            also(state)
        learner.fabric.barrier()
        return True

    return Callback(every, write, at_end=False)
