"""The loss of a stage, and which weights learn from it."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.networks.inputs import NetworkInput
from primaldepth.networks.unet import UNet
from primaldepth.operators.pairwise import half_window
from primaldepth.training.losses import affinity_loss, get_loss, laplace_loss
from primaldepth.training.recipe import StageRecipe


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
        """Return the loss of a batch, with errors in the benchmark's unit; arguments as `TrainingBatch`."""
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


def stage_network(settings: NetworkSettings, stage: StageRecipe, weights: Mapping[str, Tensor]) -> DepthNet:
    """Build the network that a stage gives: the FCN alone where only that has learned.

    Args:
        settings: of the run's network.
        stage: says which part learned.
        weights: of the run's network, by name.
    """
    if stage.part == "fcn":
        settings = settings.model_copy(update={"iterations": 0})
    net = DepthNet(settings)
    net.load_state_dict({name: weights[name] for name in net.state_dict()})
    return net


def last_layer(net: DepthNet) -> nn.Module:
    """Return the convolution that makes the backbone's maps."""
    if isinstance(net.fcn, UNet):
        return net.fcn.leave
    return [layer for layer in net.fcn.modules() if isinstance(layer, nn.Conv2d)][-1]
