"""The fully convolutional network, the unrolled primal-dual solver, and the two joined."""

from primaldepth.networks.card import ModelCard
from primaldepth.networks.fcn import FCN
from primaldepth.networks.joint import DepthNet, Estimate, Features, NetworkSettings
from primaldepth.networks.unrolled import PrimalDualNet
from primaldepth.networks.zoo import from_pretrained, load, save_model

__all__ = [
    "FCN",
    "DepthNet",
    "Estimate",
    "Features",
    "ModelCard",
    "NetworkSettings",
    "PrimalDualNet",
    "from_pretrained",
    "load",
    "save_model",
]
