"""What a run has learned and where it stands: all that a checkpoint holds, and nothing else.

Nothing random has to be stored: every batch is drawn from the recipe's seed and its place in the run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor, nn

from primaldepth.core.documents import parse_json
from primaldepth.core.errors import SHOWN, FileFormatError, InputError

_Count = Annotated[int, Field(ge=0)]
FREE = ("on_nan", "checkpoint_every", "scenes.*.textures", "scenes.*.meshes", "scenes.*.variant")
"""Keys of a recipe that do not change what is learned; textures are known by what is in the folder."""


@dataclass(slots=True)
class Position:
    """Where a run stands, and what it has found so far.

    Args:
        stage: index of the stage.
        step: steps done in it.
        seconds: spent so far.
        best: lowest validation score of the stage, None before the first.
        waited: validations since then.
        scores: of the best weights.
        loss: summed over the steps since the last line of the log.
        unlogged: how many steps these are.
    """

    stage: _Count = 0
    step: _Count = 0
    seconds: float = 0.0
    best: float | None = None
    waited: _Count = 0
    scores: dict[str, float] = field(default_factory=dict)
    loss: float = 0.0
    unlogged: _Count = 0


@dataclass(frozen=True, slots=True, eq=False)
class TrainState:
    """A run between two steps, as plain tensors and numbers.

    Args:
        recipe: the resolved recipe as JSON.
        scenes: names the scenes that are learned from.
        position: where the run stands.
        weights: of the network, by name.
        average: averaged weights; empty between stages, and where a stage has none.
        best: weights with the best validation score of the stage; empty before the first validation.
        optimiser: the sums of its optimiser; empty between stages.
    """

    recipe: str
    scenes: str
    position: Position
    weights: dict[str, Tensor]
    average: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    optimiser: dict[str, Tensor] = field(default_factory=dict)

    def next_stage(self) -> "TrainState":
        """Return the state at the start of the next stage."""
        position = Position(stage=self.position.stage + 1, seconds=self.position.seconds)
        return replace(self, position=position, average={}, best={}, optimiser={})

    def check_fits(self, folder: Path, net: nn.Module) -> None:
        """Raise FileFormatError unless the weights have the names and shapes of the network's."""
        wanted = {name: value.shape for name, value in net.state_dict().items()}
        for part in (self.weights, self.average, self.best):
            if part and {name: value.shape for name, value in part.items()} != wanted:
                raise FileFormatError(
                    folder,
                    "the checkpoint's weights are not those of its recipe",
                    "remove it to start the run again",
                )

    def check_same_run(self, folder: Path, recipe: str, scenes: str) -> None:
        """Check that the run has this recipe, up to `FREE` keys, and these scenes.

        Args:
            folder: of the run.
            recipe: as JSON.
            scenes: names the scenes.

        Raises:
            InputError: it is another run.
        """
        before, now = parse_json(self.recipe, folder / "checkpoint", what="recipe"), json.loads(recipe)
        found = [(text.split(" ")[0], text) for text in _differences(before, now)]
        changed = [text for key, text in found if not any(fnmatch(key, free) for free in FREE)]
        if self.scenes != scenes:
            changed.append(f"the scenes are '{self.scenes}' there and '{scenes}' now")
        if changed:
            raise InputError(
                folder,
                f"holds a run of another recipe: {'; '.join(changed)}",
                "repeat that one to go on, or choose another folder",
            )


def _differences(before: Any, now: Any, key: str = "") -> Iterator[str]:
    """Yield one text per value that differs, with its dotted key."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            inner = f"{key}.{name}" if key else str(name)
            yield from _differences(before.get(name), now.get(name), inner)
    elif before != now:
        yield f"{key} is {_cut(before)} there and {_cut(now)} now"


def _cut(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
