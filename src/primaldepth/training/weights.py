"""Weight files of a run: what it starts from, and what each stage writes with its card."""

import copy
import datetime as dt
import os
import subprocess
from pathlib import Path

import torch

from primaldepth.core.errors import InputError
from primaldepth.core.seeds import derive_seed
from primaldepth.networks import DepthNet, from_pretrained, save_model
from primaldepth.networks.card import Asset, ModelCard
from primaldepth.training.calibration import calibrate
from primaldepth.training.recipe import Recipe
from primaldepth.training.stage import stage_network
from primaldepth.training.state import TrainState
from primaldepth.training.validation import Validator, summary


def start_network(recipe: Recipe, *, from_seed: bool = False) -> DepthNet:
    """Build the network: initialised from `recipe.seed`, or loaded from `recipe.start` if that is given.

    Args:
        recipe: of the run.
        from_seed: do not look for `recipe.start`.

    Raises:
        InputError: the settings fit no network, or the weights to start from do not fit the settings.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("weights", recipe.seed))
        try:
            net = DepthNet(recipe.net)
        except ValueError as error:
            raise InputError(f"recipe '{recipe.name}'", f"net: {error}") from error
    if recipe.start is None or from_seed:
        return net
    start = _start(recipe)
    try:
        start = start.with_samples() if recipe.net.samples else start
        net.fcn.load_state_dict(start.fcn.state_dict())
        if net.pdn is not None and start.pdn is not None:
            net.pdn.load_state_dict(start.pdn.state_dict())
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"start {recipe.start}",
            f"weights of a network with {start.settings}, which do not fit the recipe's {recipe.net}",
        ) from error
    return net


def _start(recipe: Recipe) -> DepthNet:
    """Read the weights a run starts from, with as many iterations as the recipe's network has."""
    start = from_pretrained(str(recipe.start))
    count = recipe.net.iterations
    return start.with_iterations(count) if count and start.pdn is not None else start


def weight_files(recipe: Recipe, out: Path) -> dict[str, Path]:
    """Return the files that the stages write at their ends, by name."""
    ending = f"-x{recipe.scales[0]}" if len(recipe.scales) == 1 else ""
    names = [stage.save_as for stage in recipe.stages if stage.save_as]
    return {name: out / f"{name}{ending}.safetensors" for name in names}


def unfinished_file(path: Path) -> Path:
    """Return the place of weights that are still learning, beside that of the finished ones."""
    return path.with_stem(f"{path.stem}-unfinished")


def write_unfinished(path: Path, recipe: Recipe, state: TrainState, assets: tuple[Asset, ...]) -> None:
    """Write the averaged weights of a stage that is not at its end, with their card.

    They can be used like any others, so that a run that is lost has left something; sigma is not calibrated.

    Args:
        path: where `write_weights` will write.
        recipe: of the run.
        state: amid the stage.
        assets: what others made and the scenes show.
    """
    stage = recipe.stages[state.position.stage]
    net = stage_network(recipe.net, stage, state.average or state.weights)
    step = f"unfinished: step {state.position.step} of {stage.steps}"
    save_model(unfinished_file(path), net, _card(recipe, state, net, assets, {}, step), half=recipe.half)


def remove_unfinished(path: Path) -> None:
    """Delete what `write_unfinished` wrote."""
    for suffix in (".safetensors", ".json"):
        unfinished_file(path).with_suffix(suffix).unlink(missing_ok=True)


def write_weights(
    path: Path,
    recipe: Recipe,
    state: TrainState,
    validator: Validator,
    assets: tuple[Asset, ...],
    device: torch.device,
) -> dict[str, float]:
    """Write the weights of a finished stage and their card.

    Args:
        path: of the weight file.
        recipe: of the run.
        state: at the end of the stage.
        validator: scores weights that are mixed with those of the start, and calibrates sigma.
        assets: what others made and the scenes show.
        device: where that is computed.

    Returns:
        the scores on the card.
    """
    stage, scores = recipe.stages[state.position.stage], state.position.scores
    net = stage_network(recipe.net, stage, state.weights).to(device)
    if recipe.keep:
        net = partly(net, _start(recipe), recipe.keep)
        scores = summary(validator.results(net))
    if stage.likelihood and net.is_for_any_scale and validator.frames:
        scores = scores | calibrate(net, validator)
    save_model(path, net, _card(recipe, state, net, assets, scores), half=recipe.half)
    remove_unfinished(path)
    return scores


def _card(
    recipe: Recipe,
    state: TrainState,
    net: DepthNet,
    assets: tuple[Asset, ...],
    scores: dict[str, float],
    notes: str = "",
) -> ModelCard:
    return ModelCard(
        name=str(recipe.stages[state.position.stage].save_as),
        scale=recipe.scales[0] if len(recipe.scales) == 1 else None,
        settings=net.settings,
        created=dt.datetime.now(dt.timezone.utc).replace(microsecond=0),
        recipe=recipe.name,
        recipe_sha256=recipe.sha256,
        config=recipe.model_dump(mode="json"),
        data=state.scenes,
        assets=assets,
        seed=recipe.seed,
        commit=commit(),
        seconds=state.position.seconds,
        scores=scores,
        notes=notes,
    )


def commit() -> str:
    """Return the commit of the code, from PRIMALDEPTH_COMMIT or git; empty if neither has it.

    Git's has -dirty at its end if the code was changed.
    """
    if named := os.environ.get("PRIMALDEPTH_COMMIT"):
        return named
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)  # not that of a project we are installed in
        return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    return found.stdout.strip()


def partly(net: DepthNet, start: DepthNet, share: float) -> DepthNet:
    """Return the network with a backbone that is, to a `share`, that of `start`.

    The solver stays as `net` has it: its coefficients belong together, and mixtures of two solvers overshoot.
    So do weights that `start` lacks, those of the trust in samples.
    """
    mixed, old = copy.deepcopy(net), start.fcn.state_dict()
    weights = mixed.fcn.state_dict()
    for name in weights.keys() & old.keys():
        shared = weights[name][tuple(slice(side) for side in old[name].shape)]
        shared.lerp_(old[name].to(shared), share)
    return mixed
