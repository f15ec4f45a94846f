"""Networks for tests that no output should be trivially zero in."""

import torch

from primaldepth.networks import DepthNet, NetworkSettings


def random_net(seed=0, **settings):
    """A network whose every parameter is random."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        net = DepthNet(NetworkSettings(**settings))
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return net
