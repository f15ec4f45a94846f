"""Optimiser, learning rate, limit of the gradient, and averages of a stage, all of them torch's own."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from primaldepth.core.errors import FileFormatError
from primaldepth.networks import DepthNet
from primaldepth.training.muon import Muon
from primaldepth.training.recipe import StageRecipe

MOMENTUM = 0.9  # of sgd
MOMENTUM_OF_MATRICES = 0.95  # of muon


def make_optimiser(net: DepthNet, stage: StageRecipe) -> torch.optim.Optimizer:
    """Make the optimiser of the weights that learn.

    Kernels decay, biases and primal-dual coefficients do not; the latter have a rate of their own. With muon,
    all kernels but the first and the last, whose maps have a meaning of their own, are matrices. On a GPU
    the rates are tensors there, so that a recording of a step reads what they are when it is played.
    """
    kernels = [p for p in net.fcn.parameters() if p.ndim > 1]
    matrices = (
        kernels[1:-1] if stage.optimiser == "muon" else []
    )  # the ends read and make maps of one meaning
    others = kernels if not matrices else [kernels[0], kernels[-1]]
    biases = [p for p in net.fcn.parameters() if p.ndim == 1]
    solver = list(net.pdn.parameters()) if net.pdn is not None else []
    groups: list[dict[str, Any]] = [
        {"params": others, "weight_decay": stage.decay, "lr": stage.rate},
        {"params": matrices, "weight_decay": stage.decay, "lr": stage.rate, "momentum": MOMENTUM_OF_MATRICES},
        {"params": biases, "weight_decay": 0.0, "lr": stage.rate},
        {"params": solver, "weight_decay": 0.0, "lr": stage.rate * stage.rate_pdn},
    ]
    groups = [{**group, "params": [p for p in group["params"] if p.requires_grad]} for group in groups]
    groups = [group for group in groups if group["params"]]
    device = next(net.parameters()).device
    fast = device.type == "cuda"
    if fast:
        groups = [{**group, "lr": torch.tensor(group["lr"], device=device)} for group in groups]
    if stage.optimiser == "sgd":
        return torch.optim.SGD(groups, momentum=MOMENTUM, fused=fast)
    kind = Muon if stage.optimiser == "muon" else torch.optim.AdamW
    return kind(groups, betas=(0.9, 0.99), fused=fast, capturable=fast)


def sums_of(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return what an optimiser has gathered, by "number of the weight/name of the sum"."""
    state = optimiser.state_dict()["state"]
    return {f"{n}/{name}": value for n, values in state.items() for name, value in values.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, sums: Mapping[str, Tensor]) -> None:
    """Load what `sums_of` returned; sums lie in memory as their weights do. Rates follow from the recipe.

    Raises:
        FileFormatError: the sums are not those of the optimiser's weights.
    """
    weights = [
        (weight, _sums_of(group, optimiser)) for group in optimiser.param_groups for weight in group["params"]
    ]
    state: dict[int, dict[str, Tensor]] = {}
    for number, (weight, names) in enumerate(weights):
        found = {name: sums[key] for name in names if (key := f"{number}/{name}") in sums}
        shapes = {name: () if name == "step" else weight.shape for name in names}
        if found and {name: value.shape for name, value in found.items()} == shapes:
            state[number] = found
    if sum(map(len, state.values())) != len(sums):
        raise FileFormatError(
            "the checkpoint's sums of gradients do not fit its weights; remove it to start the run again"
        )
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    for weight, values in optimiser.state.items():
        for name, value in values.items():
            if value.shape == weight.shape:
                values[name] = torch.empty_like(weight).copy_(value)


def _sums_of(group: Mapping[str, Any], optimiser: torch.optim.Optimizer) -> tuple[str, ...]:
    """Return the names of the sums that an optimiser keeps of each weight of a group."""
    if isinstance(optimiser, torch.optim.SGD):
        return ("momentum_buffer",)
    matrices = isinstance(optimiser, Muon) and group["momentum"] is not None
    return ("step", "exp_avg") if matrices else ("step", "exp_avg", "exp_avg_sq")


def rate_factor(stage: StageRecipe, step: int) -> float:
    """Return the learning rate of a step, 0 and on, over the stage's largest."""
    grown = min(1.0, (step + 1) / (stage.warmup + 1))
    done = step / stage.steps
    if stage.schedule == "cosine":
        return grown * 0.5 * (1.0 + math.cos(math.pi * done))
    if stage.schedule == "steps":
        return grown * (1.0 if done < 0.5 else 0.5 if done < 5 / 6 else 0.1)
    return grown


def rate_schedule(optimiser: torch.optim.Optimizer, stage: StageRecipe, step: int) -> LambdaLR:
    """Return the schedule of a new optimiser's rates that goes on at `step`."""
    for group in optimiser.param_groups:
        group["initial_lr"] = float(group["lr"])
    return LambdaLR(optimiser, lambda at: rate_factor(stage, at), last_epoch=step - 1)


def clip_gradient(parameters: Iterable[nn.Parameter], stage: StageRecipe) -> Tensor:
    """Limit the gradient's norm, or with sgd every value, as in the paper.

    Args:
        parameters: those without a gradient are left out.
        stage: has the limit.

    Returns:
        the norm before, a number on the device.
    """
    own = [p for p in parameters if p.requires_grad and p.grad is not None]
    if stage.optimiser != "sgd":
        return nn.utils.clip_grad_norm_(own, stage.clip)
    norm = nn.utils.get_total_norm([p.grad for p in own if p.grad is not None])
    nn.utils.clip_grad_value_(own, stage.clip)
    return norm


def averaged(net: DepthNet) -> AveragedModel:
    """Return an average that starts at the network's weights."""
    return AveragedModel(net)


def update_average(average: AveragedModel, net: DepthNet, stage: StageRecipe, step: int) -> None:
    """Set a <- a + (1 - decay) (w - a) after a step, with a shorter memory at the start.

    Args:
        average: has the weights a.
        net: has the weights w.
        stage: has the decay.
        step: number of the step in its stage.
    """
    decay = min(stage.ema, (1 + step) / (10 + step))
    move = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    # Not by `update_parameters`, which copies its counter to the device and waits for it in every step.
    move([p.detach() for p in average.module.parameters()], [p.detach() for p in net.parameters()], None)
