"""The fully convolutional network, the unrolled primal-dual solver, and the two joined."""

from primaldepth.networks.fcn import FCN
from primaldepth.networks.joint import DepthNet, Estimate, NetworkSettings
from primaldepth.networks.unrolled import PrimalDualNet

__all__ = ["FCN", "DepthNet", "Estimate", "NetworkSettings", "PrimalDualNet"]
