"""Steps a second of joint training, with the fused primal-dual kernels and with the eager definition.

    python -m benchmarks.speed.training_rate SCENES --device cuda

The same recipe, scenes and loop twice; only the backend of the pairwise operators differs.
"""

import argparse
import json
import tempfile
from pathlib import Path

from primaldepth.operators.pairwise import use_backend
from primaldepth.operators.pairwise.backends import Backend
from primaldepth.training.callbacks import LOG_EVERY
from primaldepth.training.recipe import Recipe, read_recipe
from primaldepth.training.run import TrainingEvent, train


def steps_per_second(recipe: Recipe, scenes: Path, device: str, backend: Backend) -> float:
    """Of the last logged interval: earlier ones hold compilation."""
    rates: list[float] = []

    def observe(event: TrainingEvent) -> None:
        if event.kind == "log":
            rates.append(event.values["steps_per_second"])

    with tempfile.TemporaryDirectory() as out, use_backend(backend):
        train(recipe, scenes, Path(out), device=device, observer=observe)
    return rates[-1]


def joint_recipe(path: Path, intervals: int) -> Recipe:
    """The last stage of a recipe alone, some logged intervals long and without validation."""
    recipe = read_recipe(path, ["validation.every=0", "validation.protocols=[]", "data.held_out=0"])
    stage = recipe.stages[-1].model_copy(update={"steps": intervals * LOG_EVERY, "save_as": None})
    return recipe.model_copy(update={"stages": (stage,)})


def main() -> None:
    """Print both rates and their quotient as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", type=Path)
    parser.add_argument("--recipe", type=Path, default=Path("configs/fcn-pdn.toml"))
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    recipe = joint_recipe(arguments.recipe, intervals=2)
    fused = steps_per_second(recipe, arguments.scenes, arguments.device, "auto")
    eager = steps_per_second(recipe, arguments.scenes, arguments.device, "torch")
    result = {"fused steps/s": fused, "eager steps/s": eager, "quotient": fused / eager}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
