"""One stage: which weights learn, from which loss, at which rate."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from primaldepth.core.errors import FileFormatError
from primaldepth.networks import DepthNet
from primaldepth.networks.inputs import NetworkInput
from primaldepth.networks.unet import UNet
from primaldepth.operators.pairwise import half_window
from primaldepth.training.losses import affinity_loss, get_loss, laplace_loss
from primaldepth.training.recipe import StageRecipe

MOMENTUM = 0.9


class StageLoss(nn.Module):
    """Batch -> loss, as a module, so that it can be wrapped for several processes.

    With `bf16`, convolutions run in bfloat16; depth, truth and loss stay float32.
    """

    def __init__(self, net: DepthNet, stage: StageRecipe, *, bf16: bool = False) -> None:
        super().__init__()
        self.net, self.stage, self.bf16, self.loss = net, stage, bf16, get_loss(stage.loss)
        self.offsets = half_window(net.settings.window)
        net.fcn.requires_grad_(stage.part in ("fcn", "joint"))
        if stage.part == "head":
            last_layer(net).requires_grad_(True)
        if net.pdn is not None:
            net.pdn.requires_grad_(stage.part != "fcn")

    def forward(self, maps: NetworkInput, truth: Tensor, valid: Tensor, unit: Tensor) -> Tensor:
        """The stage's loss; see `Batch` for the arguments. Errors are in the unit of the benchmark."""
        stage = self.stage

        def penalty(estimate: Tensor) -> Tensor:
            return self.loss((estimate - truth) * unit, valid, truth * unit)

        with torch.autocast(truth.device.type, torch.bfloat16, enabled=self.bf16):
            if stage.part == "fcn":
                found = self.net.features(*maps[:5])
                depth = found.first
            else:
                estimate = self.net(*maps)
                depth, found = estimate.depth, estimate.features
        total = penalty(depth)
        if stage.part != "fcn" and stage.first:
            total = total + stage.first * penalty(found.first)
        if stage.affinity:
            total = total + stage.affinity * affinity_loss(found.affinities, truth, valid, self.offsets)
        if stage.likelihood and found.log_sigma is not None:
            total = total + stage.likelihood * laplace_loss(depth.detach() - truth, found.log_sigma, valid)
        return total


def last_layer(net: DepthNet) -> nn.Module:
    """Return the convolution that makes the backbone's maps."""
    if isinstance(net.fcn, UNet):
        return net.fcn.leave
    return [layer for layer in net.fcn.modules() if isinstance(layer, nn.Conv2d)][-1]


def make_optimiser(net: DepthNet, stage: StageRecipe) -> torch.optim.Optimizer:
    """Kernels decay, biases and primal-dual coefficients do not; the latter have a rate of their own."""
    kernels = [p for p in net.fcn.parameters() if p.requires_grad and p.ndim > 1]
    biases = [p for p in net.fcn.parameters() if p.requires_grad and p.ndim == 1]
    solver = [p for p in net.pdn.parameters() if p.requires_grad] if net.pdn is not None else []
    groups = [
        {"params": kernels, "weight_decay": stage.decay, "share": 1.0},
        {"params": biases, "weight_decay": 0.0, "share": 1.0},
        {"params": solver, "weight_decay": 0.0, "share": stage.rate_pdn},
    ]
    groups = [group for group in groups if group["params"]]
    if stage.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=stage.rate, momentum=MOMENTUM)
    fused = next(net.parameters()).is_cuda
    return torch.optim.AdamW(groups, lr=stage.rate, betas=(0.9, 0.99), fused=fused)


def restore_optimiser(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load a stored state; sums of gradients lie in memory as their weights do, as they did before.

    What is no tensor (rates, decay) follows from the recipe and is kept as the optimiser has it.
    """
    _check_state(optimiser, state["state"])
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state["state"]})
    for weight, values in optimiser.state.items():
        for name, value in values.items():
            if value.shape == weight.shape:
                values[name] = torch.empty_like(weight).copy_(value)


def _check_state(optimiser: torch.optim.Optimizer, state: Mapping[int, Mapping[str, Tensor]]) -> None:
    """Raise unless each weight's sums have its shape, and steps are numbers."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    names = {"momentum_buffer"}
    if isinstance(optimiser, torch.optim.AdamW):
        names = {"step", "exp_avg", "exp_avg_sq"}
    for index, values in state.items():
        fits = index < len(weights) and values.keys() == names
        if not fits or any(
            value.shape != (() if name == "step" else weights[index].shape) for name, value in values.items()
        ):
            raise FileFormatError(
                "the checkpoint's sums of gradients do not fit its weights; remove it to start the run again"
            )


def rate_at(stage: StageRecipe, step: int) -> float:
    """Learning rate of a step, 0 and on."""
    grown = min(1.0, (step + 1) / (stage.warmup + 1))
    done = step / stage.steps
    if stage.schedule == "cosine":
        return stage.rate * grown * 0.5 * (1.0 + math.cos(math.pi * done))
    if stage.schedule == "steps":
        return stage.rate * grown * (1.0 if done < 0.5 else 0.5 if done < 5 / 6 else 0.1)
    return stage.rate * grown


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Of all groups, each with its share."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group["share"]


def clip_gradient(parameters: Iterable[nn.Parameter], stage: StageRecipe) -> Tensor:
    """Limit the norm (adamw) or every value (sgd, as in the paper); the norm before."""
    own = [p for p in parameters if p.requires_grad and p.grad is not None]
    if stage.optimiser == "adamw":
        return nn.utils.clip_grad_norm_(own, stage.clip)
    norm = nn.utils.get_total_norm([p.grad for p in own if p.grad is not None])
    nn.utils.clip_grad_value_(own, stage.clip)
    return norm


class Average:
    """Exponentially averaged weights: a <- a + (1 - decay) (w - a), with a shorter memory at the start."""

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live = [value.detach() for value in net.state_dict().values()]  # they change in place
        self.weights = {name: value.detach().clone() for name, value in net.state_dict().items()}

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from stored ones."""
        for name, value in weights.items():
            self.weights[name].copy_(value)

    def update(self, step: int) -> None:
        """After a step."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.weights.values()), self._live, 1.0 - decay)


def average_of(net: nn.Module, stage: StageRecipe) -> Average | None:
    """None where the last weights are kept."""
    return Average(net, stage.ema) if stage.ema else None
